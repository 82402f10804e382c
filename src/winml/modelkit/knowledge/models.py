"""Findings about supporting model families, one claim each; none is ever removed.

    knowledge/
      models/bart.json     findings about a family
      methodology.json     findings about methodology

The user's folder has the same files; its findings come after the shipped ones and cannot replace them.
"""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Literal, get_args

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.finding import Mechanism
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.support import Effort, Goal
from winml.modelkit.core.values import Names, Pattern, Text
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.findings import SHIPPED
from winml.modelkit.knowledge.gaps import Gap
from winml.modelkit.store import atomic

METHODOLOGY = "methodology"
FindingStatus = Literal["reported", "observed", "refuted"]
"""Reported by others and not reproduced here, seen here, shown to be wrong."""
STATUSES: tuple[FindingStatus, ...] = get_args(FindingStatus)


@dataclass(frozen=True, kw_only=True)
class ModelScope:
    """The models a claim was seen on, was wrong on, and was not tried on."""

    validated_on: Names = ()
    falsified_on: Names = ()
    not_yet_tested_on: Names = ()


@dataclass(frozen=True, kw_only=True)
class ModelFinding:
    """One claim about a family or about methodology, no broader than its evidence."""

    id: Annotated[str, Pattern(r"[a-z0-9]+([_-][a-z0-9]+)*-[0-9]{3}", "a family and three digits, as `bart-001`,")]
    title: Text
    observation: Text
    status: FindingStatus
    source: Text
    """Who saw it."""
    added: Annotated[str, Pattern(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "a date, as 2026-11-16,")]
    scope: ModelScope = field(default_factory=ModelScope)
    effort: Effort | None = None
    """The effort of support; null: not applicable."""
    goal_reached: Goal | None = None
    recipe: Text | None = None
    gotchas: Names = ()
    gaps: Names = ()
    """Gaps of the knowledge base that it demonstrates."""
    mechanism: Mechanism = field(default_factory=Mechanism)
    evidence: Text | None = None
    """The command or contribution that shows it."""
    answered_by: Text | None = None
    """The part of this program that handles it."""

    def __post_init__(self) -> None:
        """Raise for a status or a mechanism without evidence."""
        if self.status == "observed" and (self.evidence is None or not self.scope.validated_on):
            raise RequestError(f"`{self.id}` is observed, which needs `evidence` and `scope.validated_on`")
        if self.status == "refuted" and not self.scope.falsified_on:
            raise RequestError(f"`{self.id}` is refuted, which needs `scope.falsified_on`")
        if self.mechanism.confirmed and self.mechanism.source is None:
            raise RequestError(f"`{self.id}` has a confirmed mechanism, which needs `mechanism.source`")
        if self.status == "reported" and self.goal_reached is not None and self.evidence is None:
            raise RequestError(f"`{self.id}` claims that {self.goal_reached} was reached, which needs `evidence`")

    @property
    def family(self) -> str:
        return self.id.rpartition("-")[0]


@dataclass(frozen=True, kw_only=True)
class FamilyFile:
    """The findings of one file."""

    schema: Literal["winml/model-knowledge/1"] = "winml/model-knowledge/1"
    family: Text
    findings: tuple[ModelFinding, ...]

    def __post_init__(self) -> None:
        for finding in self.findings:
            if finding.family != self.family:
                raise RequestError(f"`{finding.id}` is not about `{self.family}`")


def _place(folder: Path, family: str) -> Path:
    return folder / f"{METHODOLOGY}.json" if family == METHODOLOGY else folder / "models" / f"{family}.json"


class ModelKnowledge:
    """All findings about families and methodology, read and checked on construction."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read the shipped findings and those in `folder`, where new ones are written."""
        self.folder = folder
        roots = [SHIPPED] if folder is None or folder.resolve() == SHIPPED else [SHIPPED, folder]
        self._found: dict[str, tuple[Path, ModelFinding]] = {}
        for root in roots:
            for path in (*files.json_files(root / "models"), _place(root, METHODOLOGY)):
                if path.is_file():
                    self._read(path)
        self._gaps = {files.load(path, Gap).id for root in roots for path in files.json_files(root / "gaps")}

    def _read(self, path: Path) -> None:
        found = files.load(path, FamilyFile)
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
        """Add a finding to the user's folder; an existing one is never changed."""
        assert self.folder is not None
        if finding.id in self._found:
            raise RequestError(
                f"`{finding.id}` already exists; findings are added, never changed",
                hint=f"use a new number, such as `{self.next_id(finding.family)}`, and mention the old one in the text",
            )
        path = _place(self.folder, finding.family)
        before = files.load(path, FamilyFile) if path.is_file() else FamilyFile(family=finding.family, findings=())
        atomic.write_bytes(path, files.text(replace(before, findings=(*before.findings, finding))))
        self._found[finding.id] = (path, finding)
        return path

    def next_id(self, family: str) -> str:
        """The next free id of a family."""
        taken = [int(f.id.rpartition("-")[2]) for f in self.about(family)]
        return f"{family}-{max(taken, default=0) + 1:03d}"
