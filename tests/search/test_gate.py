from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from winml.modelkit import sample
from winml.modelkit.core.config import DataSection, SessionSection
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.core.measurement import Arm
from winml.modelkit.core.target import Target
from winml.modelkit.measuring.rounds import ArmSpec
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
    judge = given.pop("judge", "value")
    request = GateRequest(data, "image-classification", min_agreement=min_agreement, judge=judge, **given)
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
