from __future__ import annotations

import pytest

from search_world import Laboratory, World, make_trial
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.search.guards import Attempt, Built, GateAnswer, Guards
from winml.modelkit.search.space import ConfigJSON
from winml.modelkit.search.trial import Trial

WORLD = World({"scheme": 3}, {("scheme", "l1"): 0.5, ("scheme", "l2"): -0.7}, inaccurate=frozenset({("scheme", "l3")}))
BASELINE = make_trial("h0", (), "baseline", identity="()")


def attempt(laboratory: Laboratory, level: str, *trials: Trial) -> Attempt:
    return Guards(laboratory).attempt({"scheme": level}, (BASELINE, *trials), 3)


def test_what_is_slower_beyond_doubt_is_neither_checked_nor_measured() -> None:
    laboratory = Laboratory(WORLD)
    tried = attempt(laboratory, "l2")
    assert (tried.outcome, laboratory.rounds) == ("slower", 0)
    assert "times slower in a probe of 3 runs" in tried.reason
    assert [kind for kind, _ in laboratory.spent] == ["probe"]


def test_what_is_not_accurate_is_not_measured() -> None:
    laboratory = Laboratory(WORLD)
    tried = attempt(laboratory, "l3")
    assert (tried.outcome, tried.reason, laboratory.rounds) == ("inaccurate", "accuracy fell to 10 %", 0)


def test_what_passes_is_measured() -> None:
    tried = attempt(Laboratory(WORLD), "l1")
    assert tried.outcome == "measured"
    assert tried.series is not None
    assert len(tried.series.deciding) == 3
    assert tried.facts.config == {"scheme": "l1"}


def test_a_twin_of_something_that_failed_fails_without_being_run() -> None:
    laboratory = Laboratory(WORLD)
    twin = make_trial("h1", (("scheme", "l1"),), "failed", "it crashed", identity="(('scheme', 'l1'),)")
    tried = attempt(laboratory, "l1", twin)
    assert (tried.outcome, tried.same_as) == ("failed", "h1")
    assert tried.reason == "the same graph and session as h1: it crashed"
    assert laboratory.spent == []


class Refusing(Laboratory):
    def build(self, config: ConfigJSON) -> Built:
        raise RequestError("entropy needs 8 bits")

    def check(self, built: Built) -> GateAnswer:
        raise DataError("label 9 is out of range")


def test_a_config_that_a_stage_refuses_is_a_result() -> None:
    tried = attempt(Refusing(WORLD), "l1")
    assert (tried.outcome, tried.reason, tried.facts.step) == ("failed", "entropy needs 8 bits", "build")
    assert tried.facts.failure is not None
    assert tried.facts.failure.code == "wrong-request"


def test_a_baseline_that_is_refused_is_the_users_mistake() -> None:
    with pytest.raises(RequestError, match="entropy needs 8 bits"):
        Guards(Refusing(WORLD)).attempt({}, (), 3)
