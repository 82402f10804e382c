"""Searches in worlds where the best config is known."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from search_world import Laboratory, World, chosen, random_world, search
from winml.modelkit.core.errors import RunFailedError, WorkerCrashed
from winml.modelkit.core.values import to_json
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.search import strategy
from winml.modelkit.search.guards import Built, ProbeAnswer
from winml.modelkit.search.records import PreparationRecord, Record, TrialRecord, read_records
from winml.modelkit.search.strategy import Confirm, SearchLimits, SearchPlan, decide
from winml.modelkit.search.study import Study
from winml.modelkit.search.trial import FreshRounds, Series, Yardstick

FEW = {"scheme": 3, "fuse": 2}
MANY = {"scheme": 3, "fuse": 2, "level": 1, "gelu": 1, "norm": 1, "nchwc": 1}
CLEAR = World(FEW, {("scheme", "l1"): 0.7, ("scheme", "l2"): 0.3, ("fuse", "l1"): 0.05, ("fuse", "l2"): -0.1})


def test_few_configs_are_all_tried_and_the_best_is_found() -> None:
    study, laboratory = search(CLEAR)
    assert chosen(study) == (("scheme", "l1"), ("fuse", "l1"))
    assert laboratory.builds == 13, "twelve configs, and the champion once more to confirm it"
    assert study.state.confirmations[0].confirmed


def test_many_configs_are_not_all_built() -> None:
    regrets, builds = [], []
    for seed in range(8):
        world = random_world(MANY, seed)
        study, laboratory = search(world, seed=seed)
        regrets.append(world.best() - world.speed(chosen(study)))
        builds.append(laboratory.builds)
    assert max(regrets) < 0.012
    assert sum(builds) / len(builds) < 192 / 4 / 2


@pytest.mark.parametrize("seed", range(6))
def test_hazards_are_never_chosen_and_cost_little(seed: int) -> None:
    world = random_world(MANY, seed, strong=True)
    study, laboratory = search(world, seed=seed)
    assert world.valid(chosen(study))
    assert not world.slow.intersection(chosen(study))
    assert max(seconds for _, seconds in laboratory.spent) <= 15


def test_the_baseline_wins_where_nothing_is_faster() -> None:
    world = World(FEW, {("scheme", f"l{i}"): -0.1 for i in (1, 2, 3)})
    study, _ = search(world)
    assert chosen(study) == ()
    assert not study.state.confirmations


def test_what_is_the_same_is_not_measured_twice() -> None:
    world = World(FEW, CLEAR.effects, no_effect=frozenset({("fuse", "l1"), ("fuse", "l2")}))
    study, _ = search(world)
    outcomes = Counter(trial.outcome for trial in study.state.trials)
    assert outcomes == {"baseline": 1, "measured": 3, "same": 8}
    same = [trial for trial in study.state.trials if trial.outcome == "same"]
    assert all(study.state.trial(trial.same_as or "").choice == trial.choice[:-1] for trial in same)
    assert chosen(study) == (("scheme", "l1"),)


INACCURATE = World(
    {"scheme": 2, "part": 3, "fuse": 2, "gelu": 2, "norm": 2},
    {("scheme", "l1"): 0.7, ("scheme", "l2"): 0.1},
    {frozenset({("scheme", "l1"), ("part", "l2")}): -0.3},
    inaccurate=frozenset({("scheme", "l1")}),
    narrows=frozenset({"part"}),
    mends={("scheme", "l1"): (frozenset({("part", "l2")}),)},
)


def test_after_a_scheme_that_is_fast_and_inaccurate_come_its_narrower_variants() -> None:
    study, _ = search(INACCURATE)
    order = [trial.choice for trial in study.state.trials]
    failed = order.index((("scheme", "l1"),))
    assert order[failed + 1 : failed + 4] == [(("scheme", "l1"), ("part", f"l{i}")) for i in (1, 2, 3)]
    assert set(chosen(study)) >= {("scheme", "l1"), ("part", "l2")}


def test_the_most_accurate_variant_is_narrowed_again_where_none_is_accurate_enough() -> None:
    both = frozenset({("part", "l2"), ("range", "l1")})
    world = replace(
        INACCURATE,
        levels={**INACCURATE.levels, "range": 1},
        narrows=frozenset({"part", "range"}),
        mends={("scheme", "l1"): (both,)},
    )
    study, _ = search(world)
    assert set(chosen(study)) >= {("scheme", "l1"), *both}


def test_a_scheme_that_is_inaccurate_and_no_faster_is_not_narrowed() -> None:
    world = replace(INACCURATE, effects={("scheme", "l1"): -0.2, ("scheme", "l2"): 0.1})
    study, _ = search(world)
    first, second = (trial.choice for trial in study.state.trials[1:3])
    assert (first, second) == ((("scheme", "l1"),), (("scheme", "l2"),))
    # It is tried once more in another context, as every level that failed.
    assert sum(("scheme", "l1") in trial.choice for trial in study.state.trials) <= 2


def test_a_level_that_failed_in_one_context_is_tried_in_another() -> None:
    levels = {**MANY, "fuse": 1}
    culprit = frozenset({frozenset({("scheme", "l1"), ("gelu", "l1")})})
    world = World(
        levels, {("scheme", "l1"): 0.5, ("scheme", "l2"): 0.45, ("gelu", "l1"): 0.3}, crashes=culprit, spread=0.0005
    )
    study, _ = search(world)
    tried = [trial for trial in study.state.trials if trial.option == ("gelu", "l1")]
    assert [trial.outcome for trial in tried] == ["failed", "measured"]
    assert chosen(study) == (("scheme", "l2"), ("gelu", "l1"))


def test_of_few_configs_a_level_is_not_blamed_for_the_company_it_failed_in() -> None:
    levels = {"scheme": 2, "ops": 1, "nchwc": 1}
    culprit = frozenset({frozenset({("scheme", "l1"), ("ops", "l1")})})
    world = World(levels, {("scheme", "l1"): 0.5, ("ops", "l1"): 0.1}, crashes=culprit, spread=0.0005)
    laboratory = Laboratory(world, 0)
    plan = SearchPlan(world.space, Yardstick(PROTOCOLS["cpu"]), priority=lambda option: float(option[0] != "nchwc"))
    study = Study(plan, laboratory, append=lambda record: None, clock=laboratory.clock)
    study.run()
    assert ("scheme", "l1") in chosen(study)


def test_a_search_that_was_cut_off_anywhere_goes_on_without_losing_or_repeating_a_trial() -> None:
    world = random_world(MANY, 3)
    whole: list[Record] = []
    first, _ = search(world, records=whole)
    for cut in range(0, len(whole), 5):
        records = read_records(json.loads(json.dumps(to_json(whole[:cut]))), "j")
        again, _ = search(world, records=records)
        assert records[:cut] == whole[:cut]
        trials = [record.trial for record in records if isinstance(record, TrialRecord)]
        assert len(trials) == len({trial.id for trial in trials}) == len({trial.choice for trial in trials})
        assert world.best() - world.speed(chosen(again)) < 0.01
    assert chosen(again) == chosen(first)


def test_a_finished_search_has_nothing_left_to_do() -> None:
    records: list[Record] = []
    search(CLEAR, records=records)
    count = len(records)
    _, laboratory = search(CLEAR, records=records)
    assert len(records) == count
    assert laboratory.builds == 0


def test_the_budget_leaves_time_to_confirm() -> None:
    budget = 150.0
    study, laboratory = search(random_world(MANY, 1), limits=SearchLimits(budget_s=budget))
    assert laboratory.now < budget
    assert study.state.confirmations
    assert isinstance(strategy.decide(study.state, study.plan), strategy.Finish)


def test_preparing_counts_and_delivering_is_kept_for() -> None:
    quick, _ = search(random_world(MANY, 1), limits=SearchLimits(budget_s=150.0))
    slow, _ = search(
        random_world(MANY, 1), limits=SearchLimits(budget_s=150.0), records=[PreparationRecord(seconds=40.0)]
    )
    assert slow.state.preparation_s == 40.0
    assert len(slow.state.trials) < len(quick.state.trials)
    assert slow.state.seconds <= 150.0 - 40.0
    assert slow.state.confirmations


def test_confirming_gets_what_is_left_of_the_budget_and_a_trial_at_least() -> None:
    study, _ = search(random_world(MANY, 1), limits=SearchLimits(budget_s=150.0))
    state = replace(study.state, confirmations=())
    action = decide(state, study.plan)
    assert isinstance(action, Confirm)
    assert action.within_s >= max(150.0 - state.seconds, 0.0)
    late = decide(replace(state, seconds=1000.0), study.plan)
    assert isinstance(late, Confirm)
    assert 0 < late.within_s < 150.0


def test_a_search_with_a_larger_budget_goes_on_to_a_better_champion() -> None:
    world = World(MANY, {("scheme", "l1"): 0.3, ("nchwc", "l1"): 0.2}, spread=0.0005)
    records: list[Record] = []
    first, _ = search(world, limits=SearchLimits(budget_s=110), records=records)
    assert chosen(first) == (("scheme", "l1"),)
    again, _ = search(world, records=records)
    assert chosen(again) == (("scheme", "l1"), ("nchwc", "l1"))
    assert [c.confirmed for c in again.state.confirmations] == [True, True]


def test_it_stops_at_a_gain_that_is_enough() -> None:
    study, laboratory = search(CLEAR, limits=SearchLimits(stop_at_pct=20))
    assert chosen(study) == (("scheme", "l2"),) or study.plan.space.count(limit=99) > laboratory.builds
    assert strategy.decide(study.state, study.plan).reason.endswith("certainly saves 20 %")  # type: ignore[union-attr]


def test_it_stops_after_many_trials_without_a_new_leader() -> None:
    world = World(MANY, {("scheme", "l1"): 0.5}, spread=0.0005)
    study, _ = search(world, limits=SearchLimits(max_discards=4))
    assert strategy.consecutive_discards(study.state) == 4
    assert chosen(study) == (("scheme", "l1"),)


def test_a_baseline_that_does_not_work_ends_the_search() -> None:
    class Broken(Laboratory):
        def probe(self, built: Built) -> ProbeAnswer:
            raise WorkerCrashed("the process crashed with SIGSEGV")

    plan = SearchPlan(CLEAR.space, Yardstick(PROTOCOLS["cpu"]))
    study = Study(plan, Broken(CLEAR), append=lambda record: None)
    with pytest.raises(RunFailedError, match="the baseline does not work: the process crashed"):
        study.run()


def test_a_config_that_fails_in_a_later_round_is_out_of_the_race() -> None:
    class Fragile(Laboratory):
        def measure(self, built: Built, *, rounds: int, first: int) -> Series:
            if first and "('scheme', 'l1')" in built.path:
                raise WorkerCrashed("the process crashed with SIGSEGV")
            return super().measure(built, rounds=rounds, first=first)

    world = World(FEW, {("scheme", "l1"): 0.301, ("scheme", "l2"): 0.3}, spread=0.01)
    plan = SearchPlan(world.space, Yardstick(PROTOCOLS["cpu"]))
    study = Study(plan, Fragile(world), append=lambda record: None)
    study.run()
    assert strategy.choose_champion(study.state).choice[0] == ("scheme", "l2")
    lost = [t for t in study.state.trials if t.series is not None and t.series.disturbed]
    assert lost
    assert all("it failed in a later round" in (t.series.disturbed or "") for t in lost if t.series)


def test_an_unconfirmed_leader_is_not_the_champion() -> None:
    class Deceiving(Laboratory):
        """Confirms nothing of the first scheme: its gain was luck."""

        def confirm(self, built: Built, within_s: float) -> tuple[Verdict, FreshRounds]:
            verdict, measured = super().confirm(built, within_s)
            lucky = "('scheme', 'l1')" in built.path
            return (replace(verdict, verdict="INCONCLUSIVE") if lucky else verdict), measured

    plan = SearchPlan(CLEAR.space, Yardstick(PROTOCOLS["cpu"]))
    study = Study(plan, Deceiving(CLEAR), append=lambda record: None)
    study.run()
    assert [c.confirmed for c in study.state.confirmations] == [False, False, False]
    assert strategy.choose_champion(study.state).choice == ()
