"""`winml compare --from`: judges stored rounds again, without measuring."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from winml.modelkit.app import compare_result
from winml.modelkit.app.compare_result import KEPT, SCHEMA
from winml.modelkit.bench.compare import values_of
from winml.modelkit.bench.judge import gate, replay
from winml.modelkit.bench.protocols import CompareProtocol
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.measurement import Measurement, round_from_json
from winml.modelkit.core.verdict import Clock


def _measurement(value: dict[str, Any]) -> Measurement:
    return Measurement((), tuple(round_from_json(r) for r in value["rounds"]), value["protocol"], value["environment"])


def _protocol(value: dict[str, Any]) -> CompareProtocol:
    known = {f.name for f in fields(CompareProtocol)}
    return CompareProtocol(**{k: v for k, v in value.items() if k in known})


def _lent(result: dict[str, Any], name: str | None, clock: Clock) -> list[float]:
    return [] if name is None else list(result["calibrations"][name]["values"][clock])


def judged_again(result: dict[str, Any], stored: dict[str, Any], tests: int, seconds: float) -> dict[str, Any]:
    """The verdict of a stored measurement, with the seconds it took then."""
    taken = _measurement(stored["measurement"])
    metric: Clock = taken.protocol["metric"]
    verdict = replay(
        values_of(taken, metric),
        calibration=_lent(result, stored["calibration"], metric),
        other=values_of(taken, "wall" if metric == "cpu" else "cpu"),
        protocol=_protocol(taken.protocol),
        metric=metric,
        tests=tests,
    )
    return {**verdict.to_json(), "seconds": seconds}


def _gate(result: dict[str, Any], candidate: dict[str, Any]) -> str | None:
    limit = result["fail_if_slower_pct"]
    if limit is None:
        return None
    taken = _measurement(candidate["measurement"])
    metric: Clock = taken.protocol["metric"]
    values, lent = values_of(taken, metric), _lent(result, candidate["calibration"], metric)
    protocol = _protocol(taken.protocol)
    for n in range(1, len(values) + 1):
        answer = gate(values[:n], calibration=lent, protocol=protocol, limit_pct=limit, last=n == len(values))
        if answer is not None:
            return answer
    return "unknown"


def _candidate(result: dict[str, Any], candidate: dict[str, Any]) -> dict[str, Any]:
    """A candidate with its verdict made anew; one that failed, or was measured on a disturbed machine, stays so."""
    confirmation = candidate["confirmation"]
    before = confirmation["first"] if confirmation else candidate["verdict"]
    measured = candidate["measurement"] is not None and before["verdict"] != "FAILED"
    if not measured or (candidate["conditions"] or {}).get("disturbed"):
        return candidate
    verdict = judged_again(result, candidate, candidate["tests"], before["seconds"])
    judged = {**candidate, "verdict": verdict, "gate": _gate(result, candidate)}
    if confirmation and verdict["verdict"] in KEPT:
        again = judged_again(result, confirmation, candidate["tests"], confirmation["verdict"]["seconds"])
        judged["confirmation"] = {**confirmation, "first": verdict, "verdict": again}
        judged["verdict"] = compare_result.unconfirmed(verdict, again)
    return judged


def rejudge(path: Path, *, fail_if_slower_pct: float | None = None) -> dict[str, Any]:
    """The stored result with its verdicts made anew from the raw samples; the gate is asked again too."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"comparison not found: `{path}`") from error
    except (OSError, ValueError) as error:
        raise DataError(f"`{path}` is not a stored comparison: {error}") from error
    if not isinstance(result, dict) or result.get("schema") != SCHEMA or "candidates" not in result:
        raise DataError(f"`{path}` is not a stored comparison", hint="write one with `winml compare ... -o FILE`")
    if fail_if_slower_pct is not None:
        result["fail_if_slower_pct"] = fail_if_slower_pct
    try:
        judged = [_candidate(result, c) for c in result["candidates"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"`{path}` is damaged: {type(error).__name__}: {error}") from error
    kept = {k: v for k, v in result.items() if k not in ("error", "unfinished_rounds", "log")}
    answer = {**kept, "ok": True, "candidates": judged, "ranking": compare_result.ranking(judged)}
    compare_result.raise_for(answer)
    return answer
