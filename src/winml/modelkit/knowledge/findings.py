"""The knowledge base: findings and gaps from the shipped folder and the user's, with what replays came to.

    knowledge/
      findings/npu-006.json                    one finding, named by its id
      gaps/fused-conv.json                     something that is missing
      outcomes/npu-006-20261116T015137Z.json   what a replay of that finding came to

A finding in the user's folder replaces the shipped one of the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.finding import Evidence, Experiment, Finding
from winml.modelkit.core.ladder import finding_from_json
from winml.modelkit.core.sections import choice, key, section, text
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.ep import catalog
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.experiments.table import BUILDERS
from winml.modelkit.knowledge.gaps import Gap, gap_from_json
from winml.modelkit.store import digest

SHIPPED = Path(__file__).parent
OUTCOME_SCHEMA = "winml/outcome/1"


def _outcome_schema(value: Any, where: str) -> str:
    if value != OUTCOME_SCHEMA:
        raise RequestError(f"`{where}` must be `{OUTCOME_SCHEMA}` but got {value!r}")
    return OUTCOME_SCHEMA


@dataclass(frozen=True)
class Outcome:
    """What a replay came to."""

    schema: str = key(_outcome_schema)
    finding: str = key(text)
    answer: str = key(choice("holds", "does not hold", "unclear"))
    reason: str = key(text)
    experiment: str = key(text)
    """Digest of the experiment that was run; an outcome of another one says nothing."""
    winml: str = key(text)
    evidence: Evidence = key(section(Evidence))

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def experiment_digest(experiment: Experiment) -> str:
    return digest.of_json(sections.plain(experiment))


def outcome_from_json(value: Any) -> Outcome:
    return sections.read(Outcome, value, "")


@dataclass(frozen=True)
class Entry:
    """A finding with the file it is from and what its replays came to."""

    path: Path
    finding: Finding
    outcomes: tuple[Outcome, ...] = ()

    @property
    def effective(self) -> Finding:
        """The finding as it stands after its replays: one that did not hold here is contested."""
        against = tuple(o.reason for o in self.outcomes if o.answer == "does not hold")
        if not against or self.finding.status in ("contested", "retracted"):
            return self.finding
        return replace(self.finding, status="contested", falsified_by=(*self.finding.falsified_by, *against))

    @property
    def with_outcomes(self) -> Finding:
        """The finding with the evidence of the replays that held and that it does not have yet."""
        known = {e.run for e in self.finding.evidence}
        more = tuple(o.evidence for o in self.outcomes if o.answer == "holds" and o.evidence.run not in known)
        return replace(self.finding, evidence=(*self.finding.evidence, *more))


def _finding(value: Any) -> Finding:
    """A finding whose EP and model builders exist."""
    finding = finding_from_json(value)
    ep = finding.scope.ep
    if ep is not None and ep not in catalog.BY_NAME:
        raise RequestError(f"`scope.ep` cannot be {ep!r}", hint=did_you_mean(ep, catalog.BY_NAME))
    if finding.experiment is not None:
        for arm in ("base", "candidate"):
            name = getattr(finding.experiment, arm).builder
            if name not in BUILDERS:
                raise RequestError(f"`experiment.{arm}.builder` cannot be {name!r}", hint=did_you_mean(name, BUILDERS))
    return finding


def _outcomes_of(finding: Finding, outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """What replays of the finding's present experiment came to."""
    if finding.experiment is None:
        return ()
    present = experiment_digest(finding.experiment)
    return tuple(o for o in outcomes if o.finding == finding.id and o.experiment == present)


class Knowledge:
    """Everything that is known, read and checked when it is made."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read the shipped knowledge and that in `folder`, where new findings and outcomes are written."""
        self.folder = folder
        roots = [SHIPPED] if folder is None or folder.resolve() == SHIPPED else [SHIPPED, folder]
        outcomes = [o for root in roots for o in self._outcomes(root)]
        self._entries: dict[str, Entry] = {}
        for root in roots:
            for path in files.json_files(root / "findings"):
                finding = files.read(path, _finding)
                if finding.id != path.stem:
                    raise DataError(f"`{path}`: `id` must be the file's name but is `{finding.id}`")
                self._entries[finding.id] = Entry(path, finding, _outcomes_of(finding, outcomes))
        self.gaps: tuple[Gap, ...] = tuple(
            files.read(path, gap_from_json) for root in roots for path in files.json_files(root / "gaps")
        )

    @staticmethod
    def _outcomes(root: Path) -> Iterator[Outcome]:
        for path in files.json_files(root / "outcomes"):
            yield files.read(path, outcome_from_json)

    def __iter__(self) -> Iterator[Entry]:
        yield from (self._entries[name] for name in sorted(self._entries))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """All findings as they stand after their replays: what rules are asked with."""
        return tuple(entry.effective for entry in self)

    def entry(self, name: str) -> Entry:
        found = self._entries.get(name.strip().casefold())
        if found is None:
            raise RequestError(f"unknown finding `{name}`", hint=did_you_mean(name, self._entries))
        return found

    def strangers(self) -> list[str]:
        """Names of findings that are referred to and do not exist, with where."""
        known = set(self._entries)
        links = [(e.finding.id, "related", e.finding.related) for e in self]
        links += [(gap.id, "findings", gap.findings) for gap in self.gaps]
        return [f"{owner}: `{field}` names `{n}`" for owner, field, names in links for n in names if n not in known]
