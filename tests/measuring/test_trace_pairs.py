"""Traces against the truth: every weight is a constant of its own, so the runtime's own graph says what a kernel is.

The truth is read off the graph that the runtime saves, by the values of the weights in it, and never by a name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import model_zoo
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.measuring.trace_diff import TraceDiff, diff
from winml.modelkit.session.monitor.ort_monitor import ORTMonitor
from winml.modelkit.session.session import WinMLSession

VARIANTS = ("fp32", "qdq", "dynamic", "fp16")
BN = 1.03
"""What a BatchNormalization multiplies by: less than weights differ."""


class _Net:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, name: str, *inputs: str, **more: Any) -> str:
        self.nodes.append(helper.make_node(op, list(inputs), [f"{name}:0"], name=name, **more))
        return f"{name}:0"

    def tensor(self, name: str, value: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def conv(self, name: str, value: str, width: int, out: int, kernel: int = 3) -> str:
        weight = self.tensor(f"{name}.weight", np.zeros((out, width, kernel, kernel)))
        bias = self.tensor(f"{name}.bias", np.zeros(out))
        pads = [kernel // 2] * 4
        return self.add("Conv", f"{name}/Conv", value, weight, bias, kernel_shape=[kernel, kernel], pads=pads)

    def norm(self, name: str, value: str, width: int) -> str:
        scale = self.tensor(f"{name}.scale", np.full(width, BN))
        rest = [self.tensor(f"{name}.{n}", np.full(width, v)) for n, v in (("b", 0.1), ("m", 0), ("v", 1))]
        return self.add("BatchNormalization", f"{name}/BatchNorm", value, scale, *rest)


def _cnn() -> onnx.ModelProto:
    """What a blocked Conv absorbs: BatchNormalization, an activation, a sum with a branch; and what it does not."""
    net = _Net()
    stem = net.add("Relu", "relu1", net.norm("stem.1", net.conv("stem.0", "x", 3, 16), 16))
    body = net.add("Relu", "relu2", net.norm("body.1", net.conv("body.0", stem, 16, 24), 24))
    summed = net.add("Add", "add", net.norm("body.4", net.conv("body.3", body, 24, 16), 16), stem)
    left = net.conv("left", net.add("Relu", "relu3", summed), 16, 32, 1)
    right = net.add("Relu", "relu4", net.conv("right", "relu3:0", 16, 32))
    both = net.add("Add", "join", net.add("Mul", "silu", left, net.add("Sigmoid", "gate", left)), right)
    flat = net.add("Flatten", "flat", net.add("GlobalAveragePool", "pool", both))
    fc = [net.tensor("fc.weight", np.zeros((10, 32))), net.tensor("fc.bias", np.zeros(10))]
    net.nodes.append(helper.make_node("Gemm", [flat, *fc], ["y"], name="fc/Gemm", transB=1))
    graph = helper.make_graph(
        net.nodes,
        "cnn",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        net.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def _with_constants(model: onnx.ModelProto) -> dict[str, float]:
    """Give every weight a constant of its own; node that reads it -> the constant."""
    matrices = {t.name: t for t in model.graph.initializer if len(t.dims) > 1}
    values = {}
    for node in model.graph.node:
        for name in node.input:
            if name in matrices and node.op_type != "Gather":
                values[node.name] = 0.02 * 1.15 ** len(values)
                shape = tuple(matrices[name].dims)
                matrices[name].CopyFrom(numpy_helper.from_array(np.full(shape, values[node.name], np.float32), name))
    return values


@dataclass(frozen=True)
class Case:
    """A model, a variant of it, its trace and the graph the runtime made of it."""

    path: Path
    constants: dict[str, float]
    trace: OpTraceResult
    final: onnx.ModelProto


def _variant(source: Path, kind: str, feed: dict[str, np.ndarray]) -> Path:
    from onnxruntime import quantization as q
    from onnxruntime.transformers.float16 import convert_float_to_float16

    path = source.with_name(f"{source.stem}_{kind}.onnx")

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = [feed]

        def get_next(self) -> dict[str, np.ndarray] | None:
            return self.feeds.pop() if self.feeds else None

    if kind == "fp32":
        return source
    if kind == "qdq":
        types = {"activation_type": q.QuantType.QUInt8, "weight_type": q.QuantType.QInt8}
        q.quantize_static(str(source), str(path), Reader(), quant_format=q.QuantFormat.QDQ, **types)
    elif kind == "dynamic":
        q.quantize_dynamic(str(source), str(path), weight_type=q.QuantType.QUInt8)
    else:
        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), path)
    return path


def _final_graph(path: Path, folder: Path) -> onnx.ModelProto:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(folder / f"{path.stem}_final.onnx")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return onnx.load(folder / f"{path.stem}_final.onnx")


def _trace(path: Path, feed: dict[str, np.ndarray], folder: Path) -> OpTraceResult:
    monitor = ORTMonitor("basic", folder)
    session = WinMLSession(path, target=Target("cpu", "cpu"), section=SessionSection(threads=1), lazy=True)
    with session.perf(warmup=1, monitor=monitor):
        for _ in range(3):
            session.run(feed)
    assert monitor.result is not None
    return monitor.result


@pytest.fixture(scope="module", params=["cnn", "transformer"])
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    folder = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(0)
    if request.param == "cnn":
        model, feed = _cnn(), {"x": rng.standard_normal((1, 3, 16, 16)).astype(np.float32)}
    else:
        model, feed = model_zoo.encoder(), {"input_ids": np.arange(16, dtype=np.int64)[None]}
    constants = _with_constants(model)
    source = model_zoo.saved(model, folder / f"{request.param}.onnx")
    found = {}
    for kind in VARIANTS:
        path = _variant(source, kind, feed)
        found[kind] = Case(path, constants, _trace(path, feed, folder / kind), _final_graph(path, folder))
    return found


_SCALED = {"QLinearConv": (3, 4, 5), "QLinearMatMul": (3, 4, 5), "QGemm": (3, 4, 5), "DynamicQuantizeMatMul": (1, 2, 3),
           "MatMulIntegerToFloat": (1, 3, 5), "DequantizeLinear": (0, 1, 2)}  # fmt: skip
"""Where an integer kernel has its weight, the scale of it and its zero point."""


def _constant(case: Case, node: onnx.NodeProto) -> float | None:
    """The constant in the weight of a kernel, out of the runtime's own graph; None for one without such a weight."""
    arrays = {t.name: t for t in case.final.graph.initializer}
    makers = {value: n for n in case.final.graph.node for value in n.output}

    def array(place: int) -> Any:
        name = node.input[place] if place < len(node.input) else ""
        return numpy_helper.to_array(arrays[name]).astype(np.float64) if name in arrays else None

    if node.op_type in _SCALED:
        weight, scale, zero = (array(place) for place in _SCALED[node.op_type])
        if weight is None or weight.ndim < 2:
            return None
        return float(np.abs((weight - (0 if zero is None else zero.max())) * scale.max()).max())
    if node.op_type in ("ConvInteger", "MatMulInteger"):
        # Its scale is applied by another kernel: the one that multiplies by a scale made of the weight's.
        scale = numpy_helper.to_array(arrays[node.input[1].replace("_quantized", "_scale")])
        return float(255 * scale.max())
    if node.op_type not in ("Conv", "FusedConv", "MatMul", "Gemm", "FusedMatMul"):
        return None
    if node.input[1] in makers and makers[node.input[1]].op_type == "DequantizeLinear":
        return _constant(case, makers[node.input[1]])
    weight = array(1)
    return None if weight is None or weight.ndim < 2 else float(np.abs(weight).max())


