"""`winml quantize --sensitivity`: what quantizing each layer alone does, measured once and kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

import winml.modelkit as wk
from winml.modelkit import sample
from winml.modelkit.accuracy import sensitivity as measuring
from winml.modelkit.accuracy.groups import find_groups
from winml.modelkit.accuracy.sensitivity import SensitivityRequest, sensitivity
from winml.modelkit.accuracy.sensitivity_result import SensitivityResult
from winml.modelkit.api import display as api_display
from winml.modelkit.building.quantize.command import QuantizeRequest
from winml.modelkit.cli import main
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, RequestError, SessionError
from winml.modelkit.core.values import read, to_json
from winml.modelkit.render.sensitivity import sensitivity_text
from winml.modelkit.reporting.runs import find_kind

FAULTS = Path(__file__).parents[2] / "benchmarks" / "accuracy"


@pytest.fixture(scope="module")
def faults() -> Iterator[ModuleType]:
    """The module with the networks, which is in no package."""
    sys.path.insert(0, str(FAULTS))
    yield __import__("faults")
    sys.path.remove(str(FAULTS))
    sys.modules.pop("faults")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(faults: ModuleType, tmp_path: Path) -> Path:
    """A perceptron in which one layer has large weights for an input that is always zero: only its scale suffers."""
    made = faults.perceptron(np.random.default_rng(0))
    for number, place, factor in ((4, np.s_[:, 0], 0.0), (5, np.s_[0], 0.0), (6, np.s_[0, :], 200.0)):
        tensor = made.graph.initializer[number]
        array = onnx.numpy_helper.to_array(tensor).copy()
        array[place] *= factor
        tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    onnx.save(made, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def request_for(model: Path, **changes: object) -> SensitivityRequest:
    quantize = QuantizeRequest(
        str(model),
        "",
        target="cpu",
        precision="int8",
        data=DataSection("random", limit=4),
        changes={"per_channel": False},
    )
    return SensitivityRequest(**{"quantize": quantize, "samples": 2, **changes})  # type: ignore[arg-type]


def measure(model: Path, **changes: object) -> SensitivityResult:
    return sensitivity(request_for(model, **changes), lambda _: None)


def test_the_layer_with_the_outlier_comes_first_and_a_second_run_is_free(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = measure(model)
    spoiled = next(n for n in onnx.load(model).graph.node if onnx.load(model).graph.initializer[6].name in n.input)
    assert result.groups[0].label == spoiled.name
    assert result.cached == 0
    assert all(group.effect.state == "measured" for group in result.groups)
    assert result.whole.worst is not None
    assert result.groups[0].effect.worst is not None
    # What all layers do together is no less than what the worst does alone.
    assert result.whole.worst.rank <= result.groups[0].effect.worst.rank + 1
    assert result.unquantized.worst is not None
    assert result.unquantized.worst.rank > 100
    assert spoiled.name in sensitivity_text(result)
    # The second run asks no worker to calibrate.
    monkeypatch.setattr(measuring._Measuring, "plan", None)
    again = measure(model)
    assert again.cached == len(again.groups) + 2
    assert "all of" in again.notes[-1]
    assert [group.label for group in again.groups] == [group.label for group in result.groups]
    assert read(SensitivityResult, to_json(again)) == again


def test_an_interrupted_run_goes_on(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = measuring._Measuring.run_variant, []

    def run_variant(self: object, nodes: tuple[str, ...], number: int) -> object:
        calls.append(number)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, nodes, number)  # type: ignore[arg-type]

    monkeypatch.setattr(measuring._Measuring, "run_variant", run_variant)
    with pytest.raises(KeyboardInterrupt):
        measure(model)
    result = measure(model)
    assert result.cached == 2
    assert len(calls) == 3 + len(result.groups) + 2 - 2


@pytest.mark.slow
def test_another_precision_is_measured_by_itself(model: Path) -> None:
    measure(model, grouping="op-type")
    request = request_for(model, grouping="op-type")
    other = QuantizeRequest(**{**vars(request.quantize), "changes": {"per_channel": True}})
    result = measure(model, grouping="op-type", quantize=other)
    # Nothing quantized is the same for both, yet the section is another, and so is the key.
    assert result.cached == 0


def test_a_layer_that_the_ep_refuses_is_a_row(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = measuring._Measuring.ask_run

    def ask_run(self: object, path: str) -> object:
        if path.endswith("-3.onnx"):
            raise SessionError("no such kernel")
        return original(self, path)  # type: ignore[arg-type]

    monkeypatch.setattr(measuring._Measuring, "ask_run", ask_run)
    result = measure(model)
    first = result.groups[0].effect
    assert (first.state, first.reason) == ("refused", "no such kernel")
    assert [group.effect.state for group in result.groups].count("refused") == 1
    assert any("no such kernel" in line for line in result.summary)


@pytest.mark.slow
def test_with_a_task_the_metric_ranks(tmp_path: Path) -> None:
    data = np.load(sample.TEST)
    np.savez(tmp_path / "few.npz", **{name: data[name][:24] for name in data.files})
    quantize = QuantizeRequest(
        str(sample.MODEL), "", target="cpu", precision="int8", data=DataSection(str(sample.CALIBRATION), limit=8)
    )
    request = SensitivityRequest(
        quantize=quantize, data=DataSection(str(tmp_path / "few.npz")), task="image-classification", grouping="op-type",
        samples=24,
    )  # fmt: skip
    result = sensitivity(request, lambda _: None)
    assert result.metric == "accuracy"
    assert result.before is not None
    measured = [group.effect for group in result.groups if group.effect.state == "measured"]
    assert measured
    for effect in measured:
        assert effect.metric is not None
        assert effect.drop == pytest.approx(result.before - effect.metric, abs=1e-9)
    assert "drop" in sensitivity_text(result)


def test_the_cli_writes_a_result_that_has_a_report(tmp_path: Path) -> None:
    path = tmp_path / "layers.json"
    words = ["quantize", "--sample", "--sensitivity", "--group", "op-type", "--target", "cpu", "-o", str(path)]
    assert main.run(words) == 0
    value = json.loads(path.read_text())
    assert value["schema"] == "winml/sensitivity/1"
    assert find_kind(path) == "sensitivity"
    wk.report(path, output=tmp_path / "page.html")
    assert "Noise of the outputs" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<svg" in api_display.html(read(SensitivityResult, value))


def test_a_limit_and_sensitivity_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["quantize", "--sample", "--sensitivity", "--min-agreement", "0.9"]) == 2
    assert "no limit to hold" in capsys.readouterr().err
    assert main.run(["quantize", "--sample", "-o", "x.onnx", "--group", "block"]) == 2
    assert "for `--sensitivity`" in capsys.readouterr().err


def test_outputs_that_are_no_floats_are_an_error(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]> g (float[1, 4] x) => (int64[1, 1] top)
        <float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}> {
            h = MatMul(x, w)
            top = ArgMax <axis: int = 1> (h)
        }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "top.onnx")
    with pytest.raises(DataError, match="no output of the model is a float"):
        measure(tmp_path / "top.onnx")


def test_a_precision_without_calibration_needs_data(model: Path) -> None:
    quantize = QuantizeRequest(str(model), "", target="cpu", precision="dynamic")
    with pytest.raises(RequestError, match="no data to run variants on"):
        sensitivity(SensitivityRequest(quantize=quantize), lambda _: None)
    result = sensitivity(
        SensitivityRequest(quantize=quantize, data=DataSection("random", limit=2), grouping="op-type"), lambda _: None
    )
    assert result.whole.state == "measured"


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')


RESIDUAL = """g (float[1, 4] x) => (float[1, 4] y) {
    [a] a = Sin(x)
    [b] b = Relu(a)
    [c] c = Cos(b)
    [d] d = Add(b, c)
    [e] y = Tan(d)
}"""


def test_groups_of_a_graph_with_a_residual() -> None:
    model, names = parsed(RESIDUAL), "abcde"
    assert [group.nodes for group in find_groups(model, names, "layer")] == [("a", "b"), ("c",), ("d",), ("e",)]
    # Between b and d two values are alive.
    assert [group.nodes for group in find_groups(model, names, "block")] == [("a", "b"), ("c", "d"), ("e",)]
    kinds = {group.label: group.nodes for group in find_groups(model, names, "op-type")}
    assert kinds == {"Sin": ("a", "b"), "Cos": ("c",), "Add": ("d",), "Tan": ("e",)}
    # A follower of a node that is not quantized stands for itself.
    assert [group.nodes for group in find_groups(model, "bd", "layer")] == [("b",), ("d",)]
