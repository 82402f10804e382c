"""`winml support knowledge`: what is known about supporting model families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.findings.kb_command import knowledge_folder
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.knowledge.models import METHODOLOGY, STATUSES, ModelFinding, ModelKnowledge, finding_from_json

SCHEMA = "winml/support/1"


def _result(action: str, values: dict[str, Any]) -> dict[str, Any]:
    return {"schema": SCHEMA, "ok": True, "action": f"knowledge-{action}", **values}


def _row(finding: ModelFinding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "family": finding.family,
        "title": finding.title,
        "status": finding.status,
        "effort": finding.effort,
        "goal_reached": finding.goal_reached,
    }


def listing(knowledge: str | None, *, family: str | None, status: str | None) -> dict[str, Any]:
    """Every finding in short; by family and status when they are given."""
    known = ModelKnowledge(knowledge_folder(knowledge))
    if status is not None and status not in STATUSES:
        raise RequestError(f"unknown status `{status}`", hint=did_you_mean(status, STATUSES))
    if family is not None and family not in (*known.families, METHODOLOGY):
        raise RequestError(f"nothing is known about family `{family}`", hint=did_you_mean(family, known.families))
    rows = [_row(f) for f in known.findings if family in (None, f.family) and status in (None, f.status)]
    return _result("list", {"families": list(known.families), "findings": rows})


def show(knowledge: str | None, name: str) -> dict[str, Any]:
    """A finding in full."""
    path, finding = ModelKnowledge(knowledge_folder(knowledge)).entry(name)
    return _result("show", {"file": str(path), "finding": finding.to_json()})


def add(knowledge: str | None, path: str) -> dict[str, Any]:
    """Append the one finding of a file."""
    known = ModelKnowledge(knowledge_folder(knowledge))
    finding = files.read(Path(path), finding_from_json)
    written = known.add(finding)
    return _result("add", {"file": str(written), "finding": finding.id})


def check(knowledge: str | None) -> dict[str, Any]:
    """Read everything strictly; a name that leads nowhere is a check answered with no."""
    known = ModelKnowledge(knowledge_folder(knowledge))
    problems = known.problems(frozenset(recipes.recipes()))
    counts = {status: sum(f.status == status for f in known.findings) for status in STATUSES}
    result = _result("check", {"families": list(known.families), "statuses": counts, "problems": problems})
    if problems:
        raise CheckFailed(f"{len(problems)} problems in model knowledge: {problems[0]}", details=result)
    return result