def _source(case: Case, constant: float) -> str:
    """The node of the source that has a constant, itself or times a BatchNormalization."""
    return min(case.constants, key=lambda n: min(abs(np.log(constant / (case.constants[n] * f))) for f in (1, BN)))


def _truth(case: Case) -> dict[int, str]:
    """Position of a kernel -> the node of the source whose weight it has."""
    found = ((at, _constant(case, n)) for at, n in enumerate(case.final.graph.node) if n.op_type != "DequantizeLinear")
    return {at: _source(case, constant) for at, constant in found if constant is not None}


def _plain(name: str) -> str:
    return name.removesuffix("_quant").replace("fc/Gemm_MatMul", "fc/Gemm")


@pytest.mark.parametrize("kind", VARIANTS)
def test_a_kernel_is_attributed_to_the_node_whose_weight_it_has(cases: dict[str, Case], kind: str) -> None:
    case = cases[kind]
    operators = case.trace.operators
    assert case.trace.summary["mapped_by"] == "graph"
    assert [o.op_type for o in operators] == [n.op_type for n in case.final.graph.node]
    truth = _truth(case)
    assert set(truth.values()) == set(case.constants)
    assert {at: _plain(operators[at].onnx_nodes[0]) for at in truth} == truth
    others = [o for at, o in enumerate(operators) if at not in truth and o.onnx_nodes]
    assert not {_plain(n) for o in others for n in o.onnx_nodes} & set(case.constants)


