"""`winml compare --from`: judges stored rounds again, without measuring."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from winml.modelkit.bench.judge import replay, round_values
from winml.modelkit.bench.protocols import CompareProtocol
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.measurement import Measurement, round_from_json
from winml.modelkit.core.verdict import Clock

SCHEMA = "winml/compare/1"


def _measurement(value: dict[str, Any]) -> Measurement:
    return Measurement((), tuple(round_from_json(r) for r in value["rounds"]), value["protocol"], value["environment"])


def _protocol(value: dict[str, Any]) -> CompareProtocol:
    known = {f.name for f in fields(CompareProtocol)}
    return CompareProtocol(**{k: v for k, v in value.items() if k in known})


def _calibration(result: dict[str, Any], clock: Clock) -> list[float]:
    return [v for used in result["calibrations"][:1] for v in used["values"][clock]]


def _candidate(result: dict[str, Any], candidate: dict[str, Any]) -> dict[str, Any]:
    if candidate["measurement"] is None:
        return candidate
    taken = _measurement(candidate["measurement"])
    metric: Clock = taken.protocol["metric"]
    verdict = replay(
        round_values(taken, 1, metric),
        calibration=_calibration(result, metric),
        other=round_values(taken, 1, "wall" if metric == "cpu" else "cpu"),
        protocol=_protocol(taken.protocol),
        metric=metric,
        tests=max(1, len(result["candidates"])),
    )
    return {**candidate, "verdict": {**verdict.to_json(), "seconds": candidate["verdict"]["seconds"]}}


def rejudge(path: Path) -> dict[str, Any]:
    """The stored result with its verdicts made anew from the raw samples."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"comparison not found: `{path}`") from error
    except (OSError, ValueError) as error:
        raise DataError(f"`{path}` is not a stored comparison: {error}") from error
    if not isinstance(result, dict) or result.get("schema") != SCHEMA or "candidates" not in result:
        raise DataError(f"`{path}` is not a stored comparison", hint="write one with `winml compare ... -o FILE`")
    try:
        judged = [_candidate(result, c) for c in result["candidates"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"`{path}` is damaged: {type(error).__name__}: {error}") from error
    return {**result, "ok": True, "candidates": judged}
