"""How far outputs are apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from winml.modelkit.core.distance import Distance
from winml.modelkit.measuring.arms import distance


def apart(tmp_path: Path, a: Any, b: Any) -> Distance:
    np.savez(tmp_path / "a.npz", o0=np.asarray(a))
    np.savez(tmp_path / "b.npz", o0=np.asarray(b))
    return distance({"base": str(tmp_path / "a.npz"), "candidate": str(tmp_path / "b.npz")}, None).outputs[0]


def test_equal_outputs_have_no_distance_also_when_they_hold_nan(tmp_path: Path) -> None:
    for values in ([1.0, 2.0], [float("nan"), 1.0], [0.0, 0.0]):
        found = apart(tmp_path, np.float32(values), np.float32(values))
        assert (found.equal, found.cosine, found.relative) == (True, 1.0, 0.0)


def test_classes_are_equal_or_not_whatever_their_angle(tmp_path: Path) -> None:
    assert apart(tmp_path, np.int64([3]), np.int64([700])).cosine == 0.0
    assert apart(tmp_path, np.int64([1, 2, 3, 4]), np.int64([1, 2, 3, 5])).cosine == 0.75


def test_a_rescaled_output_has_a_relative_error(tmp_path: Path) -> None:
    found = apart(tmp_path, np.float32([1, 2, 3]), np.float32([10, 20, 30]))
    assert found.cosine == pytest.approx(1.0)
    assert found.relative == pytest.approx(9.0)


@pytest.mark.parametrize("other", [np.float32([[1], [2]]), np.int64([1, 2]), np.float32([np.inf, 1])])
def test_other_shapes_types_and_infinities_cannot_be_compared(tmp_path: Path, other: Any) -> None:
    assert apart(tmp_path, np.float32([1, 2]), other).cosine is None
