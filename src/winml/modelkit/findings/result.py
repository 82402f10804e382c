"""The results of `winml kb`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.evidence import EvidenceKind, Speaks
from winml.modelkit.core.finding import Category, Finding, Level, Status
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.sweep import Claim, Order
from winml.modelkit.core.values import key
from winml.modelkit.knowledge.findings import ReplayAnswer, ReplayOutcome
from winml.modelkit.knowledge.gaps import Gap, GapStatus
from winml.modelkit.measuring.recorded import Answer, PairAnswer


@dataclass(frozen=True, kw_only=True)
class KbResult:
    """The fields of every result."""

    schema: Literal["winml/kb/1"] = "winml/kb/1"
    ok: Literal[True] = True


@dataclass(frozen=True, kw_only=True)
class FindingRow:
    """A summary of a finding."""

    id: str
    title: str
    target: str | None
    """null: it applies to any EP."""
    category: Category
    claim: EvidenceKind
    status: Status
    confidence: Level | None
    prunes: bool
    """Whether a search skips levels because of it."""
    replayable: bool
    single_model: bool


@dataclass(frozen=True, kw_only=True)
class GapRow:
    """A summary of a gap."""

    id: str
    title: str
    status: GapStatus
    findings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NotListed:
    """How many general findings and gaps, which are about no EP, a list for one target leaves out."""

    findings: int
    gaps: int


@dataclass(frozen=True, kw_only=True)
class KbList(KbResult):
    action: Literal["list"] = "list"
    findings: tuple[FindingRow, ...]
    gaps: tuple[GapRow, ...]
    not_listed: NotListed


@dataclass(frozen=True, kw_only=True)
class KbFinding(KbResult):
    action: Literal["show"] = "show"
    file: str
    finding: Finding
    outcomes: tuple[ReplayOutcome, ...]
    judged: tuple[str | None, ...]
    """The judgement of each piece of evidence; null where there is nothing to judge."""
    missing: Mapping[str, str | None]
    """By rung, the missing evidence; null when there is none."""


@dataclass(frozen=True, kw_only=True)
class KbCheck(KbResult):
    action: Literal["check"] = "check"
    findings: int
    statuses: Mapping[Status, int]
    gaps: int
    presets: Mapping[str, int]
    """How many hypotheses each preset has."""
    problems: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class JudgedPair:
    """A recorded config against the base, on one model and target."""

    ep: str | None
    device: str | None
    model: str
    shown: PairAnswer = key(inline=True)


@dataclass(frozen=True, kw_only=True)
class ClaimedPair(JudgedPair):
    """A pair that a finding makes a claim about."""

    claim: Claim
    claim_answer: Answer
    speaks: Speaks


@dataclass(frozen=True, kw_only=True)
class JudgedFinding:
    """The judgement of a finding by a record."""

    id: str
    title: str
    status: Status
    answer: Answer
    pairs: tuple[ClaimedPair, ...]


@dataclass(frozen=True, kw_only=True)
class KbJudgement(KbResult):
    action: Literal["judge"] = "judge"
    file: str
    base: str
    order: Order
    doubts: tuple[str, ...]
    """Configs whose passes may differ from the record."""
    pairs: tuple[JudgedPair, ...]
    findings: tuple[JudgedFinding, ...]
    counts: Mapping[Answer, int]


@dataclass(frozen=True, kw_only=True)
class KbReplay(KbResult):
    action: Literal["replay"] = "replay"
    file: str
    title: str
    outcome: ReplayOutcome


@dataclass(frozen=True, kw_only=True)
class KbPromotion(KbResult):
    action: Literal["promote"] = "promote"
    file: str
    finding: str
    rung: str
    runs: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A draft finding."""

    id: str
    title: str


@dataclass(frozen=True, kw_only=True)
class PassedOver:
    """A trial without a draft finding."""

    hypothesis: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class KbDrafts(KbResult):
    action: Literal["draft"] = "draft"
    folder: str
    drafts: tuple[Draft, ...]
    known: tuple[str, ...]
    """Findings that were drafted before."""
    passed_over: tuple[PassedOver, ...]


@dataclass(frozen=True, kw_only=True)
class ReplayRow:
    """A summary of a replay."""

    answer: ReplayAnswer
    reason: str
    run: str


@dataclass(frozen=True, kw_only=True)
class EvidenceGain:
    """The time that a piece of evidence shows to be saved, judged again, and what the finding claims of it."""

    gain_pct: float
    interval_pct: tuple[float, float] | None
    level: float
    """Of the interval."""
    claimed_pct: tuple[float | None, float | None] | None
    """The least and the largest gain that agree with the claim, null where there is no bound; null for a control
    without a claim."""
    answer: Answer | None
    """Whether it supports that claim; null without one."""


@dataclass(frozen=True, kw_only=True)
class ReportEntry:
    """A finding as the page shows it."""

    target: str | None
    single_model: bool
    finding: Finding
    judged: tuple[str | None, ...]
    outcomes: tuple[ReplayRow, ...]
    gains: tuple[EvidenceGain | None, ...] = ()
    """Of each piece of evidence; null where it has no times."""


@dataclass(frozen=True, kw_only=True, repr=False)
class KbReport(KbResult, CommandResult):
    action: Literal["report"] = "report"
    file: str
    entries: tuple[ReportEntry, ...]
    gaps: tuple[Gap, ...]
