from __future__ import annotations

import pytest

from winml.modelkit.measuring.calibration import ClockValues
from winml.modelkit.measuring.events import RoundsStarted
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.rounds import ComparePlan, expect_rounds

PLAN = ComparePlan(
    mode="together",
    metric="cpu",
    protocol=PROTOCOLS["cpu"],
    raise_priority=False,
    round_timeout_s=60.0,
    run_s=0.001,
    max_seconds=42.0,
)


@pytest.mark.parametrize(
    ("calibration", "least"),
    [(ClockValues(cpu=(0.01, -0.01)), 3), (ClockValues(wall=(0.01, -0.01)), 4), (ClockValues(), 4)],
    ids=["calibrated", "on the other clock", "not calibrated"],
)
def test_the_first_look_comes_earlier_where_the_noise_is_known(calibration: ClockValues, least: int) -> None:
    assert expect_rounds(PLAN, calibration) == RoundsStarted(least=least, most=16, seconds=42.0)
