"""`winml compare --from`: judges stored rounds again, without measuring."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.forms import misfit
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.verdict import Clock, Outcome
from winml.modelkit.measuring import compare_result, stored
from winml.modelkit.measuring.compare_result import SCHEMA
from winml.modelkit.measuring.judge import gate
from winml.modelkit.measuring.rounds import values_of


def _gate(result: dict[str, Any], candidate: dict[str, Any]) -> str | None:
    limit = result["fail_if_slower_pct"]
    if limit is None:
        return None
    taken = stored.measurement(candidate["measurement"])
    metric: Clock = taken.protocol["metric"]
    values, lent = values_of(taken, metric), stored.lent(result, candidate["calibration"], metric)
    protocol = stored.protocol(taken.protocol)
    for n in range(1, len(values) + 1):
        answer = gate(values[:n], calibration=lent, protocol=protocol, limit_pct=limit, last=n == len(values))
        if answer is not None:
            return answer
    return "unknown"


def _candidate(result: dict[str, Any], candidate: dict[str, Any]) -> dict[str, Any]:
    """A candidate with its verdict and the answer of the gate made anew."""
    judged = stored.candidate_again(result, candidate)
    return candidate if judged is candidate else {**judged, "gate": _gate(result, candidate)}


class _Verdict(TypedDict):
    verdict: Outcome
    reason: str
    gain_pct: float | None
    interval_pct: tuple[float, float] | None
    rounds: int
    seconds: float
    metric: Clock | None


class _Confirmation(TypedDict):
    first: _Verdict
    verdict: _Verdict


class _Candidate(TypedDict):
    label: str
    verdict: _Verdict
    confirmation: _Confirmation | None
    gate: str | None


class _Base(TypedDict):
    label: str
    target: str


class _Values(TypedDict):
    cpu: list[float]
    wall: list[float]


class _Calibration(TypedDict):
    values: _Values
    cached: bool
    seconds: float


class _Stored(TypedDict):
    """What is read of a stored comparison, here and for its text; samples are looked at where they are judged."""

    base: _Base
    candidates: list[_Candidate]
    ranking: list[str]
    calibrations: dict[str, _Calibration]
    fail_if_slower_pct: float | None
    warnings: list[str]


def rejudge(path: Path, *, fail_if_slower_pct: float | None = None) -> dict[str, Any]:
    """The stored result with its verdicts made anew from the raw samples; the gate is asked again too."""
    try:
        result = read_json(path)
    except FileNotFoundError as error:
        raise DataError(f"comparison not found: `{path}`") from error
    except (OSError, ValueError) as error:
        raise DataError(f"`{path}` is not a stored comparison: {error}") from error
    if not isinstance(result, dict) or result.get("schema") != SCHEMA or "candidates" not in result:
        raise DataError(f"`{path}` is not a stored comparison", hint="write one with `winml compare ... -o FILE`")
    problem = misfit(result, _Stored, "comparison")
    if problem:
        raise DataError(f"`{path}` is damaged: {problem}")
    if fail_if_slower_pct is not None:
        result["fail_if_slower_pct"] = fail_if_slower_pct
    try:
        judged = [compare_result.with_speed(_candidate(result, c)) for c in result["candidates"]]
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise DataError(f"`{path}` is damaged: {type(error).__name__}: {error}") from error
    kept = {k: v for k, v in result.items() if k not in ("error", "unfinished_rounds", "log")}
    answer = {**kept, "ok": True, "candidates": judged, "ranking": compare_result.ranking(judged)}
    compare_result.raise_for(answer)
    return answer
