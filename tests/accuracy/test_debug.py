"""`winml debug` finds the layer that was damaged, on the target itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import winml.modelkit as wk
from winml.modelkit import sample
from winml.modelkit.accuracy import debug as debugging
from winml.modelkit.accuracy.debug import DebugRequest, debug, find_unexplained
from winml.modelkit.accuracy.messages import JudgedLayer
from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.accuracy.result import DebugResult
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, ModelkitError, RequestError, SessionError
from winml.modelkit.render.debug import debug_text

FAULTS = Path(__file__).parents[2] / "benchmarks" / "accuracy"


@pytest.fixture(scope="module")
def faults() -> Iterator[ModuleType]:
    """The module that plants faults, which is in no package."""
    sys.path.insert(0, str(FAULTS))
    yield __import__("faults")
    sys.path.remove(str(FAULTS))
    sys.modules.pop("faults")


def find(model: Path, reference: Path, target: str = "cpu", **changes: object) -> DebugResult:
    request = DebugRequest(str(model), str(reference), DataSection("random", limit=2), target=target, samples=2)
    return debug(DebugRequest(**{**vars(request), **changes}), lambda _: None)


@pytest.mark.parametrize("number", [0, 12])
def test_the_layer_that_was_damaged_comes_first(number: int, faults: ModuleType, tmp_path: Path) -> None:
    reference, damaged, _, _, values = faults.make_case(tmp_path, number)
    result = find(damaged, reference)
    assert faults.rank_of(result, damaged, values) == 1
    assert result.method == "exposed"
    assert result.layers[0].label in result.summary[1]
    assert result.synthetic
    assert "random" in result.warnings[-1]
    first = debug_text(result).splitlines()[len(result.summary) + 3]
    assert first.split()[0] == result.layers[0].label


@pytest.mark.qnn
def test_on_an_npu_the_cpu_is_asked_too(faults: ModuleType, tmp_path: Path) -> None:
    reference, damaged, _, _, values = faults.make_case(tmp_path, 7)
    result = find(damaged, reference, "qnn/npu")
    assert faults.rank_of(result, damaged, values) == 1
    assert result.target.simulated
    assert {layer.ep for layer in result.layers} <= {"QNNExecutionProvider", "CPUExecutionProvider", None}
    measured = [layer for layer in result.layers if layer.own is not None and not layer.own.equal]
    assert all(layer.on_cpu is not None for layer in measured)


def test_calibration_data_of_another_range_is_said(tmp_path: Path) -> None:
    """The sample calibrated on images that are four times as dark: its input is what loses."""
    images = np.load(sample.CALIBRATION)["image"]
    np.savez(tmp_path / "dark.npz", image=images / 4)
    wk.quantize(
        sample.MODEL, output=tmp_path / "dark.onnx", target="cpu", precision="int8", calibration=tmp_path / "dark.npz"
    )
    result = find(tmp_path / "dark.onnx", sample.MODEL, data=DataSection(str(sample.TEST), limit=2))
    first = result.layers[0]
    assert (first.label, first.kind) == ("image", "input")
    assert first.clipped is not None
    assert first.clipped > 0.2
    assert "beyond the range" in result.summary[1]
    assert not result.synthetic


def test_the_model_itself_is_no_reference(faults: ModuleType, tmp_path: Path) -> None:
    onnx.save(faults.perceptron(np.random.default_rng(0)), tmp_path / "m.onnx")
    with pytest.raises(RequestError, match="same file"):
        find(tmp_path / "m.onnx", tmp_path / "m.onnx")


def test_models_that_have_nothing_in_common_are_an_error(faults: ModuleType, tmp_path: Path) -> None:
    onnx.save(faults.perceptron(np.random.default_rng(0)), tmp_path / "a.onnx")
    graph = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[1, 32] x) => (float[1, 32] z) { z = Sin(x) }'
    )
    onnx.save(graph, tmp_path / "b.onnx")
    with pytest.raises(DataError, match="share no value"):
        find(tmp_path / "b.onnx", tmp_path / "a.onnx")


def test_data_that_does_not_fit_is_an_error(faults: ModuleType, tmp_path: Path) -> None:
    reference, damaged, *_ = faults.make_case(tmp_path, 1)
    np.savez(tmp_path / "other.npz", x=np.zeros((2, 5), np.float32))
    with pytest.raises(ModelkitError, match="x"):
        find(damaged, reference, data=DataSection(str(tmp_path / "other.npz")))


def test_numbers_that_are_none_come_first(faults: ModuleType, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    model = faults.perceptron(rng)
    onnx.save(model, tmp_path / "fp32.onnx")
    weight = model.graph.initializer[4]
    array = numpy_helper.to_array(weight).copy()
    array[0, 0] = np.nan
    weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    onnx.save(model, tmp_path / "nan.onnx")
    result = find(tmp_path / "nan.onnx", tmp_path / "fp32.onnx")
    broken = next(node.output[0] for node in model.graph.node if weight.name in node.input)
    assert result.layers[0].value == broken
    assert result.layers[0].own is not None
    assert result.layers[0].own.not_finite
    assert any("NaN or infinity" in line for line in result.summary)


def test_a_layer_that_the_ep_refuses_is_a_row_and_not_the_end(
    faults: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions with one layer are refused, so that its group is divided until it stands alone."""
    reference, damaged, *_ = faults.make_case(tmp_path, 1)
    refused = 3
    original = debugging._Debugging.ask_run

    def ask_run(self: object, worker: object, model: str, tag: str, **options: object) -> object:
        if tag.startswith("own"):
            first, _, count = tag.removeprefix("own").partition("x")
            if int(first) <= refused < int(first) + int(count):
                raise SessionError("no such kernel")
        return original(self, worker, model, tag, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(debugging._Debugging, "ask_run", ask_run)
    result = find(damaged, reference)
    states = [layer.state for layer in result.layers]
    assert states.count("refused") == 1
    assert states.count("measured") == len(states) - 1
    assert [layer.reason for layer in result.layers if layer.state == "refused"] == ["no such kernel"]
    assert any("no such kernel" in line for line in result.summary)


def test_where_values_cannot_be_outputs_layers_run_one_after_another(
    faults: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, damaged, _, _, values = faults.make_case(tmp_path, 1)
    together = find(damaged, reference)
    original = debugging._Debugging.ask_run

    def ask_run(self: object, worker: object, model: str, tag: str, **options: object) -> object:
        if tag.startswith("exposed"):
            raise SessionError("too many outputs")
        return original(self, worker, model, tag, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(debugging._Debugging, "ask_run", ask_run)
    result = find(damaged, reference)
    assert result.method == "chained"
    assert "too many outputs" in result.warnings[0]
    assert faults.rank_of(result, damaged, values) == 1
    for ours, other in zip(result.layers, together.layers, strict=True):
        assert ours.value == other.value
        assert ours.accumulated is not None
        assert other.accumulated is not None
        assert ours.accumulated.sqnr_db == pytest.approx(other.accumulated.sqnr_db, abs=0.5)


def parsed(path: Path, text: str) -> Path:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}'), path)
    return path


def test_a_reference_that_is_quantized_is_refused(faults: ModuleType, tmp_path: Path) -> None:
    reference, damaged, *_ = faults.make_case(tmp_path, 1)
    with pytest.raises(RequestError, match="reference is a quantized model"):
        find(reference, damaged)


def test_an_input_that_the_reference_does_not_have_is_an_error(tmp_path: Path) -> None:
    a = parsed(tmp_path / "a.onnx", "g (float[1, 4] x) => (float[1, 4] y) { h = Relu(x) y = Sin(h) }")
    b = parsed(tmp_path / "b.onnx", "g (float[1, 4] z) => (float[1, 4] y) { h = Relu(z) y = Sin(h) }")
    with pytest.raises(DataError, match="reads `z`"):
        find(b, a)


def test_outputs_that_are_not_compared_are_named(tmp_path: Path) -> None:
    """A whole number has no noise: what is not compared is not equal."""
    before = "g (float[1, 4] x) => (int64[1, 1] top) { h = Relu(x) top = ArgMax <axis: int = 1> (h) }"
    a = parsed(tmp_path / "a.onnx", before)
    b = parsed(tmp_path / "b.onnx", before.replace("Relu", "LeakyRelu"))
    result = find(b, a)
    assert result.outputs == ()
    assert "top" in result.warnings[0]
    assert all(layer.effect is None for layer in result.layers)


def test_a_small_output_is_not_hidden_by_a_large_one(tmp_path: Path) -> None:
    text = """g (float[1, 4] x) => (float[1, 4] boxes, float[1, 4] scores)
        <float one = {0.001}, float many = {1000.0}> {{ boxes = Mul(x, many) s = Mul(x, one) scores = OP(s) }}"""
    text = text.replace("{{", "{").replace("}}", "}")
    a = parsed(tmp_path / "a.onnx", text.replace("OP", "Sin"))
    b = parsed(tmp_path / "b.onnx", text.replace("OP", "Tan"))
    result = find(b, a)
    first = result.layers[0]
    assert first.value == "scores"
    assert first.effect is not None
    assert first.own is not None
    assert first.effect.sqnr_db == pytest.approx(first.own.sqnr_db, abs=0.1)


def test_a_reference_that_is_random_has_no_effects(tmp_path: Path) -> None:
    text = "g (float[1, 4] x) => (float[1, 4] y) { h = OP(x) r = RandomNormalLike(h) y = Add(h, r) }"
    a = parsed(tmp_path / "a.onnx", text.replace("OP", "Sin"))
    b = parsed(tmp_path / "b.onnx", text.replace("OP", "Tan"))
    result = find(b, a)
    assert all(layer.effect is None for layer in result.layers)
    assert any("other outputs each time" in line for line in result.warnings)


def _noise(ratio: float) -> Noise:
    return Noise(sqnr_db=ratio, cosine=0.9, equal=False, not_finite=0)


def _layer(value: str, own: float, within: float) -> JudgedLayer:
    return JudgedLayer(
        value=value, nodes=(), operators=("MatMul",), own=_noise(own), on_cpu=None, accumulated=_noise(-5),
        within=_noise(within), clipped=None, effect=None, comparable=True,
    )  # fmt: skip


def test_a_layer_that_goes_wrong_within_the_model_only_is_found() -> None:
    layers = (_layer("a", 40, 39), _layer("b", 36, -6), _layer("c", 38, 37))
    assert find_unexplained(SimpleNamespace(layers=layers)) == [None, pytest.approx(42), None]  # type: ignore[arg-type]
