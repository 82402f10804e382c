"""Judging stored comparisons again: failures stay failures, confirmations and the gate count."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.core.errors import CheckFailed, DataError, PartlyDone, RunFailedError
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.rejudge import rejudge

QUIET = [0.001, -0.001] * 8


def measurement(gains: list[float], *, cpu: bool = True) -> dict[str, Any]:
    rounds = []
    for number, gain in enumerate(gains):
        for arm, time in ((0, 1_000_000), (1, round(1_000_000 * math.exp(-gain)))):
            rounds.append(
                {
                    "arm": arm, "round": number, "process": number, "order": arm, "wall_ns": [time] * 4,
                    "cpu_ns": [time if cpu else 0] * 4, "load_before": 0.1, "load_after": 0.1,
                }
            )  # fmt: skip
    protocol = {**PROTOCOLS["cpu"].to_json(), "mode": "together", "metric": "cpu" if cpu else "wall", "seed": 0}
    return {"kind": "samples", "arms": [], "rounds": rounds, "protocol": protocol, "environment": {}}


def verdict(word: str, gain: float | None = 0.0) -> dict[str, Any]:
    return {
        "verdict": word, "reason": "stored", "gain_pct": gain, "interval_pct": None, "rounds": 3, "seconds": 2.5,
        "metric": "cpu", "error_rate": 0.003, "other_clock": {},
    }  # fmt: skip


def candidate(label: str, gains: list[float], word: str = "DISCARD", **changes: Any) -> dict[str, Any]:
    return {
        "label": label, "verdict": verdict(word), "measurement": measurement(gains), "calibration": "a",
        "confirmation": None, "conditions": {"disturbed": False}, "tests": 1, "gate": None, "warnings": [], **changes,
    }  # fmt: skip


def stored(tmp_path: Path, *candidates: dict[str, Any], **changes: Any) -> Path:
    value = {
        "schema": "winml/compare/1", "ok": True, "base": {"label": "b", "target": "cpu"}, "ranking": [],
        "candidates": list(candidates), "fail_if_slower_pct": None,
        "calibrations": {"a": {"values": {"cpu": QUIET, "wall": QUIET}, "cached": True, "seconds": 0.0}},
        "environment": {}, "warnings": [], **changes,
    }  # fmt: skip
    path = tmp_path / "c.json"
    path.write_text(json.dumps(value))
    return path


FAST, SAME, SLOW = [0.10, 0.101, 0.099], [0.001, -0.001, 0.0], [-0.10, -0.101, -0.099]


def test_verdicts_and_ranking_are_made_anew_from_the_samples(tmp_path: Path) -> None:
    path = stored(tmp_path, candidate("same", SAME, "KEEP"), candidate("fast", FAST, "DISCARD"))
    result = rejudge(path)
    assert [c["verdict"]["verdict"] for c in result["candidates"]] == ["DISCARD", "KEEP"]
    assert result["ranking"] == ["fast", "same"]
    assert result["candidates"][1]["verdict"]["seconds"] == 2.5


def test_a_candidate_that_failed_stays_failed_whatever_its_first_rounds_say(tmp_path: Path) -> None:
    with pytest.raises(PartlyDone) as caught:
        rejudge(stored(tmp_path, candidate("crashed", FAST, "FAILED"), candidate("same", SAME)))
    assert caught.value.details["candidates"][0]["verdict"]["verdict"] == "FAILED"
    with pytest.raises(RunFailedError):
        rejudge(stored(tmp_path, candidate("crashed", FAST, "FAILED")))


def test_a_gain_that_was_not_confirmed_stays_unconfirmed(tmp_path: Path) -> None:
    again = {"first": verdict("KEEP", 9.5), "verdict": verdict("DISCARD"), "measurement": measurement(SAME),
             "calibration": "a"}  # fmt: skip
    entry = candidate("lucky", FAST, "INCONCLUSIVE", confirmation=again)
    judged = rejudge(stored(tmp_path, entry))["candidates"][0]
    assert judged["verdict"]["verdict"] == "INCONCLUSIVE"
    assert "not confirmed" in judged["verdict"]["reason"]


def test_a_confirmed_gain_is_the_one_of_the_fresh_rounds(tmp_path: Path) -> None:
    fresh = measurement([0.06, 0.061, 0.059])
    again = {"first": verdict("KEEP", 9.5), "verdict": verdict("KEEP"), "measurement": fresh, "calibration": "a"}
    judged = rejudge(stored(tmp_path, candidate("real", FAST, "KEEP", confirmation=again)))["candidates"][0]
    assert judged["verdict"]["verdict"] == "KEEP"
    assert judged["verdict"]["gain_pct"] == pytest.approx(5.8, abs=0.1)


def test_the_gate_is_asked_again_also_with_another_limit(tmp_path: Path) -> None:
    path = stored(tmp_path, candidate("slow", SLOW, gate="pass"))
    assert rejudge(path)["candidates"][0]["gate"] is None
    with pytest.raises(CheckFailed, match="more than 3 %"):
        rejudge(path, fail_if_slower_pct=3)
    assert rejudge(path, fail_if_slower_pct=20)["candidates"][0]["gate"] == "pass"


def test_rounds_of_a_disturbed_machine_are_not_turned_into_a_verdict(tmp_path: Path) -> None:
    entry = candidate("turns", FAST, "INCONCLUSIVE", conditions={"disturbed": True})
    assert rejudge(stored(tmp_path, entry))["candidates"][0]["verdict"]["verdict"] == "INCONCLUSIVE"


def test_a_clock_that_stood_still_does_not_damage_the_other(tmp_path: Path) -> None:
    entry = candidate("windows", FAST)
    entry["measurement"] = measurement(FAST, cpu=False)
    assert rejudge(stored(tmp_path, entry))["candidates"][0]["verdict"]["verdict"] == "KEEP"


def test_an_error_that_was_stored_does_not_come_back(tmp_path: Path) -> None:
    path = stored(tmp_path, candidate("fast", FAST), ok=False, error={"code": "interrupted"}, unfinished_rounds=[])
    result = rejudge(path)
    assert result["ok"] is True
    assert "error" not in result


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema": "winml/perf/1"}', "\x00"])
def test_other_files_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(DataError, match="not a stored comparison"):
        rejudge(path)


def test_a_damaged_comparison_is_refused_by_name(tmp_path: Path) -> None:
    entry = candidate("fast", FAST)
    del entry["measurement"]["rounds"][0]["wall_ns"]
    with pytest.raises(DataError, match="is damaged: KeyError"):
        rejudge(stored(tmp_path, entry))
    with pytest.raises(DataError, match="not found"):
        rejudge(tmp_path / "gone.json")
