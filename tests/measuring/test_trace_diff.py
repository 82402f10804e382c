"""What changed between two traces, from made-up traces; real ones are in tests/e2e/test_tracing.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TraceMetadata
from winml.modelkit.measuring.trace_diff import Move, TraceDiff, diff

CPU, QNN = "CPUExecutionProvider", "QNNExecutionProvider"
META = TraceMetadata(ep="cpu", device="cpu", tracing_level="basic", tracing_backend="test", num_samples=9)


def op(path: str, kind: str, value: float, *nodes: str, ep: str = CPU, **more: Any) -> OperatorMetrics:
    origin = more.pop("origin", "node" if nodes else "inserted")
    unit = more.pop("unit", "cycles" if ep == QNN else "us")
    more.setdefault("op_type", kind)
    return OperatorMetrics(path, ep, unit, (value,), onnx_op_type=kind, onnx_nodes=nodes, origin=origin, **more)


def compared(before: list[OperatorMetrics], after: list[OperatorMetrics]) -> TraceDiff:
    return diff(OpTraceResult(META, operators=tuple(before)), OpTraceResult(META, operators=tuple(after)))


def _pairs(found: TraceDiff) -> list[tuple[list[str], list[str]]]:
    return [([o.op_path for o in c.before], [o.op_path for o in c.after]) for c in found.changes]


def test_a_trace_against_itself_changes_nothing() -> None:
    operators = [op("a", "Conv", 5, "a"), op("b", "Relu", 1, "b")]
    found = compared(operators, operators)
    assert [c.kind for c in found.changes] == ["same", "same"]
    assert found.reasons == ()


def test_nodes_that_were_fused_stay_together_by_their_names() -> None:
    found = compared(
        [op("conv1", "Conv", 50, "conv1"), op("relu1", "Relu", 10, "relu1"), op("pool", "MaxPool", 5, "pool")],
        [op("fused conv1", "Conv", 40, "conv1", "relu1"), op("pool", "MaxPool", 5, "pool")],
    )
    assert _pairs(found) == [(["conv1", "relu1"], ["fused conv1"]), (["pool"], ["pool"])]
    assert (found.changes[0].kind, found.changes[0].delta) == ("fused", -20)


def test_convolutions_that_became_fused_and_moved_are_said_in_words() -> None:
    """Nodes without names: the weights and what reads what say which belong together."""
    before, after = [], []
    reads = ["input:x", "input:x"]
    for i in range(3):
        weight = (f"w{i}", (16, 16, 3, 3))
        conv, relu, fused = f"Conv_{2 * i}", f"Relu_{2 * i + 1}", f"FusedConv_{i}"
        before.append(op(f"_token_{i}", "Conv", 0, conv, ep=QNN, reads=(reads[0],), weight=weight))
        before.append(op(f"Relu{i}", "Relu", 80, relu, ep=QNN, reads=(conv,)))
        after.append(op(f"r{i}_nchwc", "FusedConv", 30, fused, op_type="Conv", reads=(reads[1],), weight=weight))
        reads = [relu, fused]
    before.append(op("p", "Flatten", 1, "Flatten_6", ep=QNN, reads=(reads[0],)))
    after.append(op("f", "Flatten", 1, "Flatten_3", ep=QNN, reads=(reads[1],)))
    found = compared(before, after)
    assert found.reasons[0] == "3 Conv + Relu became FusedConv and moved from QNN to CPU"
    moved = [c for c in found.changes if c.moved]
    assert [[o.type for o in c.before] for c in moved] == [["Conv", "Relu"]] * 3
    assert all(c.moved == Move(source="QNN", target="CPU") and c.unit is None and c.delta is None for c in moved)


def test_numbers_as_names_are_not_trusted_between_different_models() -> None:
    before = [
        op("Conv_0", "Conv", 9, "Conv_0", reads=("input:x",)), op("Relu_1", "Relu", 1, "Relu_1", reads=("Conv_0",)),
    ]  # fmt: skip
    after = [
        op("Conv_0", "Conv", 9, "Conv_0", reads=("Neg_1",)),
        op("Neg_1", "Neg", 2, "Neg_1", reads=("input:x",)),
        op("Conv_2", "Conv", 9, "Conv_2", reads=("input:x",)),
        op("Relu_3", "Relu", 1, "Relu_3", reads=("Conv_2",)),
    ]
    assert _pairs(compared(before, after)) == [
        (["Conv_0"], ["Conv_2"]), (["Relu_1"], ["Relu_3"]), ([], ["Conv_0"]), ([], ["Neg_1"]),
    ]  # fmt: skip


def test_operators_in_the_same_order_are_no_pair_without_a_reason() -> None:
    """Equal types one after the other say nothing when neither names, weights nor edges are known."""
    found = compared([op("a", "Conv", 9, "a"), op("b", "Conv", 1, "b")], [op("c", "Conv", 9, "c")])
    assert [c.kind for c in found.changes] == ["vanished", "vanished", "appeared"]


def test_a_name_is_not_trusted_against_the_weight() -> None:
    found = compared(
        [op("conv", "Conv", 9, "conv", weight=("w", (8, 3, 3, 3)))],
        [op("conv", "Conv", 9, "conv", weight=("w", (16, 8, 3, 3)))],
    )
    assert [c.kind for c in found.changes] == ["vanished", "appeared"]


def test_operators_of_a_dynamic_quantizer_belong_to_what_they_replace() -> None:
    def convs(suffix: str, kind: str) -> list[OperatorMetrics]:
        size = (16, 16, 3, 3)
        return [op(f"{n}{suffix}", kind, 5, f"{n}{suffix}", weight=(n, size)) for n in ("stem.0/Conv", "body.3/Conv")]

    found = compared(convs("", "Conv"), convs("_quant", "ConvInteger")[::-1])
    assert _pairs(found) == [
        (["stem.0/Conv"], ["stem.0/Conv_quant"]), (["body.3/Conv"], ["body.3/Conv_quant"]),
    ]  # fmt: skip


def test_opposite_changes_are_not_added_up_and_what_stayed_is_told() -> None:
    """Five of twelve convolutions were quantized; four of the five got faster, one far slower."""
    before = [op(f"c{i}", "Conv", 100, f"c{i}") for i in range(12)]
    after = [replace(o, samples=(50.0,), op_type="QLinearConv") for o in before[:4]]
    after += [replace(before[4], samples=(900.0,), op_type="QLinearConv"), *before[5:]]
    found = compared(before, after)
    assert found.reasons == (
        "1 Conv became QLinearConv and got slower (100 µs -> 900 µs, 9.00x)",
        "4 Conv became QLinearConv and got faster (400 µs -> 200 µs, 0.50x)",
        "7 Conv take as long (700 µs -> 700 µs, 1.00x)",
    )
    assert [g.direction for g in found.groups] == ["slower", "faster", "same"]


def test_operators_that_got_slower_are_named_with_their_figures() -> None:
    before = [op(f"c{i}", "Conv", 100, f"c{i}") for i in range(4)]
    after = [replace(o, samples=(180.0,), op_type="QLinearConv") for o in before]
    assert compared(before, after).reasons == ("4 Conv became QLinearConv and got slower (400 µs -> 720 µs, 1.80x)",)


def test_a_change_below_one_percent_of_the_whole_is_no_sentence() -> None:
    large = op("big", "MatMul", 1000, "big")
    found = compared([large, op("small", "Add", 1, "small")], [large, op("small", "Add", 2, "small")])
    assert found.reasons == ()
    assert found.changes[1].delta == 1


def test_what_appeared_and_vanished_is_told_with_its_cost() -> None:
    found = compared([op("gone", "Erf", 40, "gone")], [op("ReorderOutput", "ReorderOutput", 7)])
    assert found.reasons == ("1 Erf on CPU vanished (40 µs)", "1 ReorderOutput on CPU appeared (7 µs)")
    assert found.counts == {"vanished": 1, "appeared": 1}


def test_the_median_of_the_runs_is_compared_not_an_outlier() -> None:
    before = replace(op("c", "Conv", 0, "c"), samples=(10.0, 10.0, 10.0))
    after = replace(before, samples=(10.0, 10.0, 900.0))
    assert compared([before], [after]).changes[0].delta == 0


def test_edges_of_the_graph_are_no_operators() -> None:
    edge = op("Input", "Input", 5, ep=QNN, origin="boundary")
    assert compared([edge], [edge]).changes == ()


def test_traces_that_cannot_be_compared_fairly_say_so() -> None:
    simulated = replace(META, ep="qnn", tracing_backend="qnn profiling", simulated=True, num_samples=1)
    notes = diff(OpTraceResult(META), OpTraceResult(simulated)).notes
    assert [n.split(";")[0].split(":")[0] for n in notes] == [
        "the traces come from different EPs",
        "the traces were made by different tools",
        "cycles of a simulator were compared",
        "one trace has 1 measured run",
    ]
