"""`winml compare --from`: judges stored rounds again, without measuring."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import read
from winml.modelkit.measuring.compare_result import (
    Candidate,
    CompareResult,
    pair_protocol,
    raise_for,
)
from winml.modelkit.measuring.judge import Gate, gate
from winml.modelkit.measuring.rounds import values_of
from winml.modelkit.measuring.stored import judge_candidate_again


def _ask_gate(result: CompareResult, candidate: Candidate) -> Gate | None:
    limit, taken = result.fail_if_slower_pct, candidate.measurement
    if limit is None or taken is None:
        return None
    pair = pair_protocol(taken)
    values, lent = values_of(taken, pair.metric), result.calibration_values(candidate.calibration).on(pair.metric)
    for n in range(1, len(values) + 1):
        last = n == len(values)
        answer = gate(values[:n], calibration=lent, protocol=pair.protocol, limit_pct=limit, last=last)
        if answer is not None:
            return answer
    return "unknown"


def _candidate(result: CompareResult, candidate: Candidate) -> Candidate:
    """A candidate with its verdict and the answer of the gate computed again."""
    judged = judge_candidate_again(result, candidate)
    judged = judged if judged is candidate else replace(judged, gate=_ask_gate(result, candidate))
    return judged.with_times()


def comparison_from_json(value: Any) -> CompareResult:
    """A stored comparison, including one that failed after some of its candidates."""
    return read(CompareResult, {**value, "ok": True}, "comparison", strict=False, error=DataError)


def rejudge(path: Path, *, fail_if_slower_pct: float | None = None) -> CompareResult:
    """The stored result with its verdicts and the gate computed again from the raw samples."""
    try:
        value = read_json(path)
    except FileNotFoundError as error:
        raise DataError(f"comparison not found: `{path}`", hint=near_path(path)) from error
    except (OSError, ValueError) as error:
        raise DataError(f"`{path}` is not a stored comparison: {error}") from error
    if not isinstance(value, dict) or value.get("schema") != "winml/compare/1" or "candidates" not in value:
        raise DataError(f"`{path}` is not a stored comparison", hint="write one with `winml compare ... -o FILE`")
    try:
        result = comparison_from_json(value)
        if fail_if_slower_pct is not None:
            result = replace(result, fail_if_slower_pct=fail_if_slower_pct)
        result = replace(result, candidates=tuple(_candidate(result, c) for c in result.candidates))
    except DataError as error:
        raise DataError(f"`{path}` is damaged: {error.message}") from error
    except (LookupError, ValueError, ArithmeticError) as error:  # numbers that no measurement can have
        raise DataError(f"`{path}` is damaged: {type(error).__name__}: {error}") from error
    raise_for(result)
    return result
