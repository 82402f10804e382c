"""Nodes in other forms for a device that computes them wrongly: the same numbers, and right on the device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from winml.modelkit.building.quantize import device_forms
from winml.modelkit.building.quantize.result import QuantizeReport
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.target import Target
from winml.modelkit.ep.precision import quantize_section
from winml.modelkit.session.distance import distance_of
from winml.modelkit.session.session import WinMLSession

NPU = Target("qnn", "npu", simulated=True)
SMALL = DataSection("random", limit=4, ranges={"x": (-0.9, 0.9)})

RMS_NORM = """
<ir_version: 10, opset_import: ["" : 21]>
norm (float[1,16,32] x) => (float[1,16,32] y)
<int64[1] last = {-1}, float[1] epsilon = {0.00001}>
{
    square = Mul (x, x)
    mean = ReduceMean <keepdims = 1> (square, last)
    sum = Add (mean, epsilon)
    root = Sqrt (sum)
    one_over = Reciprocal (root)
    y = Mul (x, one_over)
}
"""
POOLED = """
<ir_version: 10, opset_import: ["" : 21]>
pool (float[1,64,16] x) => (float[1,16,1,1] y)
<int64[1] made = {-2}, int64[2] both = {-1, -2}>
{
    channels = Transpose <perm = [0, 2, 1]> (x)
    rows = Unsqueeze (channels, made)
    y = ReduceMean <keepdims = 1> (rows, both)
}
"""
"""How Swin takes the mean of its words."""


@pytest.mark.qnn
@pytest.mark.parametrize(("text", "note"), [(RMS_NORM, "npu-108"), (POOLED, "npu-109")], ids=["norm", "pool"])
def test_a_node_that_the_npu_gets_wrong_is_right_after_quantizing(
    text: str, note: str, quantize: Callable[..., tuple[onnx.ModelProto, QuantizeReport]], tmp_path: Path
) -> None:
    section = quantize_section(NPU, "w8a16", calibration=SMALL)
    _, report = quantize(onnx.parser.parse_model(text), section)
    assert note in " ".join(report.outcome.notes)
    shape = (1, 16, 32) if text is RMS_NORM else (1, 64, 16)
    x = np.random.default_rng(1).uniform(-0.9, 0.9, shape).astype(np.float32)
    with WinMLSession(tmp_path / "model.onnx") as source, WinMLSession(tmp_path / "quantized.onnx", target=NPU) as npu:
        found = distance_of(source.run({"x": x})["y"], npu.run({"x": x})["y"])
    assert found.cosine is not None
    assert found.relative is not None
    assert found.cosine > 0.999
    assert found.relative < 0.05, "not only the direction: a wrong 1 makes every number smaller"


def test_other_rules_and_other_types_leave_a_model_as_it_is() -> None:
    model = onnx.parser.parse_model(RMS_NORM)
    assert device_forms.rewrite(model, "ort") == ()
    half = onnx.parser.parse_model(RMS_NORM.replace("float[1,16,32]", "float16[1,16,32]"))
    assert device_forms.rewrite(half, "qnn") == ()
    assert [node.op_type for node in half.graph.node] == [node.op_type for node in model.graph.node]
