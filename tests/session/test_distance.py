from __future__ import annotations

import math

import numpy as np
import pytest

from winml.modelkit.session.distance import distance_of, sqnr_db


def test_the_noise_ratio_is_signal_power_over_noise_power_in_db() -> None:
    signal = np.float32([3.0, -4.0])
    noise = np.float32([0.03, 0.04])
    found = distance_of(signal, signal + noise)
    expected = 10 * math.log10(float((signal**2).sum()) / float((noise**2).sum()))
    assert sqnr_db(found["relative"]) == pytest.approx(expected, rel=1e-4)
    assert found["max_abs"] == pytest.approx(0.04, rel=1e-4)
