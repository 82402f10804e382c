from __future__ import annotations

from dataclasses import replace

from search_world import make_trial
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.search import race
from winml.modelkit.search.trial import Series, Trial, Yardstick, exact_series

YARDSTICK = Yardstick(PROTOCOLS["cpu"], {"cpu": (0.004, -0.004) * 8, "wall": (0.02, -0.02) * 8})


def trial(name: str, *values: float, wall: tuple[float, ...] | None = None, metric: str = "cpu") -> Trial:
    series = Series(metric, {"cpu": values, "wall": values if wall is None else wall})  # type: ignore[arg-type]
    return make_trial(name, ((name, "on"),), "measured", series=series)


def next_(*trials: Trial, max_rounds: int = 16) -> str | None:
    found = race.choose_runner(trials, YARDSTICK, field_size=8, max_rounds=max_rounds)
    return None if found is None else found.id


def test_a_clear_leader_needs_no_further_round() -> None:
    assert next_(trial("a", 0.50, 0.51, 0.50), trial("b", 0.20, 0.20, 0.21)) is None


def test_close_rivals_get_rounds_by_turns() -> None:
    close = (trial("a", 0.500, 0.515, 0.500), trial("b", 0.499, 0.510, 0.501), trial("c", 0.1, 0.1, 0.1))
    assert next_(*close) == "a"
    assert next_(trial("a", 0.500, 0.515, 0.500, 0.506), *close[1:]) == "b"


def test_rounds_end_when_their_number_is_used_up() -> None:
    assert next_(trial("a", *(0.50, 0.52) * 3), trial("b", *(0.49, 0.53) * 3), max_rounds=6) is None


def test_a_leader_without_a_verdict_against_the_baseline_gets_rounds() -> None:
    assert next_(trial("a", 0.030, 0.002, 0.015)) == "a"


def test_trials_on_different_clocks_are_held_against_each_other_by_wall_time() -> None:
    by_cpu = trial("a", *(0.5,) * 16, wall=(0.1, 0.11) * 8)
    by_wall = trial("b", *(0.0,) * 16, wall=(0.3, 0.31) * 8, metric="wall")
    bounds = race.advantage(by_wall, by_cpu, YARDSTICK, 1)
    assert bounds is not None
    assert bounds[0] > 0.15


def test_counted_values_have_no_spread() -> None:
    a, b = (make_trial(n, ((n, "on"),), "measured", series=exact_series(v)) for n, v in (("a", 0.3), ("b", 0.1)))
    assert race.advantage(b, a, YARDSTICK, 1) == (-0.19999999999999998, -0.19999999999999998)
    assert next_(a, b) is None


def test_disturbed_trials_do_not_run() -> None:
    lost = trial("a", 0.9, 0.9, 0.9)
    assert lost.series is not None
    lost = replace(lost, series=replace(lost.series, disturbed="the machine was busy"))
    assert [r.trial.id for r in race.rank_runners([lost, trial("b", 0.1, 0.1, 0.1)])] == ["b"]


def test_of_equal_trials_the_one_with_fewer_changes_leads() -> None:
    more = replace(trial("a", 0.5, 0.5, 0.5), choice=(("a", "on"), ("c", "on")))
    assert race.rank_runners([more, trial("b", 0.5, 0.5, 0.5)])[0].trial.id == "b"


def test_a_negligible_lead_is_not_worth_another_change() -> None:
    more = replace(trial("a", 0.501, 0.501), choice=(("a", "on"), ("c", "on")))
    ranked = race.rank_runners([more, trial("b", 0.5, 0.5), trial("c", 0.4, 0.4)])
    assert [runner.trial.id for runner in race.put_simplest_first(ranked)] == ["b", "a", "c"]
    assert race.put_simplest_first([]) == []


def test_points_that_nothing_beats_in_everything() -> None:
    points = {"slow": (0.0, 0.99), "fast": (1.0, 0.90), "worse": (0.9, 0.80), "middle": (0.5, 0.95)}
    assert race.pareto_front(points) == ("slow", "fast", "middle")
    assert race.pareto_front({"a": (1.0, 1.0), "b": (1.0, 1.0)}) == ("a", "b"), "equal points are all on the front"
    assert race.pareto_front({}) == ()
