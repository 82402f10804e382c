from __future__ import annotations

import math

import numpy as np
import pytest

from winml.modelkit.core.statistics import sqnr_db
from winml.modelkit.session.distance import distance_of


def test_the_noise_ratio_is_signal_power_over_noise_power_in_db() -> None:
    signal = np.float32([3.0, -4.0])
    noise = np.float32([0.03, 0.04])
    found = distance_of(signal, signal + noise)
    expected = 10 * math.log10(float((signal**2).sum()) / float((noise**2).sum()))
    assert found.relative is not None
    assert sqnr_db(found.relative) == pytest.approx(expected, rel=1e-4)
    assert found.max_abs == pytest.approx(0.04, rel=1e-4)


def test_an_output_without_signal_has_a_difference_and_no_direction() -> None:
    found = distance_of(np.float32([0.0, 0.0]), np.float32([0.0, 2.0]))
    assert (found.equal, found.max_abs, found.cosine, found.relative) == (False, 2.0, None, None)
