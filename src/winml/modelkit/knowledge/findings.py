"""The knowledge base: findings and gaps from the shipped folder and the user's, with the outcomes of replays.

    knowledge/
      findings/npu-006.json                    one finding, named by its id
      gaps/fused-conv.json                     something that is missing
      outcomes/npu-006-20261116T015137Z.json   the outcome of a replay of that finding

A finding in the user's folder replaces the shipped one of the same id.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.evidence import Evidence
from winml.modelkit.core.finding import Experiment, Finding
from winml.modelkit.core.ladder import finding_from_json
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.values import Text, to_json
from winml.modelkit.ep import catalog
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.experiments.table import BUILDERS
from winml.modelkit.knowledge.gaps import Gap
from winml.modelkit.store import digest

SHIPPED = Path(__file__).parent

ReplayAnswer = Literal["holds", "does not hold", "unclear"]


@dataclass(frozen=True, kw_only=True)
class ReplayOutcome:
    """The outcome of a replay."""

    schema: Literal["winml/outcome/1"] = "winml/outcome/1"
    finding: Text
    answer: ReplayAnswer
    reason: Text
    experiment: Text
    """Digest of the experiment; outcomes of other experiments are ignored."""
    winml: Text
    evidence: Evidence


def experiment_digest(experiment: Experiment) -> str:
    return digest.of_json(to_json(experiment))


@dataclass(frozen=True)
class KnownFinding:
    """A finding with its file and the outcomes of its replays."""

    path: Path
    finding: Finding
    outcomes: tuple[ReplayOutcome, ...] = ()

    @property
    def effective(self) -> Finding:
        """The finding after its replays: one that did not hold here is contested."""
        against = tuple(o.reason for o in self.outcomes if o.answer == "does not hold")
        if not against or self.finding.status in ("contested", "retracted"):
            return self.finding
        return replace(self.finding, status="contested", falsified_by=(*self.finding.falsified_by, *against))

    @property
    def with_outcomes(self) -> Finding:
        """The finding with the additional evidence of replays that held."""
        known = {e.run for e in self.finding.evidence}
        more = tuple(o.evidence for o in self.outcomes if o.answer == "holds" and o.evidence.run not in known)
        return replace(self.finding, evidence=(*self.finding.evidence, *more))


def _read_finding(value: Any) -> Finding:
    """A finding whose EP and model builders exist."""
    finding = finding_from_json(value)
    ep = finding.scope.ep
    if ep is not None and ep not in catalog.BY_NAME:
        raise RequestError(f"`scope.ep` cannot be {ep!r}", hint=did_you_mean(ep, catalog.BY_NAME))
    experiment = finding.experiment
    for side, arm in () if experiment is None else (("base", experiment.base), ("candidate", experiment.candidate)):
        name = arm.builder
        if name not in BUILDERS:
            raise RequestError(f"`experiment.{side}.builder` cannot be {name!r}", hint=did_you_mean(name, BUILDERS))
    return finding


class Knowledge:
    """All findings and gaps, read and checked on construction."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read the shipped knowledge and that in `folder`, where new findings and outcomes are written."""
        self.folder = folder
        roots = [SHIPPED] if folder is None or folder.resolve() == SHIPPED else [SHIPPED, folder]
        outcomes = [files.load(path, ReplayOutcome) for root in roots for path in files.json_files(root / "outcomes")]
        self._entries: dict[str, KnownFinding] = {}
        for root in roots:
            for path in files.json_files(root / "findings"):
                finding = files.read(path, _read_finding)
                if finding.id != path.stem:
                    raise DataError(f"`{path}`: `id` must be the file's name but is `{finding.id}`")
                present = None if finding.experiment is None else experiment_digest(finding.experiment)
                own = tuple(o for o in outcomes if o.finding == finding.id and o.experiment == present)
                self._entries[finding.id] = KnownFinding(path, finding, own)
        self.gaps: tuple[Gap, ...] = tuple(
            files.load(path, Gap) for root in roots for path in files.json_files(root / "gaps")
        )

    def __iter__(self) -> Iterator[KnownFinding]:
        yield from (self._entries[name] for name in sorted(self._entries))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """All findings after their replays, as rules use them."""
        return tuple(entry.effective for entry in self)

    def entry(self, name: str) -> KnownFinding:
        found = self._entries.get(name.strip().casefold())
        if found is None:
            raise RequestError(f"unknown finding `{name}`", hint=did_you_mean(name, self._entries))
        return found

    def find_broken_links(self) -> list[str]:
        """References to findings that do not exist."""
        known = set(self._entries)
        links = [(e.finding.id, "related", e.finding.related) for e in self]
        links += [(gap.id, "findings", gap.findings) for gap in self.gaps]
        return [f"{owner}: `{field}` names `{n}`" for owner, field, names in links for n in names if n not in known]
