"""What is known about supporting model families, one claim each; nothing is ever taken out.

    knowledge/
      models/bart.json     findings about a family
      methodology.json     findings about the work itself

The user's folder has the same files; what stands there comes after the shipped findings and cannot replace one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.finding import Mechanism
from winml.modelkit.core.sections import choice, each, key, names, optional, section, text
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.support import EFFORTS, GOALS
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.findings import SHIPPED
from winml.modelkit.knowledge.gaps import gap_from_json
from winml.modelkit.store import atomic

SCHEMA = "winml/model-knowledge/1"
METHODOLOGY = "methodology"
STATUSES = ("reported", "observed", "refuted")
"""Told by others and not repeated here, seen here, shown to be wrong."""

_ID = re.compile(r"([a-z0-9]+(?:[_-][a-z0-9]+)*)-(\d{3})")


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


def _identifier(value: Any, where: str) -> str:
    word = text(value, where)
    if not _ID.fullmatch(word):
        raise RequestError(f"`{where}` must be a family and three digits, as `bart-001`, but got {value!r}")
    return word


def _date(value: Any, where: str) -> str:
    word = text(value, where)
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", word):
        raise RequestError(f"`{where}` must be a date, as 2026-11-16, but got {value!r}")
    return word


@dataclass(frozen=True)
class ModelScope:
    """The models a claim was seen on, was wrong on, and was not tried on."""

    validated_on: tuple[str, ...] = key(names, ())
    falsified_on: tuple[str, ...] = key(names, ())
    not_yet_tested_on: tuple[str, ...] = key(names, ())


@dataclass(frozen=True)
class ModelFinding:
    """One claim about a family or about the work."""

    id: str = key(_identifier)
    title: str = key(text)
    observation: str = key(text)
    status: str = key(choice(*STATUSES))
    source: str = key(text)
    """Who saw it."""
    added: str = key(_date)
    scope: ModelScope = key(section(ModelScope), factory=ModelScope)
    effort: str | None = key(optional(choice(*EFFORTS)), None)
    """What support took; null: not about that."""
    goal_reached: str | None = key(optional(choice(*GOALS)), None)
    recipe: str | None = key(optional(text), None)
    gotchas: tuple[str, ...] = key(names, ())
    gaps: tuple[str, ...] = key(names, ())
    """Gaps of the knowledge base that it shows."""
    mechanism: Mechanism = key(section(Mechanism), factory=Mechanism)
    evidence: str | None = key(optional(text), None)
    """The command or contribution that shows it."""
    answered_by: str | None = key(optional(text), None)
    """What in this program deals with it."""

    @property
    def family(self) -> str:
        return self.id.rpartition("-")[0]

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def finding_from_json(value: Any) -> ModelFinding:
    """A finding that says no more than it shows."""
    finding = sections.read(ModelFinding, value, "")
    _require_honest(finding)
    return finding


def _require_honest(finding: ModelFinding) -> None:
    """Refuse a status or a mechanism that nothing stands behind."""
    if finding.status == "observed" and (finding.evidence is None or not finding.scope.validated_on):
        raise RequestError(f"`{finding.id}` is observed, which needs `evidence` and `scope.validated_on`")
    if finding.status == "refuted" and not finding.scope.falsified_on:
        raise RequestError(f"`{finding.id}` is refuted, which needs `scope.falsified_on`")
    if finding.mechanism.confirmed and finding.mechanism.source is None:
        raise RequestError(f"`{finding.id}` has a confirmed mechanism, which needs `mechanism.source`")
    if finding.status == "reported" and finding.goal_reached is not None and finding.evidence is None:
        raise RequestError(f"`{finding.id}` says that {finding.goal_reached} was reached, which needs `evidence`")


@dataclass(frozen=True)
class FamilyFile:
    """The findings of one file."""

    schema: str = key(_schema)
    family: str = key(text)
    findings: tuple[ModelFinding, ...] = key(each(lambda value, _: finding_from_json(value)))

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def family_from_json(value: Any) -> FamilyFile:
    found = sections.read(FamilyFile, value, "")
    for finding in found.findings:
        if finding.family != found.family:
            raise RequestError(f"`{finding.id}` is not about `{found.family}`")
    return found


def _place(folder: Path, family: str) -> Path:
    return folder / f"{METHODOLOGY}.json" if family == METHODOLOGY else folder / "models" / f"{family}.json"


class ModelKnowledge:
    """Every finding about families and the work, read and checked when it is made."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read the shipped findings and those in `folder`, where new ones are written."""
        self.folder = folder
        roots = [SHIPPED] if folder is None or folder.resolve() == SHIPPED else [SHIPPED, folder]
        self._found: dict[str, tuple[Path, ModelFinding]] = {}
        for root in roots:
            for path in (*files.json_files(root / "models"), _place(root, METHODOLOGY)):
                if path.is_file():
                    self._read(path)
        self._gaps = {files.read(path, gap_from_json).id for root in roots for path in files.json_files(root / "gaps")}

    def _read(self, path: Path) -> None:
        found = files.read(path, family_from_json)
        if found.family != path.stem:
            raise DataError(f"`{path}`: `family` must be the file's name but is `{found.family}`")
        for finding in found.findings:
            if finding.id in self._found:
                raise DataError(f"`{path}`: `{finding.id}` is in `{self._found[finding.id][0]}` already")
            self._found[finding.id] = (path, finding)

    @property
    def findings(self) -> tuple[ModelFinding, ...]:
        return tuple(finding for _, (_, finding) in sorted(self._found.items()))

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(sorted({f.family for f in self.findings} - {METHODOLOGY}))

    def about(self, family: str) -> tuple[ModelFinding, ...]:
        return tuple(f for f in self.findings if f.family == family)

    def entry(self, name: str) -> tuple[Path, ModelFinding]:
        found = self._found.get(name.strip().casefold())
        if found is None:
            raise RequestError(f"unknown finding `{name}`", hint=did_you_mean(name, self._found))
        return found

    def problems(self, recipes: frozenset[str]) -> list[str]:
        """Gaps and recipes that findings name and that do not exist."""
        return [
            f"{f.id}: `{field}` names `{name}`"
            for f in self.findings
            for field, named, known in (
                ("gaps", f.gaps, self._gaps),
                ("recipe", () if f.recipe is None else (f.recipe,), recipes),
            )
            for name in named
            if name not in known
        ]

    def add(self, finding: ModelFinding) -> Path:
        """Append a finding to the user's folder; one that is known is never changed."""
        assert self.folder is not None
        if finding.id in self._found:
            raise RequestError(
                f"`{finding.id}` is known; findings are added, never changed",
                hint=f"take a new number, such as `{self.next_id(finding.family)}`, and name the old one in the text",
            )
        path = _place(self.folder, finding.family)
        before = files.read(path, family_from_json) if path.is_file() else FamilyFile(SCHEMA, finding.family, ())
        atomic.write_bytes(path, files.text(replace(before, findings=(*before.findings, finding)).to_json()))
        self._found[finding.id] = (path, finding)
        return path

    def next_id(self, family: str) -> str:
        """The first number that is free in a family."""
        taken = [int(f.id.rpartition("-")[2]) for f in self.about(family)]
        return f"{family}-{max(taken, default=0) + 1:03d}"
