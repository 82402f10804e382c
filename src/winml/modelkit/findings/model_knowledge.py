"""`winml support knowledge`: findings about supporting model families."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.support import Effort, Goal, SupportResult
from winml.modelkit.core.values import Names
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.knowledge.files import knowledge_folder
from winml.modelkit.knowledge.models import METHODOLOGY, STATUSES, FindingStatus, ModelFinding, ModelKnowledge


@dataclass(frozen=True, kw_only=True)
class KnowledgeRow:
    """A summary of a finding."""

    id: str
    family: str
    title: str
    status: FindingStatus
    effort: Effort | None
    goal_reached: Goal | None


@dataclass(frozen=True, kw_only=True)
class KnowledgeList(SupportResult):
    action: Literal["knowledge-list"] = "knowledge-list"
    families: Names
    findings: tuple[KnowledgeRow, ...]


@dataclass(frozen=True, kw_only=True)
class KnowledgeEntry(SupportResult):
    action: Literal["knowledge-show"] = "knowledge-show"
    file: str
    finding: ModelFinding


@dataclass(frozen=True, kw_only=True)
class KnowledgeAddition(SupportResult):
    action: Literal["knowledge-add"] = "knowledge-add"
    file: str
    finding: str


@dataclass(frozen=True, kw_only=True)
class KnowledgeCheck(SupportResult):
    action: Literal["knowledge-check"] = "knowledge-check"
    families: Names
    statuses: Mapping[FindingStatus, int]
    """How many findings have each status."""
    problems: Names


def list_knowledge(knowledge: str | None, *, family: str | None, status: str | None) -> KnowledgeList:
    """A summary of every finding, filtered by family and status."""
    known = ModelKnowledge(knowledge_folder(knowledge))
    if status is not None and status not in STATUSES:
        raise RequestError(f"unknown status `{status}`", hint=did_you_mean(status, STATUSES))
    if family is not None and family not in (*known.families, METHODOLOGY):
        raise RequestError(f"there are no findings about family `{family}`", hint=did_you_mean(family, known.families))
    rows = tuple(
        KnowledgeRow(
            id=f.id, family=f.family, title=f.title, status=f.status, effort=f.effort, goal_reached=f.goal_reached
        )
        for f in known.findings
        if family in (None, f.family) and status in (None, f.status)
    )
    return KnowledgeList(families=known.families, findings=rows)


def show_finding(knowledge: str | None, name: str) -> KnowledgeEntry:
    """A finding in full."""
    path, finding = ModelKnowledge(knowledge_folder(knowledge)).entry(name)
    return KnowledgeEntry(file=str(path), finding=finding)


def add_finding(knowledge: str | None, path: str) -> KnowledgeAddition:
    """Add the finding in a file."""
    known = ModelKnowledge(knowledge_folder(knowledge))
    finding = files.load(Path(path), ModelFinding)
    return KnowledgeAddition(file=str(known.add(finding)), finding=finding.id)


def check_knowledge(knowledge: str | None) -> KnowledgeCheck:
    """Read everything strictly; raises CheckFailed for a name that refers to nothing."""
    known = ModelKnowledge(knowledge_folder(knowledge))
    problems = tuple(known.problems(frozenset(recipes.load_recipes())))
    counts = {status: sum(f.status == status for f in known.findings) for status in STATUSES}
    result = KnowledgeCheck(families=known.families, statuses=counts, problems=problems)
    if problems:
        raise CheckFailed(f"{len(problems)} problems in model knowledge: {problems[0]}", result=result)
    return result
