from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from winml.modelkit import sample
from winml.modelkit.core.config import DataSection, SessionSection
from winml.modelkit.core.errors import CheckFailed, RequestError, RunFailedError
from winml.modelkit.core.measurement import Arm
from winml.modelkit.core.target import Target
from winml.modelkit.evaluation.custom_metric import make_metric
from winml.modelkit.measuring.rounds import ArmSpec
from winml.modelkit.search import gate as gates
from winml.modelkit.search.gate import Gate, GateRequest


@pytest.fixture
def shifted(tmp_path: Path) -> Path:
    """The sample with every score moved by the same amount: the same answers from other outputs."""
    model = onnx.load(sample.MODEL)
    output = model.graph.output[0].name
    for node in model.graph.node:
        node.output[:] = ["before" if name == output else name for name in node.output]
    model.graph.initializer.append(numpy_helper.from_array(np.float32(1000.0), "far"))
    model.graph.node.append(helper.make_node("Add", ["before", "far"], [output]))
    onnx.save(model, tmp_path / "shifted.onnx")
    return tmp_path / "shifted.onnx"


def spec(model: Path) -> ArmSpec:
    arm = Arm(artifact=str(model), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    return ArmSpec(arm, model.stem, None, "onnxruntime", {})


def gate(folder: Path, min_agreement: float | None, **given: Any) -> Gate:
    data = DataSection(str(sample.TEST), limit=32)
    judge, task = given.pop("judge", "value"), given.pop("task", "image-classification")
    request = GateRequest(data, task, min_agreement=min_agreement, judge=judge, **given)
    made = Gate(request, sample.MODEL.parent, folder)
    made.reference(spec(sample.MODEL))
    return made


def test_with_labels_outputs_need_not_agree_unless_a_limit_is_given(tmp_path: Path, shifted: Path) -> None:
    free = gate(tmp_path, None).check(spec(shifted))
    assert free.passed
    held = gate(tmp_path, 0.9).check(spec(shifted))
    assert not held.passed
    assert held.reason.startswith("agreement with the given model is -0.")
    assert held.reason.endswith("the minimum is 0.9")
    assert gate(tmp_path, 0.9).check(spec(sample.MODEL)).passed


def test_data_that_could_never_show_so_small_a_drop_end_the_search_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="32 samples cannot show that a drop stays within 0.01") as caught:
        gate(tmp_path, None, judge="interval")
    assert "about 268 samples like these would decide" in (caught.value.hint or "")
    assert gate(tmp_path, None, judge="interval", max_drop=0.2).check(spec(sample.MODEL)).passed


def largest_logit(outputs: Any, sample: Any) -> float:
    """No task knows it, and moving all scores moves it."""
    return float(outputs["logits"].max())


def test_a_function_of_the_user_judges_every_config_and_needs_no_task(tmp_path: Path, shifted: Path) -> None:
    custom = replace(make_metric(largest_logit), lower=True)
    limited = gate(tmp_path, None, task=None, custom=custom, max_metric=500.0, max_drop=900.0)
    same = limited.check(spec(sample.MODEL))
    assert same.passed
    assert same.accuracy is not None
    assert (same.accuracy.metric, same.accuracy.drop) == ("largest_logit", 0.0)
    moved = limited.check(spec(shifted))
    assert not moved.passed
    assert "largest_logit" in moved.reason
    assert "500" in moved.reason
    assert "900" in moved.reason


def test_a_given_model_beyond_the_limit_of_a_function_ends_the_search(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match=r"largest_logit of the given model is .*, above -5"):
        gate(tmp_path, None, task=None, custom=replace(make_metric(largest_logit), lower=True), max_metric=-5.0)
    with pytest.raises(RequestError, match="has no maximum"):
        gate(tmp_path, None, task=None, custom=make_metric(largest_logit), max_metric=5.0)


def test_outputs_that_a_function_cannot_score_are_no_reason_to_end_a_search(tmp_path: Path, shifted: Path) -> None:
    def small(outputs: Any, sample: Any) -> float:
        return float("nan") if outputs["logits"].max() > 500 else 1.0

    answer = gate(tmp_path, None, task=None, custom=make_metric(small), max_drop=0.5).check(spec(shifted))
    assert not answer.passed
    assert "small" in answer.reason
    assert "returned nan" in answer.reason


def test_a_named_metric_and_options_of_the_task_reach_the_run(tmp_path: Path) -> None:
    answer = gate(tmp_path, None, metric="accuracy", min_metric=0.5).check(spec(sample.MODEL))
    assert answer.passed
    with pytest.raises(RequestError, match="no_such"):
        gate(tmp_path, None, metric="no_such", min_metric=0.5)
    with pytest.raises(RequestError, match="takes no option|no option"):
        gate(tmp_path, None, task_options={"treshold": "0.5"}, min_metric=0.5)


def broken(folder: Path) -> Path:
    """The sample with its scores in the wrong order: nearly every answer is wrong."""
    model = onnx.load(sample.MODEL)
    output = model.graph.output[0].name
    for node in model.graph.node:
        node.output[:] = ["before" if name == output else name for name in node.output]
    model.graph.node.append(helper.make_node("Neg", ["before"], [output]))
    onnx.save(model, folder / "broken.onnx")
    return folder / "broken.onnx"


def test_a_config_that_collapses_is_refused_on_few_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shifted: Path
) -> None:
    monkeypatch.setattr(gates, "FEW_FIRST_S", 0.0)
    request = GateRequest(DataSection(str(sample.TEST), limit=300), "image-classification", max_drop=0.02)
    made = Gate(request, sample.MODEL.parent, tmp_path)
    made.reference(spec(sample.MODEL))
    answer = made.check(spec(broken(tmp_path)))
    assert not answer.passed
    assert answer.reason.endswith("on the first 64 samples, limit 0.02; the others were not looked at")
    assert answer.accuracy is not None
    assert answer.accuracy.samples == 64
    kept = made.check(spec(shifted))
    assert kept.passed
    assert kept.accuracy is not None
    assert kept.accuracy.samples == 300


def test_data_that_are_few_or_quick_are_looked_at_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "FEW_FIRST_S", 1e9)
    request = GateRequest(DataSection(str(sample.TEST), limit=300), "image-classification", max_drop=0.02)
    made = Gate(request, sample.MODEL.parent, tmp_path)
    made.reference(spec(sample.MODEL))
    answer = made.check(spec(broken(tmp_path)))
    assert not answer.passed
    assert answer.accuracy is not None
    assert answer.accuracy.samples == 300
