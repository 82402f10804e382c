"""The journal of a search: its records, the state they add up to, and those that another search may reuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from winml.modelkit import __version__
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.measurement import GenerationArm
from winml.modelkit.core.metric_source import MetricSource
from winml.modelkit.core.objective import Objective
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import key, to_json
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.search.space import ConfigJSON, Option, trial_id
from winml.modelkit.search.strategy import Confirmation, State
from winml.modelkit.search.trial import FreshRounds, Series, Trial
from winml.modelkit.store import journal

JOURNAL = "journal.jsonl"


@dataclass(frozen=True, kw_only=True)
class GateLimits:
    """The limits that a config must meet, with all defaults filled in."""

    kind: Literal["task", "agreement"]
    data: DataSection | None
    task: str | None
    min_metric: float | None
    max_drop: float | None
    min_agreement: float | None
    judge: Literal["interval", "value"]
    digest: str | None
    """Digest of the inputs."""
    metric: str | None = key(omit=True)
    """The metric of the task that the limits are for; none is its first."""
    max_metric: float | None = key(omit=True)
    custom_metric: MetricSource | None = key(omit=True)
    """The user's own function; it is named here, and never run from here."""
    task_options: Mapping[str, str] | None = key(omit=True)


def describe_limits(limits: GateLimits) -> str:
    """The limits in a sentence, without the data, which a journal holds the digest of only."""
    name = "the metric" if limits.metric is None else limits.metric
    if limits.custom_metric is not None:
        file = f" of `{limits.custom_metric.file}`" if limits.custom_metric.file else ""
        name = f"the metric by `{limits.custom_metric.function}`{file}"
    of_metric = []
    if limits.min_metric is not None:
        of_metric.append(f"must be at least {limits.min_metric:g}")
    if limits.max_metric is not None:
        of_metric.append(f"must be at most {limits.max_metric:g}")
    if limits.max_drop is not None:
        of_metric.append(f"may drop by at most {limits.max_drop:g}")
    parts = [f"{name} {' and '.join(of_metric)}"] if of_metric else []
    if limits.min_agreement is not None:
        parts.append(f"outputs must agree by a median cosine of at least {limits.min_agreement:g}")
    return " and ".join(parts) or "no limit"


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The search that a journal belongs to; another one cannot be resumed in its folder."""

    model: str
    targets: tuple[Target, ...]
    objective: Objective
    baseline: ConfigJSON
    calibration: str | None
    gate: GateLimits
    knobs: Mapping[str, tuple[str, ...]]
    inputs: InputSettings
    versions: Mapping[str, Mapping[str, str]]
    text: GenerationArm | None = key(omit=True)
    """For a model that generates text: what is measured of it, without its folder."""

    def differences(self, other: Identity) -> list[str]:
        """Names of the fields in which two searches differ."""
        names = (one.name for one in fields(self))
        return [name for name in names if to_json(getattr(self, name)) != to_json(getattr(other, name))]


@dataclass(frozen=True, kw_only=True)
class StudyRecord:
    """The identity of the search; the first record."""

    kind: Literal["study"] = "study"
    winml: str
    identity: Identity
    model: str | None = key(omit=True)
    """The path of the model, for readers; the identity has its digest. Journals of earlier versions do not have it."""


@dataclass(frozen=True, kw_only=True)
class PreparationRecord:
    """The start of a run of the search."""

    kind: Literal["preparation"] = "preparation"
    seconds: float


@dataclass(frozen=True, kw_only=True)
class EvidenceRecord:
    """Whether a finding holds on this machine."""

    kind: Literal["evidence"] = "evidence"
    finding: str
    holds: bool
    words: str


@dataclass(frozen=True, kw_only=True)
class CalibrationRecord:
    """A/A rounds of the baseline."""

    kind: Literal["calibration"] = "calibration"
    values: Mapping[str, tuple[float, ...]]
    seconds: float | None = key(omit=True)


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """A choice was tried."""

    kind: Literal["trial"] = "trial"
    trial: Trial
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class RoundsRecord:
    """A trial was measured for more rounds."""

    kind: Literal["rounds"] = "rounds"
    trial: str
    series: Series
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ConfirmationRecord:
    """A trial was measured again on fresh rounds."""

    kind: Literal["confirmation"] = "confirmation"
    trial: str
    confirmed: bool
    verdict: Verdict
    measured: FreshRounds
    seconds: float = 0.0


Record = (
    StudyRecord
    | PreparationRecord
    | EvidenceRecord
    | CalibrationRecord
    | TrialRecord
    | RoundsRecord
    | ConfirmationRecord
)
KINDS: Mapping[str, type[Record]] = {
    "study": StudyRecord,
    "preparation": PreparationRecord,
    "evidence": EvidenceRecord,
    "calibration": CalibrationRecord,
    "trial": TrialRecord,
    "rounds": RoundsRecord,
    "confirmation": ConfirmationRecord,
}


def read_records(lines: Iterable[Mapping[str, Any]], source: str) -> list[Record]:
    """The records of a journal; those of unknown kinds, written by later versions, are skipped."""
    return journal.read_values(lines, "kind", KINDS, source=source)


def _check_order(record: Record, known: frozenset[str]) -> None:
    """Raise when a record refers to an unknown trial, or the first trial is not the baseline."""
    if isinstance(record, RoundsRecord | ConfirmationRecord) and record.trial not in known:
        raise DataError(f"the journal refers to trial `{record.trial}` before it exists")
    if not isinstance(record, TrialRecord):
        return
    trial = record.trial
    if trial.id in known:
        raise DataError(f"the journal has trial `{trial.id}` twice")
    if (trial.outcome == "baseline") == bool(known):
        raise DataError("the first trial of a journal, and only that, must be its baseline")
    if trial.outcome == "measured" and trial.series is None:
        raise DataError(f"the journal has no rounds for trial `{trial.id}`, which was measured")
    if trial.same_as is not None and trial.same_as not in known:
        raise DataError(f"trial `{trial.id}` is the same as `{trial.same_as}`, which the journal does not have")


def apply(record: Record, state: State) -> State:
    """The state after one more record."""
    match record:
        case TrialRecord():
            state = replace(state, trials=(*state.trials, record.trial))
        case RoundsRecord():
            state = replace(state, trials=tuple(_add_rounds(trial, record) for trial in state.trials))
        case CalibrationRecord():
            state = replace(state, calibration=record.values)
        case ConfirmationRecord():
            done = Confirmation(record.trial, record.confirmed, record.verdict, record.measured)
            state = replace(state, confirmations=(*state.confirmations, done))
        case PreparationRecord():
            state = replace(state, preparation_s=record.seconds)
        case StudyRecord() | EvidenceRecord():
            return state
    return replace(state, seconds=state.seconds + (record.seconds or 0.0))


def _add_rounds(trial: Trial, more: RoundsRecord) -> Trial:
    if trial.id != more.trial:
        return trial
    return replace(trial, series=more.series if trial.series is None else trial.series.extend(more.series))


def replay(records: Iterable[Record]) -> State:
    """The state after all records of a journal."""
    state = State()
    for record in records:
        _check_order(record, frozenset(trial.id for trial in state.trials))
        state = apply(record, state)
    return state


def reuse_trials(folder: str, identity: Identity, options: Iterable[Option]) -> list[Record]:
    """Records of an earlier search whose choices have only these options, renumbered; knobs may differ."""
    path = Path(folder) / JOURNAL
    lines = journal.read(path).records
    if not lines or lines[0].get("kind") != "study":
        raise RequestError(
            f"`{folder}` holds no search", hint=near_path(folder, "give the folder of an earlier `winml autoconfig`")
        )
    if lines[0].get("winml") != __version__:
        raise RequestError(f"the search in `{folder}` was run by winml {lines[0].get('winml')}, this is {__version__}")
    study, *records = read_records(lines, str(path))
    assert isinstance(study, StudyRecord)
    differing = [name for name in identity.differences(study.identity) if name != "knobs"]
    if differing:
        raise RequestError(f"the search in `{folder}` cannot be reused: {', '.join(differing)} differ")
    return _renumber(records, folder, frozenset(options))


def _renumber(records: Sequence[Record], folder: str, options: frozenset[Option]) -> list[Record]:
    names: dict[str, str] = {}
    found: list[Record] = []
    for record in records:
        if isinstance(record, CalibrationRecord):
            found.append(replace(record, seconds=0.0))
        elif isinstance(record, TrialRecord):
            trial = record.trial
            has_twin = trial.same_as is None or trial.same_as in names
            if has_twin and options.issuperset(trial.choice):
                names[trial.id] = trial_id(trial.choice, len(names))
                twin = None if trial.same_as is None else names[trial.same_as]
                facts = replace(trial.facts, reused_from=folder)
                found.append(TrialRecord(trial=replace(trial, id=names[trial.id], same_as=twin, facts=facts)))
        elif isinstance(record, RoundsRecord) and record.trial in names:
            found.append(replace(record, trial=names[record.trial], seconds=0.0))
    return found
