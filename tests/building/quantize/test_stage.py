"""The stage: every mode on every hard graph, what it reports, and what it refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import model_zoo
import pass_zoo
import quantize_zoo
from quantize_zoo import SECTIONS
from winml.modelkit.building.events import Calibrating
from winml.modelkit.building.optimize.apply import Runner
from winml.modelkit.building.optimize.table import find
from winml.modelkit.building.optimize.workspace import Workspace
from winml.modelkit.building.quantize import stage
from winml.modelkit.building.quantize.result import LeftNodes, OutputFidelity, QuantizeReport
from winml.modelkit.building.quantize.stage import run, saturates
from winml.modelkit.core import values
from winml.modelkit.core.config import DataSection, QuantizeSection
from winml.modelkit.core.errors import DataError, Interrupted, RequestError, RunFailedError
from winml.modelkit.graph import files
from winml.modelkit.graph.quantization import quantization_of
from winml.modelkit.graph.value_names import values_of

Quantize = Callable[..., tuple[onnx.ModelProto, QuantizeReport]]

LEAST_DB = {"w4a16 for qnn": 12, "int4": 6, "dynamic": 25}


@pytest.mark.parametrize("words", SECTIONS)
@pytest.mark.parametrize("name", quantize_zoo.GRAPHS)
def test_a_hard_graph_is_quantized_and_keeps_its_outputs(quantize: Quantize, name: str, words: str) -> None:
    model, report = quantize(quantize_zoo.GRAPHS[name](), SECTIONS[words])
    onnx.checker.check_model(model)
    if report.outcome.changed:
        assert report.outcome.fidelity.status == "measured", report.outcome.fidelity.reason
        output = report.outcome.fidelity.outputs[0]
        # 8-bit kernels saturate on some processors; that is not what is asked here.
        assert (output.exact_sqnr_db or output.sqnr_db) > LEAST_DB.get(words, 30)
    else:
        assert words in ("dynamic", "int4")
        assert report.outcome.warnings[0].startswith("no change")


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 4), (4,)], ids=str)
def test_a_bias_of_a_gemm_may_have_any_shape_that_means_one_number_per_channel(
    quantize: Quantize, shape: tuple[int, ...]
) -> None:
    model, report = quantize(quantize_zoo.gemm(bias=shape), SECTIONS["u8s8"])
    assert report.outcome.nodes.quantized == {"Gemm": 1}
    assert next(tensor for tensor in model.graph.initializer if tensor.name == "b_quantized").dims == [4]


def test_a_gemm_with_a_matrix_for_a_bias_is_left(quantize: Quantize) -> None:
    _, report = quantize(quantize_zoo.gemm(bias=(2, 4)), SECTIONS["u8s8"])
    assert report.outcome.nodes.left == (LeftNodes("Gemm", 1, "its bias is a matrix, which has no scale per channel"),)


@pytest.mark.parametrize("words", SECTIONS)
def test_a_model_without_nodes_stays_as_it_is(quantize: Quantize, words: str) -> None:
    _, report = quantize(model_zoo.text_model("empty (float[2,4] x) => (float[2,4] x) {}"), SECTIONS[words])
    assert not report.outcome.changed
    assert report.outcome.warnings[0].startswith("no change")


def test_8_bit_pairs_in_a_float16_model_get_an_opset_that_has_them(quantize: Quantize) -> None:
    model, report = quantize(
        quantize_zoo.gemm(dtype=np.float16, opset=17), replace(SECTIONS["u8s8"], reduce_range=True)
    )
    onnx.checker.check_model(model)
    assert list(report.outcome.notes) == ["the opset was raised from 17 to 19: pairs of float16 values need it"]
    assert report.outcome.fidelity.outputs[0].cosine > 0.99


UNSQUEEZED = """low (float[1,8] x, bool c) => (float[1,1,4] y) <float[8,4] w = {WEIGHTS}> {
    h = MatMul(x, w)
    y = If(c) <
        then_branch = t () => (float[1,1,4] a) { a = Unsqueeze<axes = [0]>(h) },
        else_branch = e () => (float[1,1,4] b) { n = Neg(h)  b = Unsqueeze<axes = [0]>(n) }
    >
}""".replace("WEIGHTS", ", ".join(str(n % 7 - 3) for n in range(32)))


def test_a_model_that_cannot_have_the_opset_of_scales_per_channel_gets_one_scale_and_a_warning(
    quantize: Quantize,
) -> None:
    low = model_zoo.text_model(UNSQUEEZED)
    low.opset_import[0].version = 12
    model, report = quantize(
        onnx.ModelProto.FromString(low.SerializeToString()), replace(SECTIONS["u8s8"], per_channel=None)
    )
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 12
    assert not any(a.name == "axis" for node in model.graph.node for a in node.attribute if "Linear" in node.op_type)
    assert report.per_channel is False
    assert report.outcome.granularity.scales == "tensor"
    (warning,) = (w for w in report.outcome.warnings if "one scale per tensor" in w)
    assert "`Unsqueeze` inside an If, Loop or Scan differs there" in warning
    with pytest.raises(RequestError, match="scales per channel need opset 13") as caught:
        quantize(low, replace(SECTIONS["u8s8"], per_channel=True))
    assert "--per-tensor" in (caught.value.hint or "")


def test_operators_of_foreign_domains_stay_as_they_are_and_are_named(quantize: Quantize) -> None:
    model = model_zoo.text_model(
        "g (float[2,4] x) => (float[2,4] y) { s = ai.onnx.ml.Scaler<offset = [0.5], scale = [2.0]>(x)  y = Relu(s) }",
        extra=', "ai.onnx.ml" : 1',
    )
    _, report = quantize(model, SECTIONS["u8s8"])
    assert LeftNodes("ai.onnx.ml:Scaler", 1, "operators of the domain ai.onnx.ml stay as they are") in (
        report.outcome.nodes.left
    )


def test_16_bit_activations_in_float16_are_refused_for_their_scales_would_be_zero(quantize: Quantize) -> None:
    with pytest.raises(RequestError, match="in float16") as caught:
        quantize(quantize_zoo.gemm(dtype=np.float16), SECTIONS["w8a16 for qnn"])
    assert "-p int8" in (caught.value.hint or "")


KINDS = {"u8s8": "qdq", "w8a16 for qnn": "qdq", "dynamic": "dynamic", "int4": "weight-only", "fp16": "none"}


@pytest.mark.parametrize("words", KINDS)
def test_the_kind_of_the_result_is_what_was_asked_for(quantize: Quantize, words: str) -> None:
    model, _ = quantize(quantize_zoo.shared_weight(), SECTIONS[words])
    assert quantization_of(model).kind == KINDS[words]


def test_u8s8_has_uint8_activations_and_int8_weights_per_channel(quantize: Quantize) -> None:
    model, report = quantize(model_zoo.conv_net(), SECTIONS["u8s8"])
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    assert weights["w1_quantized"].data_type == onnx.TensorProto.INT8
    assert list(weights["w1_scale"].dims) == [16]
    assert weights["x_zero_point"].data_type == onnx.TensorProto.UINT8
    assert report.outcome.nodes.quantized == {"Conv": 3, "Relu": 3, "GlobalAveragePool": 1, "Flatten": 1}
    assert report.outcome.size.after_bytes < report.outcome.size.before_bytes / 2


def test_equal_input_gives_equal_bytes(quantize: Quantize, tmp_path: Path) -> None:
    for words in SECTIONS:
        first = quantize(model_zoo.conv_net(), SECTIONS[words])[0].SerializeToString(deterministic=True)
        assert quantize(model_zoo.conv_net(), SECTIONS[words])[0].SerializeToString(deterministic=True) == first


def test_nothing_of_the_quantizer_stays_in_the_file(quantize: Quantize) -> None:
    model, _ = quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"])
    assert model.producer_name == "zoo"
    assert not model.metadata_props
    assert not model.graph.value_info


def test_convolutions_that_share_a_bias_have_each_their_own_scale(quantize: Quantize) -> None:
    model, _ = quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"])
    biases = [node.input[2] for node in model.graph.node if node.op_type == "Conv"]
    assert len(set(biases)) == 3
    made = {name for node in model.graph.node if node.op_type == "DequantizeLinear" for name in node.output}
    assert made.issuperset(biases)


def test_nodes_that_cannot_be_quantized_are_left_with_their_reason(quantize: Quantize) -> None:
    _, report = quantize(quantize_zoo.if_bodies(), SECTIONS["u8s8"])
    left = {(entry.op, entry.reason) for entry in report.outcome.nodes.left}
    assert ("Conv", "inside the body of an If, Loop or Scan") in left
    assert ("Relu", "its input is read inside the body of an If, Loop or Scan too") in left


def test_a_mask_of_minus_infinity_stays_in_float(quantize: Quantize) -> None:
    _, report = quantize(quantize_zoo.masked(), SECTIONS["u8s8"])
    assert report.outcome.nodes.quantized == {"MatMul": 2}
    assert all("too far to quantize" in entry.reason for entry in report.outcome.nodes.left)


def test_loops_are_quantized_inside_when_the_mode_can(quantize: Quantize) -> None:
    assert quantize(quantize_zoo.loop(), SECTIONS["dynamic"])[1].outcome.nodes.quantized == {"MatMul": 3}
    assert quantize(quantize_zoo.loop(), SECTIONS["u8s8"])[1].outcome.nodes.quantized == {"MatMul": 2}


def test_weights_in_blocks_of_8_bits_keep_more_than_those_of_4(quantize: Quantize) -> None:
    _, four = quantize(quantize_zoo.loop(), SECTIONS["int4"])
    _, eight = quantize(quantize_zoo.loop(), replace(SECTIONS["int4"], weight_type="uint8"))
    assert eight.outcome.fidelity.outputs[0].sqnr_db > four.outcome.fidelity.outputs[0].sqnr_db + 15


def test_what_was_fused_before_is_named(quantize: Quantize) -> None:
    _, report = quantize(model_zoo.conv_net(fused=True), SECTIONS["u8s8"])
    assert any("com.microsoft:FusedConv x3" in warning for warning in report.outcome.warnings)
    assert report.outcome.fidelity.status == "measured"


def test_convolutions_are_dynamic_only_when_named(quantize: Quantize) -> None:
    _, report = quantize(model_zoo.conv_net(), SECTIONS["dynamic"])
    assert not report.outcome.changed
    assert any("slower than in float" in entry.reason for entry in report.outcome.nodes.left)
    _, report = quantize(model_zoo.conv_net(), replace(SECTIONS["dynamic"], op_types=("Conv",)))
    assert report.outcome.nodes.quantized == {"Conv": 3}


def test_16_bit_types_raise_the_opset_and_say_so(quantize: Quantize) -> None:
    model, report = quantize(quantize_zoo.old_opset(), SECTIONS["w8a16 for qnn"])
    assert model.opset_import[0].version == 21
    assert list(report.outcome.notes) == ["the opset was raised from 9 to 21: pairs of 16-bit and 4-bit types need it"]


def test_16_bit_types_below_their_opset_use_the_pairs_of_the_runtime(
    quantize: Quantize, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
        raise RequestError("no adapter")

    monkeypatch.setattr("winml.modelkit.building.quantize.prepare.convert", refuse)
    model, report = quantize(quantize_zoo.shared_weight(), SECTIONS["w8a16 for qnn"])
    assert {node.domain for node in model.graph.node if node.op_type == "QuantizeLinear"} == {"com.microsoft"}
    assert report.outcome.fidelity.outputs[0].sqnr_db > 30
    assert "no adapter" in report.outcome.notes[0]


@pytest.mark.parametrize(
    ("changes", "quantized"),
    [
        ({"op_types": ("Conv",)}, {"Conv": 3}),
        ({"exclude_op_types": ("GlobalAveragePool", "Flatten", "Relu")}, {"Conv": 3}),
        ({"nodes": ("Conv_0",)}, {"Conv": 1}),
        ({"op_types": ("Conv",), "exclude_nodes": ("Conv_0",)}, {"Conv": 2}),
    ],
)
def test_operators_and_nodes_go_in_or_out(
    quantize: Quantize, changes: dict[str, Any], quantized: dict[str, int]
) -> None:
    _, report = quantize(model_zoo.conv_net(), replace(SECTIONS["u8s8"], **changes))
    assert report.outcome.nodes.quantized == quantized


def test_float16_keeps_the_types_of_inputs_and_outputs_unless_told(quantize: Quantize) -> None:
    kept, _ = quantize(model_zoo.conv_net(), SECTIONS["fp16"])
    assert kept.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    model, report = quantize(model_zoo.conv_net(), replace(SECTIONS["fp16"], keep_io_types=False))
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert report.outcome.fidelity.outputs[0].sqnr_db > 40


@pytest.mark.parametrize(
    ("every_s", "told"),
    [(0.0, [1, 2, 3, 4]), (3600.0, [1, 4])],
    ids=["slow samples", "quick samples"],
)
def test_progress_is_told_for_the_first_the_last_and_some_samples_between(
    quantize: Quantize, listener: Any, monkeypatch: pytest.MonkeyPatch, every_s: float, told: list[int]
) -> None:
    monkeypatch.setattr(stage, "_EVENT_EVERY_S", every_s)
    quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"])
    calibrating = [event for event in listener.events if isinstance(event, Calibrating)]
    assert [event.done for event in calibrating] == told


def test_the_report_says_where_ranges_come_from(quantize: Quantize) -> None:
    _, report = quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"])
    found = report.outcome.calibration
    assert (found.source, found.samples, found.seed, found.method) == ("random", 4, 0, "minmax")
    assert found.digest.startswith("sha256:")


@pytest.mark.parametrize("method", ["entropy", "percentile"])
def test_histograms_narrow_the_range_of_outliers(quantize: Quantize, tmp_path: Path, method: str) -> None:
    values = np.random.default_rng(0).standard_normal((16, 4, 8, 8)).astype(np.float32)
    values[0, 0, 0, 0] = 1000.0
    np.savez(tmp_path / "data.npz", x=values)
    section = replace(SECTIONS["u8s8"], calibration=DataSection(str(tmp_path / "data.npz")))
    wide, _ = quantize(quantize_zoo.shared_bias(), section)
    narrow, _ = quantize(quantize_zoo.shared_bias(), replace(section, calibration_method=method, percentile=99.0))

    def scale(model: onnx.ModelProto) -> float:
        return float(next(onnx.numpy_helper.to_array(t) for t in model.graph.initializer if t.name == "x_scale"))

    assert scale(narrow) < scale(wide) / 2


def test_a_quantized_or_compiled_model_is_refused(quantize: Quantize) -> None:
    model, _ = quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"])
    with pytest.raises(RequestError, match="is quantized already .qdq."):
        quantize(model, SECTIONS["u8s8"])
    model = model_zoo.text_model(
        "g (float[1] x) => (float[1] y) { y = com.microsoft.EPContext <main_context = 1> (x) }",
        extra=', "com.microsoft" : 1',
    )
    with pytest.raises(RequestError, match="is already compiled"):
        quantize(model, SECTIONS["fp16"])


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (replace(SECTIONS["u8s8"], calibration=None), "needs calibration data"),
        (replace(SECTIONS["dynamic"], calibration=quantize_zoo.RANDOM), "takes no calibration data"),
        (replace(SECTIONS["s8s8"], weight_type="uint8"), "int8 activations cannot go with uint8 weights"),
        (replace(SECTIONS["w8a16 for qnn"], calibration_method="entropy"), "the activations have 16 bits"),
        (replace(SECTIONS["w4a16 for qnn"], reduce_range=True), "is for 8-bit weights"),
        (QuantizeSection("static", calibration=quantize_zoo.RANDOM), "needs `activation_type`"),
        (replace(SECTIONS["dynamic"], weight_type="int4"), "int8 or uint8 weights, not int4"),
        (replace(SECTIONS["dynamic"], activation_type="uint16"), "uint8 activations, not uint16"),
        (replace(SECTIONS["int4"], weight_type="int16"), "4 or 8 bits, not int16"),
        (replace(SECTIONS["int4"], block_size=48), "power of 2 but got 48"),
        (replace(SECTIONS["fp16"], weight_type="int8"), "neither activations nor weights"),
        (replace(SECTIONS["u8s8"], nodes=("Konv_0",)), "no node `Konv_0`"),
        (replace(SECTIONS["u8s8"], op_types=("Convv",)), "no operator `Convv`"),
    ],
)
def test_what_cannot_be_done_is_one_clear_error(quantize: Quantize, section: QuantizeSection, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        quantize(quantize_zoo.shared_bias(), section)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((0, 4, 8, 8), np.float32), "sample"),
        (np.zeros((3, 4, 9, 9), np.float32), "must have shape"),
        (np.full((3, 4, 8, 8), np.nan, np.float32), "NaN"),
    ],
)
def test_bad_calibration_data_is_refused(quantize: Quantize, tmp_path: Path, values: np.ndarray, message: str) -> None:
    np.savez(tmp_path / "data.npz", x=values)
    section = replace(SECTIONS["u8s8"], calibration=DataSection(str(tmp_path / "data.npz")))
    with pytest.raises(DataError, match=message):
        quantize(quantize_zoo.shared_bias(), section)
    assert not (tmp_path / "quantized.onnx").exists()


def test_a_model_that_gives_nan_is_not_calibrated(quantize: Quantize) -> None:
    model = quantize_zoo.model([quantize_zoo.node("Sub", ["x", "x"], "z"), quantize_zoo.node("Div", ["z", "z"], "y")],
                               [], [2])  # fmt: skip
    with pytest.raises(DataError, match="gives NaN in output `y` for sample 1"):
        quantize(model, replace(SECTIONS["u8s8"], rules="qnn"))


def test_a_stop_between_two_samples_ends_it_and_leaves_nothing(
    quantize: Quantize, listener: Any, tmp_path: Path
) -> None:
    listener.stop.set()
    with pytest.raises(Interrupted):
        quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"])
    assert not (tmp_path / "quantized.onnx").exists()


def test_a_quantizer_that_trips_is_named(quantize: Quantize, monkeypatch: pytest.MonkeyPatch) -> None:
    def trip(self: Any) -> None:
        raise KeyError("no scale for bias")

    monkeypatch.setattr("onnxruntime.quantization.qdq_quantizer.QDQQuantizer._quantize_bias_tensors", trip)
    _, report = quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"])
    assert not report.outcome.changed
    (left,) = report.outcome.nodes.left
    assert "cannot quantize this model: KeyError: 'no scale for bias'" in left.reason
    assert any("KeyError: 'no scale for bias'" in text for text in report.outcome.warnings)


def test_kernels_that_saturate_are_told_apart_from_quantization() -> None:
    output = OutputFidelity(name="y", identical=False, cosine=0.98, sqnr_db=16.0, exact_sqnr_db=45.0, max_abs=0.1)
    assert saturates(output)
    assert not saturates(replace(output, sqnr_db=43.0))
    assert not saturates(replace(output, exact_sqnr_db=None))


def test_comparing_can_be_left_out(quantize: Quantize) -> None:
    _, report = quantize(quantize_zoo.shared_bias(), SECTIONS["u8s8"], compare=False)
    assert (report.outcome.fidelity.status, report.outcome.fidelity.reason) == ("skipped", "not asked for")


def test_a_model_with_external_data_is_quantized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listener: Any
) -> None:
    folder = tmp_path / "big"
    folder.mkdir()
    onnx.save(model_zoo.conv_net(), folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    args = {"model": str(folder / "m.onnx"), "output": str(tmp_path / "q.onnx")}
    report = run({**args, "section": values.to_json(SECTIONS["u8s8"])}, listener)
    assert report.outcome.nodes.quantized["Conv"] == 3
    assert report.outcome.size.before_bytes > 20_000
    assert not (tmp_path / "q.onnx.data").exists()


def test_a_quantized_model_has_no_names_that_the_runtime_makes_again(quantize: Quantize, tmp_path: Path) -> None:
    """Fused and named by the runtime, which would not open the result at its highest level."""
    workspace = Workspace(tmp_path)
    fused = Runner(workspace).apply(find("matmul_add_fusion"), workspace.open(pass_zoo.transformer(fused_norms=True)))
    assert fused is not None
    section = replace(SECTIONS["dynamic"], op_types=("Gemm",))
    model, report = quantize(files.load(fused.path), section, compare=False)
    assert report.outcome.changed
    assert not [name for name in values_of(model) if re.match(r"gemm_\w+_shape|.*_token_\d+$", name)]


def test_outputs_are_compared_at_sizes_that_the_model_runs_at(quantize: Quantize) -> None:
    model = pass_zoo.graph(
        "(float[b,past,4] cache, float[b,total,4] mask, float[b,1,4] new) => (float[b,total,4] y)"
        " { c = Concat<axis = 1>(cache, new)  s = Add(c, mask)  y = MatMul(s, w) }",
        w=np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32),
    )
    _, unsaid = quantize(model, SECTIONS["dynamic"])
    assert unsaid.outcome.fidelity.sizes == {"b": 1, "past": 1, "total": 1}  # all that runs, by broadcasting
    noted = {"sizes": {"b": 1, "past": 5, "total": 6}}
    model.metadata_props.add(key="winml.inputs", value=json.dumps(noted))
    _, said = quantize(model, SECTIONS["dynamic"])
    assert said.outcome.fidelity.status == "measured"
    assert said.outcome.fidelity.sizes == {"b": 1, "past": 5, "total": 6}


def _runs_everywhere(model: onnx.ModelProto) -> None:
    """Open and run a model at every level of the runtime."""
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
        inputs = {value.name: np.ones(value.shape, kinds[value.type]) for value in session.get_inputs()}
        session.run(None, inputs)


def _left(report: QuantizeReport) -> dict[str, str]:
    return {entry.op: entry.reason for entry in report.outcome.nodes.left}


def test_a_standard_attention_is_left_and_the_products_around_it_are_quantized(quantize: Quantize) -> None:
    nodes = [
        quantize_zoo.node("MatMul", ["x", "w"], "q"),
        quantize_zoo.node("Attention", ["q", "x", "x"], "y", q_num_heads=2, kv_num_heads=2),
    ]
    model, report = quantize(
        quantize_zoo.model(nodes, [quantize_zoo.weight("w", 8, 8)], [1, 4, 8], opset=23), SECTIONS["dynamic"]
    )
    assert report.outcome.nodes.quantized == {"MatMul": 1}
    assert "standard Attention" in _left(report)["Attention"]
    _runs_everywhere(model)


@pytest.mark.parametrize("words", ["dynamic", "u8s8", "u8u8", "w8a16 for qnn"])
@pytest.mark.parametrize("shape", [(8,), (3, 8, 4)], ids=str)
def test_a_product_with_a_weight_that_is_no_matrix_stays_right(
    quantize: Quantize, words: str, shape: tuple[int, ...]
) -> None:
    output: list[int | str] = [2, 3, 5] if len(shape) == 1 else [2, 3, 5, shape[-1]]
    nodes = [quantize_zoo.node("MatMul", ["x", "w"], "a"), quantize_zoo.node("Mul", ["a", "two"], "y")]
    weights = [quantize_zoo.weight("w", *shape), quantize_zoo.weight("two", 1)]
    model, report = quantize(quantize_zoo.model(nodes, weights, [2, 3, 5, 8], output=output), SECTIONS[words])
    if words in ("dynamic", "u8s8"):
        assert _left(report)["MatMul"] == f"its weight has {len(shape)} dimensions; kernels take two"
    if report.outcome.changed:
        assert report.outcome.fidelity.outputs[0].cosine > 0.99
    _runs_everywhere(model)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_only_float32_is_quantized_while_a_model_runs(quantize: Quantize, dtype: type) -> None:
    _, report = quantize(quantize_zoo.gemm(dtype=dtype), SECTIONS["dynamic"])
    assert not report.outcome.changed
    assert "only float32" in _left(report)["Gemm"]


def test_a_node_that_the_quantizer_trips_over_is_left_and_the_rest_is_quantized(quantize: Quantize) -> None:
    nodes = [
        quantize_zoo.node("LayerNormalization", ["x", "scale", "shift"], "n", axis=-2),
        quantize_zoo.node("MatMul", ["n", "w"], "y"),
    ]
    weights = [quantize_zoo.weight(name, 4, 8) for name in ("scale", "shift")]
    model, report = quantize(
        quantize_zoo.model(nodes, [*weights, quantize_zoo.weight("w", 8, 8)], [2, 4, 8]), SECTIONS["u8s8"]
    )
    assert report.outcome.nodes.quantized == {"MatMul": 1}
    assert "the quantizer of onnxruntime" in _left(report)["LayerNormalization"]
    assert report.outcome.warnings[0].startswith("nodes stay in float because they cannot be quantized")
    _runs_everywhere(model)


def test_float16_that_the_runtime_cannot_fuse_again_is_left(quantize: Quantize) -> None:
    """Its AttentionFusion ends with an error on float16 weights."""
    model, report = quantize(pass_zoo.transformer(fused_norms=True), SECTIONS["fp16"])
    assert report.outcome.changed
    assert report.outcome.fidelity.status == "measured"
    _runs_everywhere(model)


def test_sequences_keep_their_type_in_float16(quantize: Quantize) -> None:
    text = "seq (float[4,4] x) => (float[4,2] y) <int64[2] split = {2, 2}, int64 first = {0}> "
    body = "{ r = Relu(x)  s = SplitToSequence <axis = 1> (r, split)  a = SequenceAt(s, first)  y = Sigmoid(a) }"
    model, report = quantize(model_zoo.text_model(text + body), SECTIONS["fp16"])
    assert report.outcome.nodes.quantized == {"Relu": 1, "Sigmoid": 1}
    _runs_everywhere(model)


def test_a_model_without_operators_of_the_default_domain_needs_no_other_opset(quantize: Quantize) -> None:
    scaler = onnx.helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=[0.0], scale=[2.0])
    model = quantize_zoo.model([scaler], [], [2, 4])
    del model.opset_import[:]
    model.opset_import.add(domain="ai.onnx.ml", version=1)
    _, report = quantize(model, SECTIONS["u8s8"])
    assert not report.outcome.changed


def test_a_value_that_is_nan_has_no_range(quantize: Quantize) -> None:
    nodes = [
        quantize_zoo.node("Mul", ["x", "w"], "a"),
        quantize_zoo.node("Sqrt", ["minus"], "nan"),
        quantize_zoo.node("Mul", ["x", "nan"], "b"),
        quantize_zoo.node("IsNaN", ["b"], "c"),
        quantize_zoo.node("Where", ["c", "a", "b"], "y"),
    ]
    minus = numpy_helper.from_array(np.array([-1.0], np.float32), "minus")
    _, report = quantize(quantize_zoo.model(nodes, [quantize_zoo.weight("w", 8), minus], [2, 8]), SECTIONS["u8s8"])
    assert report.outcome.nodes.quantized == {"Mul": 1}
    assert LeftNodes("Mul", 1, "`b` reaches NaN, too far to quantize") in report.outcome.nodes.left


def test_an_error_names_the_model_and_no_copy_of_it(quantize: Quantize) -> None:
    text = "g (int16[2] x, int16[2] z) => (int16[2] y) { y = Max(x, z) }"
    with pytest.raises(RunFailedError, match="`model.onnx`") as caught:
        quantize(model_zoo.text_model(text), SECTIONS["dynamic"])
    assert "variant" not in caught.value.message


def test_models_that_crashed_a_process_are_not_run_again(quantize: Quantize) -> None:
    crashes = {"passes": {}, "source": "its process crashed with SIGFPE", "careful": False}
    _, report = quantize(model_zoo.conv_net(), SECTIONS["fp16"], crashes=crashes)
    assert report.outcome.changed
    assert list(report.outcome.warnings) == [
        "the outputs were not compared with the original's: running them: its process crashed with SIGFPE"
    ]
