"""Stored comparisons: their verdicts made anew from raw rounds, wherever they were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from winml.modelkit.core.measurement import Measurement, round_from_json
from winml.modelkit.core.verdict import Clock
from winml.modelkit.measuring.judge import replay
from winml.modelkit.measuring.protocols import CompareProtocol
from winml.modelkit.measuring.rounds import values_of

KEPT = ("KEEP", "MARGINAL_KEEP")

Json = Mapping[str, Any]


def measurement(value: Json) -> Measurement:
    """The rounds of a stored measurement, without its arms."""
    return Measurement((), tuple(round_from_json(r) for r in value["rounds"]), value["protocol"], value["environment"])


def protocol(value: Json) -> CompareProtocol:
    known = {f.name for f in fields(CompareProtocol)}
    return CompareProtocol(**{k: v for k, v in value.items() if k in known})


def lent(result: Json, name: str | None, clock: Clock) -> list[float]:
    """Values of the A/A rounds that a stored comparison used."""
    return [] if name is None else list(result["calibrations"][name]["values"][clock])


def judged_again(result: Json, stored: Json, tests: int, seconds: float) -> dict[str, Any]:
    """The verdict of a stored measurement, with the seconds it took then."""
    taken = measurement(stored["measurement"])
    metric: Clock = taken.protocol["metric"]
    verdict = replay(
        values_of(taken, metric),
        calibration=lent(result, stored["calibration"], metric),
        other=values_of(taken, "wall" if metric == "cpu" else "cpu"),
        protocol=protocol(taken.protocol),
        metric=metric,
        tests=tests,
    )
    return {**verdict.to_json(), "seconds": seconds}


def unconfirmed(verdict: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """The verdict after a second measurement on fresh rounds, whose gain is the one to report.

    The first gain was selected for being large, the second was not.
    """
    if again["verdict"] in KEPT:
        return {**again, "seconds": verdict["seconds"] + again["seconds"]}
    reason = f"not confirmed on fresh rounds: {again['reason']}"
    return {**again, "verdict": "INCONCLUSIVE", "reason": reason, "seconds": verdict["seconds"] + again["seconds"]}


def candidate_again(result: Json, candidate: dict[str, Any]) -> dict[str, Any]:
    """A candidate with its verdict made anew; one that failed, or was measured on a disturbed machine, stays so."""
    confirmation = candidate["confirmation"]
    before = confirmation["first"] if confirmation else candidate["verdict"]
    measured = candidate["measurement"] is not None and before["verdict"] != "FAILED"
    if not measured or (candidate["conditions"] or {}).get("disturbed"):
        return candidate
    verdict = judged_again(result, candidate, candidate["tests"], before["seconds"])
    judged = {**candidate, "verdict": verdict}
    if confirmation and verdict["verdict"] in KEPT:
        again = judged_again(result, confirmation, candidate["tests"], confirmation["verdict"]["seconds"])
        judged["confirmation"] = {**confirmation, "first": verdict, "verdict": again}
        judged["verdict"] = unconfirmed(verdict, again)
    return judged
