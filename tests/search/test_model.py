from __future__ import annotations

import pytest

from winml.modelkit.search.model import PAIR_SD, SpeedupModel

A, B = ("a", "on"), ("b", "on")


def test_levels_add_up() -> None:
    model = SpeedupModel([((), 0.0), ((A,), 0.4), ((B,), -0.1)])
    mean, deviation = model.predict((A, B))
    assert mean == pytest.approx(0.3, abs=0.01)
    assert PAIR_SD < deviation < 2 * PAIR_SD, "what the pair does together was never seen"


def test_a_pair_that_was_tried_is_known() -> None:
    mean, deviation = SpeedupModel([((A,), 0.4), ((B,), 0.1), ((A, B), 0.2)]).predict((A, B))
    assert mean == pytest.approx(0.2, abs=0.02)
    assert deviation < 0.011


def test_nothing_is_known_without_trials() -> None:
    assert SpeedupModel([]).predict((A,)) == (0.0, pytest.approx(0.3))


def test_the_baseline_is_zero() -> None:
    assert SpeedupModel([((A,), 0.4)]).predict(()) == (0.0, 0.0)
