"""What each rung of a finding asks of its evidence, so that no file can claim more than it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.core.finding import LEVELS, STATUSES, Finding
from winml.modelkit.core.values import read

HELD_OUT_CASES = 20
HELD_OUT_FALSE_SHARE = 0.05


def finding_from_json(value: Any) -> Finding:
    """The finding in a JSON value; an error names the first field that does not fit or lacks its evidence."""
    finding = read(Finding, value)
    action = finding.action
    if action is not None and action.verb != "measure" and finding.scope.ep is None:
        raise RequestError(
            f"`scope.ep` is missing: an action `{action.verb}` applies only to the EP it was observed on"
        )
    if action is not None and action.what.empty:
        raise RequestError("`action.what` is empty: it would match every config")
    for field, rung in (("status", finding.status), ("confidence", finding.confidence)):
        reason = None if rung is None else missing_evidence(finding, rung)
        if reason is not None:
            raise RequestError(f"`{field}` cannot be `{rung}`: {reason}")
    return finding


def missing_evidence(finding: Finding, rung: str) -> str | None:
    """Which evidence is missing for a status or a level of the ladder; None when the finding may have it."""
    return _RUNGS[rung](finding)


def _need_replication(finding: Finding) -> str | None:
    runs = finding.runs
    if len(runs) >= 2:
        return None
    how = "measured interleaved on a real device" if finding.claim == "latency" else "in full"
    return f"it needs {finding.claim} evidence {how} from two runs but has it from {len(runs)}"


def _need_confirmation(finding: Finding) -> str | None:
    missing = _need_replication(finding)
    if missing is not None:
        return missing
    if finding.claim in ("placement", "failure"):
        return None  # the EP's own answer, seen twice, is the mechanism
    if not finding.mechanism.confirmed or finding.mechanism.source is None:
        return "its mechanism is not confirmed by a named source"
    return None


def _need_doubt(finding: Finding) -> str | None:
    if finding.falsified_by or any(e.speaks == "against" for e in finding.evidence):
        return None
    return "there is no evidence against it, and `falsified_by` is empty"


def _need_observation(finding: Finding) -> str | None:
    return None if any(e.speaks == "for" for e in finding.evidence) else "nothing was observed"


def _families(finding: Finding) -> dict[str, set[str]]:
    """Models with deciding evidence, by model type."""
    found: dict[str, set[str]] = {}
    for e in finding.deciding:
        if e.model is not None and e.family is not None:
            found.setdefault(e.family, set()).add(e.model)
    return found


def _need_one_family(finding: Finding) -> str | None:
    missing = _need_replication(finding)
    if missing is not None or any(len(models) >= 2 for models in _families(finding).values()):
        return missing
    return "it needs deciding evidence on two models of one type"


def _need_three_families(finding: Finding) -> str | None:
    count = len(_families(finding))
    return None if count >= 3 else f"it needs deciding evidence on three model types but has it on {count}"


def _need_prediction(finding: Finding) -> str | None:
    missing = _need_three_families(finding)
    if missing is not None:
        return missing
    held = finding.held_out
    if held is None or held.cases < HELD_OUT_CASES:
        return f"it needs a prediction on at least {HELD_OUT_CASES} held-out models"
    share = held.false_positives / held.cases
    limit = HELD_OUT_FALSE_SHARE
    return None if share < limit else f"{share:.0%} of its predictions were wrong, the limit is {limit:.0%}"


_RUNGS: dict[str, Callable[[Finding], str | None]] = {
    "draft": lambda finding: None,
    "replicated": _need_replication,
    "confirmed": _need_confirmation,
    "contested": _need_doubt,
    "retracted": _need_doubt,
    "L1": _need_observation,
    "L2": _need_replication,
    "L3": _need_one_family,
    "L4": _need_three_families,
    "L5": _need_prediction,
}
"""What each rung asks of the evidence."""

RUNGS: tuple[str, ...] = ("replicated", "confirmed", *LEVELS)
"""Rungs one can promote to."""


def promote(finding: Finding, rung: str) -> Finding:
    """The finding on another rung; the error says which evidence is missing."""
    reason = missing_evidence(finding, rung)
    if reason is not None:
        hint = f"`winml kb show {finding.id}` shows what each rung needs"
        raise CheckFailed(f"`{finding.id}` cannot become {rung}: {reason}", hint=hint)
    for level in LEVELS:
        if level == rung:
            return replace(finding, confidence=level)
    return replace(finding, status=next(status for status in STATUSES if status == rung))
