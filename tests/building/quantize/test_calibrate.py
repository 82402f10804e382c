"""Calibration: the same ranges as all values at once would give, and memory that does not grow with the samples."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import model_zoo
import quantize_zoo
from winml.modelkit.building.quantize import calibrate as module
from winml.modelkit.building.quantize.calibrate import calibrate
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.thresholds import Range
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample

SECTION = quantize_zoo.SECTIONS["u8s8"]


@dataclass(frozen=True)
class Made:
    """Samples of `x`."""

    values: list[np.ndarray]
    source: str = "made"

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return (Sample({"x": value}) for value in self.values)


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture
def relu(tmp_path: Path) -> Runnable:
    return Runnable(model_zoo.relu(), tmp_path)


def normal(count: int) -> Made:
    rng = np.random.default_rng(0)
    return Made([rng.standard_normal((1, 4)).astype(np.float32) for _ in range(count)])


def test_ranges_are_those_of_all_samples_together(relu: Runnable) -> None:
    samples = normal(20)
    found = calibrate(relu, ["x", "y"], ["y"], samples, SECTION, silent)
    together = np.stack(samples.values)
    assert found.ranges["x"] == Range(float(together.min()), float(together.max()))
    assert found.ranges["y"] == Range(0.0, float(together.max()))
    assert found.runs == 20


def test_histograms_do_not_depend_on_the_groups_they_are_made_in(
    relu: Runnable, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = replace(SECTION, calibration_method="percentile", percentile=90.0)
    whole = calibrate(relu, ["x", "y"], ["y"], normal(200), section, silent)
    monkeypatch.setattr(module, "GROUP_ELEMENTS", 1)
    assert calibrate(relu, ["x", "y"], ["y"], normal(200), section, silent) == whole
    values = np.stack(normal(200).values)
    assert whole.ranges["x"].low == pytest.approx(np.percentile(values, 5), abs=0.05)


def test_samples_may_differ_in_their_open_dimensions(relu: Runnable) -> None:
    samples = Made([np.full((size, 4), size, np.float32) for size in (1, 5, 3)])
    assert calibrate(relu, ["x"], ["y"], samples, SECTION, silent).ranges["x"] == Range(1.0, 5.0)


def test_a_value_that_is_always_empty_has_the_range_of_zero(relu: Runnable) -> None:
    samples = Made([np.zeros((0, 4), np.float32)])
    assert calibrate(relu, ["x"], ["y"], samples, SECTION, silent).ranges["x"] == Range(0.0, 0.0)


def test_values_that_reach_too_far_have_no_range(relu: Runnable) -> None:
    samples = Made([np.array([[0, 1, 2, np.finfo(np.float32).max]], np.float32)])
    found = calibrate(relu, ["x", "y"], ["y"], samples, SECTION, silent)
    assert not found.ranges
    assert found.endless["x"] == "0 to 3.4e+38"


def test_no_samples_are_an_error(relu: Runnable) -> None:
    with pytest.raises(DataError, match="has no samples"):
        calibrate(relu, ["x"], ["y"], Made([]), SECTION, silent)


MEMORY = """
import json, sys, threading
from pathlib import Path
from winml.modelkit.core import values
from winml.modelkit.core.config import DataSection, QuantizeSection
from winml.modelkit.building.quantize.stage import run
from winml.modelkit.worker.memory import memory_of

class Silent:
    stop = threading.Event()
    def tell(self, event): pass

section = QuantizeSection("static", activation_type="uint8", weight_type="int8",
                          calibration_method="percentile", calibration=DataSection("random", limit=int(sys.argv[2])))
run({"model": sys.argv[1], "output": "q.onnx", "section": values.to_json(section)}, Silent())
print(json.dumps(memory_of()["peak_bytes"]))
"""


def test_peak_memory_does_not_grow_with_the_samples(tmp_path: Path) -> None:
    """The values of one sample are 2.4 MiB; 60 more would be 140 MiB if they were kept."""
    onnx.save(model_zoo.conv_net(channels=16, size=80), tmp_path / "m.onnx")
    peaks = []
    for count in ("4", "64"):
        result = subprocess.run(
            [sys.executable, "-c", MEMORY, str(tmp_path / "m.onnx"), count],
            cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        peaks.append(json.loads(result.stdout))
    assert peaks[1] - peaks[0] < 40 * 2**20
