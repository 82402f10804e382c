from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from winml.modelkit import sample
from winml.modelkit.app.search_gate import Gate, GateRequest
from winml.modelkit.bench.compare import ArmSpec
from winml.modelkit.core.config import DataSection, SessionSection
from winml.modelkit.core.measurement import Arm
from winml.modelkit.core.target import Target


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
    arm = Arm(str(model), Target("cpu", "cpu"), SessionSection(threads=1))
    return ArmSpec(arm, model.stem, None, "onnxruntime", {})


def gate(folder: Path, min_agreement: float | None) -> Gate:
    request = GateRequest(DataSection(str(sample.TEST), limit=32), "image-classification", min_agreement=min_agreement)
    made = Gate(request, sample.MODEL.parent, folder)
    made.reference(spec(sample.MODEL))
    return made


def test_with_labels_outputs_need_not_agree_unless_a_limit_is_given(tmp_path: Path, shifted: Path) -> None:
    free = gate(tmp_path, None).check(spec(shifted))
    assert free.passed
    held = gate(tmp_path, 0.9).check(spec(shifted))
    assert not held.passed
    assert held.reason.startswith("agreement with the given model is -0.")
    assert held.reason.endswith("the least is 0.9")
    assert gate(tmp_path, 0.9).check(spec(sample.MODEL)).passed