def test_the_absorbed_nodes_are_listed_with_their_types(cases: dict[str, Case]) -> None:
    operators = {o.onnx_nodes[0]: o for o in cases["fp32"].trace.operators if o.onnx_nodes}
    if "stem.0/Conv" in operators:
        absorbed = [("body.4/BatchNorm", "BatchNormalization"), ("add", "Add"), ("relu3", "Relu")]
        conv = operators["body.3/Conv"]
        assert (conv.type, conv.op_type, list(conv.absorbed)) == ("Conv", "Conv", absorbed)
        assert operators["right/Conv"].absorbed[0] == ("relu4", "Relu")
    else:
        dense = operators["/layer.0/intermediate/MatMul"]
        assert (dense.type, dense.op_type, dense.absorbed) == (
            "MatMul", "Gemm", (("/layer.0/intermediate/Add", "Add"),),
        )  # fmt: skip


def _pairs_by_truth(before: Case, after: Case, found: TraceDiff) -> Counter[tuple[str, ...]]:
    """Per change the source nodes of both sides by their weights."""
    truths = [
        {(o.op_path, o.ep): node for at, node in _truth(case).items() for o in [case.trace.operators[at]]}
        for case in (before, after)
    ]
    sides = [
        tuple(
            ",".join(truth[o.op_path, o.ep] for o in side if (o.op_path, o.ep) in truth)
            for truth, side in zip(truths, (change.before, change.after), strict=True)
        )
        for change in found.changes
    ]
    return Counter(pair for pair in sides if any(pair))


@pytest.mark.parametrize("kind", VARIANTS)
def test_every_pair_of_two_traces_has_the_same_weight(cases: dict[str, Case], kind: str) -> None:
    before, after = cases["fp32"], cases[kind]
    found = diff(before.trace, after.trace)
    assert _pairs_by_truth(before, after, found) == Counter({(n, n): 1 for n in before.constants})
    for change in found.changes:  # the rest have names of their own, which the quantizer keeps
        names = [{_plain(n) for o in side for n in o.onnx_nodes} for side in (change.before, change.after)]
        assert not all(names) or names[0] & names[1], change


def _renamed(trace: OpTraceResult, names: dict[str, str]) -> OpTraceResult:
    """The trace of a model whose nodes and weights are called otherwise."""

    def rename(o: OperatorMetrics) -> OperatorMetrics:
        return replace(
            o,
            onnx_nodes=tuple(names[n] for n in o.onnx_nodes),
            absorbed=tuple((names[n], kind) for n, kind in o.absorbed),
            reads=tuple(names.get(r, r) for r in o.reads),
            neighbour=None if o.neighbour is None else names[o.neighbour],
            weight=None if o.weight is None else (f"renamed/{o.weight[0]}", o.weight[1]),
        )

    return replace(trace, operators=tuple(rename(o) for o in trace.operators))


@pytest.mark.parametrize("kind", VARIANTS)
def test_without_names_the_structure_pairs_and_never_the_order(cases: dict[str, Case], kind: str) -> None:
    """Names of one trace are shuffled among its nodes, and its operators run in another order."""
    before, after = cases["fp32"], cases[kind]
    labels = sorted({n for o in after.trace.operators for n in o.onnx_nodes})
    names = {label: f"renamed/{at}" for at, label in enumerate(labels)}
    old = {new: label for label, new in names.items()}
    other = _renamed(after.trace, names)
    found = diff(before.trace, replace(other, operators=tuple(reversed(other.operators))))
    paired = 0
    for change in found.changes:
        mine = {_plain(n) for o in change.before for n in o.onnx_nodes}
        theirs = {_plain(old[n]) for o in change.after for n in o.onnx_nodes}
        assert not (mine and theirs) or mine & theirs, change
        paired += len(mine & theirs & set(before.constants))
    assert paired >= 0.9 * len(before.constants)


@pytest.mark.parametrize("kind", VARIANTS)
def test_the_groups_of_a_diff_count_what_the_runtime_ran(cases: dict[str, Case], kind: str) -> None:
    """Every kernel of both profiles is in one group, and no group holds two directions."""
    found = to_json(diff(cases["fp32"].trace, cases[kind].trace))
    for side, case in (("before_types", cases["fp32"]), ("after_types", cases[kind])):
        told = sum((Counter(group[side]) for group in found["groups"]), Counter[str]())
        assert told == Counter(n.op_type for n in case.final.graph.node)
    assert sum(group["count"] for group in found["groups"]) == len(found["changes"])
    assert [g["reason"] for g in found["groups"] if g["reason"]] == found["reasons"]
