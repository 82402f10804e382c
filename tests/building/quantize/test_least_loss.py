"""The method of each tensor: by what is computed from it, not by how far it is itself from what it was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import quantize_zoo
from winml.modelkit.building.quantize.calibrate import calibrate
from winml.modelkit.building.quantize.least_loss import grid
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.thresholds import Range
from winml.modelkit.building.quantize.types import ask_types
from winml.modelkit.core.errors import RequestError
from winml.modelkit.data.samples import Sample

BEST = replace(quantize_zoo.SECTIONS["u8s8"], calibration_method="best", percentile=99.0)


@dataclass(frozen=True)
class Made:
    """Samples of `x`."""

    values: list[np.ndarray]
    source: str = "made"

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return (Sample({"x": value}) for value in self.values)


def product(weight: np.ndarray, opset: int = 21) -> onnx.ModelProto:
    """A MatMul of 64 channels."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 16])],
        [numpy_helper.from_array(weight.astype(np.float32), "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def with_outlier() -> Made:
    """Normal values; the first channel of every sample has one that is far out."""
    rng = np.random.default_rng(0)
    samples = [rng.standard_normal((8, 64)).astype(np.float32) for _ in range(16)]
    for sample in samples:
        sample[0, 0] = 60.0
    return Made(samples)


def chosen(weight: np.ndarray, folder: Path, opset: int = 21) -> Any:
    model = product(weight, opset)
    runnable = Runnable(model, folder)
    types = ask_types(model, runnable).types
    return calibrate(runnable, ["x", "y"], ["y"], with_outlier(), BEST, lambda done, total: None, types=types)


def test_a_value_that_nothing_is_computed_from_is_cut_off(tmp_path: Path) -> None:
    weight = np.random.default_rng(1).standard_normal((64, 16))
    weight[0] = 0.0
    found = chosen(weight, tmp_path)
    assert found.methods["x"] == "percentile"
    assert found.ranges["x"].high < 3.0


def test_a_value_that_the_result_depends_on_is_kept(tmp_path: Path) -> None:
    weight = np.random.default_rng(1).standard_normal((64, 16)) * 0.01
    weight[0] = 10.0
    found = chosen(weight, tmp_path)
    assert found.methods["x"] != "percentile"
    assert found.ranges["x"].high > 59.0


def test_a_model_that_cannot_round_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="`best` needs opset 11") as caught:
        chosen(np.ones((64, 16)), tmp_path, opset=10)
    assert "--method mse" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("found", "changes", "steps"),
    [
        (Range(-1.0, 3.0), {}, (4 / 255, -64.0, 191.0)),
        (Range(1.0, 3.0), {}, (3 / 255, 0.0, 255.0)),
        (Range(-1.0, 3.0), {"symmetric_activations": True}, (6 / 255, -128.0, 127.0)),
        (Range(0.0, 0.0), {}, (1.0, 0.0, 255.0)),
        (Range(-1.0, 3.0), {"activation_type": "uint16"}, (4 / 65535, -16384.0, 49151.0)),
    ],
    ids=["both sides", "zero is always in", "symmetric", "nothing but zero", "16 bits"],
)
def test_a_range_has_the_steps_of_its_type(
    found: Range, changes: dict[str, Any], steps: tuple[float, float, float]
) -> None:
    assert grid(found, replace(BEST, **changes)) == pytest.approx(steps)
