"""Judging stored comparisons again: failures stay failures, confirmations and the gate count."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.measured import ARM, ENVIRONMENT, PAIR, a_round, measurement

from winml.modelkit.core.errors import CheckFailed, DataError, PartlyDone, RunFailedError
from winml.modelkit.core.measurement import Measurement
from winml.modelkit.core.values import to_json
from winml.modelkit.core.verdict import Outcome, Verdict
from winml.modelkit.measuring.calibration import Calibration, ClockValues
from winml.modelkit.measuring.compare_result import Candidate, ComparedArm, CompareResult, Confirmation, Sentinel
from winml.modelkit.measuring.rejudge import rejudge

QUIET = (0.001, -0.001) * 8


def measured(gains: list[float], *, cpu: bool = True) -> Measurement:
    rounds = []
    for number, gain in enumerate(gains):
        for arm, time in ((0, 1_000_000), (1, round(1_000_000 * math.exp(-gain)))):
            cpu_ns = (time if cpu else 0,) * 4
            rounds.append(a_round((time,) * 4, cpu_ns, arm=arm, round=number, process=number, order=arm))
    protocol = replace(PAIR, metric="cpu" if cpu else "wall")
    return measurement(*rounds, arms=(ARM, ARM), protocol=protocol)


def verdict(word: Outcome, gain: float | None = 0.0) -> Verdict:
    return Verdict(word, "stored", gain_pct=gain, rounds=3, seconds=2.5, metric="cpu", error_rate=0.003)


def candidate(label: str, gains: list[float], word: Outcome = "DISCARD", **changes: Any) -> Candidate:
    whole: dict[str, Any] = {"verdict": verdict(word), "measurement": measured(gains), "calibration": "a"}
    return Candidate(label=label, arm=ARM, **{**whole, **changes})


def stored(tmp_path: Path, *candidates: Candidate, **changes: Any) -> Path:
    result = CompareResult(
        base=ComparedArm(label="b", arm=ARM),
        candidates=candidates,
        calibrations={"a": Calibration(values=ClockValues(cpu=QUIET, wall=QUIET), cached=True, seconds=0.0)},
        fail_if_slower_pct=None,
        environment=ENVIRONMENT,
        warnings=(),
    )
    path = tmp_path / "c.json"
    path.write_text(json.dumps({**to_json(result), **changes}))
    return path


FAST, SAME, SLOW = [0.10, 0.101, 0.099], [0.001, -0.001, 0.0], [-0.10, -0.101, -0.099]


def test_verdicts_and_ranking_are_made_anew_from_the_samples(tmp_path: Path) -> None:
    path = stored(tmp_path, candidate("same", SAME, "KEEP"), candidate("fast", FAST, "DISCARD"))
    result = rejudge(path)
    assert [c.verdict.verdict for c in result.candidates] == ["DISCARD", "KEEP"]
    assert result.ranking == ("fast", "same")
    assert result.candidates[1].verdict.seconds == 2.5


def test_a_candidate_that_failed_stays_failed_whatever_its_first_rounds_say(tmp_path: Path) -> None:
    with pytest.raises(PartlyDone) as caught:
        rejudge(stored(tmp_path, candidate("crashed", FAST, "FAILED"), candidate("same", SAME)))
    assert isinstance(caught.value.result, CompareResult)
    assert caught.value.result.candidates[0].verdict.verdict == "FAILED"
    with pytest.raises(RunFailedError):
        rejudge(stored(tmp_path, candidate("crashed", FAST, "FAILED")))


def test_a_gain_that_was_not_confirmed_stays_unconfirmed(tmp_path: Path) -> None:
    again = Confirmation(
        first=verdict("KEEP", 9.5), verdict=verdict("DISCARD"), measurement=measured(SAME), calibration="a"
    )
    entry = candidate("lucky", FAST, "INCONCLUSIVE", confirmation=again)
    judged = rejudge(stored(tmp_path, entry)).candidates[0]
    assert judged.verdict.verdict == "INCONCLUSIVE"
    assert "not confirmed" in judged.verdict.reason


def test_a_confirmed_gain_is_the_one_of_the_fresh_rounds(tmp_path: Path) -> None:
    fresh = measured([0.06, 0.061, 0.059])
    again = Confirmation(first=verdict("KEEP", 9.5), verdict=verdict("KEEP"), measurement=fresh, calibration="a")
    judged = rejudge(stored(tmp_path, candidate("real", FAST, "KEEP", confirmation=again))).candidates[0]
    assert judged.verdict.verdict == "KEEP"
    assert judged.verdict.gain_pct == pytest.approx(5.8, abs=0.1)


def test_the_gate_is_asked_again_also_with_another_limit(tmp_path: Path) -> None:
    path = stored(tmp_path, candidate("slow", SLOW, gate="pass"))
    assert rejudge(path).candidates[0].gate is None
    with pytest.raises(CheckFailed, match="more than 3 %"):
        rejudge(path, fail_if_slower_pct=3)
    assert rejudge(path, fail_if_slower_pct=20).candidates[0].gate == "pass"


def test_rounds_of_a_disturbed_machine_are_not_turned_into_a_verdict(tmp_path: Path) -> None:
    seen = Sentinel(base_drift_pct=None, load_max=None, pressure_max_pct=None, priority=None, disturbed=True)
    entry = candidate("turns", FAST, "INCONCLUSIVE", conditions=seen)
    assert rejudge(stored(tmp_path, entry)).candidates[0].verdict.verdict == "INCONCLUSIVE"


def test_a_clock_that_stood_still_does_not_damage_the_other(tmp_path: Path) -> None:
    entry = candidate("windows", FAST, measurement=measured(FAST, cpu=False))
    assert rejudge(stored(tmp_path, entry)).candidates[0].verdict.verdict == "KEEP"


def test_an_error_that_was_stored_does_not_come_back(tmp_path: Path) -> None:
    path = stored(tmp_path, candidate("fast", FAST), ok=False, error={"code": "interrupted"}, unfinished_rounds=[])
    result = to_json(rejudge(path))
    assert result["ok"] is True
    assert "error" not in result


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "winml/perf/1"}', "\x00"])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DataError, match="not a stored comparison"):
        rejudge(path)


def test_a_damaged_comparison_is_refused_by_name(tmp_path: Path) -> None:
    path = stored(tmp_path, candidate("fast", FAST))
    value = json.loads(path.read_text())
    del value["candidates"][0]["measurement"]["rounds"][0]["wall_ns"]
    path.write_text(json.dumps(value))
    place = r"`comparison.candidates\[0\].measurement.rounds\[0\].wall_ns`"
    with pytest.raises(DataError, match=f"is damaged: {place} is missing"):
        rejudge(path)
    with pytest.raises(DataError, match="not found"):
        rejudge(tmp_path / "gone.json")
