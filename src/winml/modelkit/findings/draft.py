"""`winml kb draft`: draft findings from the kept gains of a run.

A run is either the result of `winml compare --json -o FILE`, or a folder with `trials.jsonl`: one JSON object per line,

    {"hypothesis": "h3", "target": "cpu", "model": "bert.onnx", "model_type": "bert",
     "changes": {...}, "facts": {...}, "verdict": {...}, "measurement": {...}}

where `verdict` and `measurement` are those of `winml compare`; other keys are ignored. In a journal line,
the `record` is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import RuntimeVersion
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.evidence import Evidence, RawSamples, SamplesEvidence, WordsEvidence
from winml.modelkit.core.finding import Category, Finding, Scope, ScopeModel
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.values import Text, read
from winml.modelkit.ep import targets
from winml.modelkit.findings.result import PassedOver
from winml.modelkit.knowledge import files
from winml.modelkit.store import digest

TRIALS = "trials.jsonl"
GAIN_PCT = 10.0
"""Smaller gains are too small for a finding."""


@dataclass(frozen=True, kw_only=True)
class TrialLine:
    """The fields of a trial that a finding needs; verdict and measurement stay as written."""

    hypothesis: Text
    target: Text
    verdict: Mapping[str, Any]
    model: Text | None = None
    model_type: Text | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the graph, by the names that conditions use."""
    measurement: Mapping[str, Any] | None = None
    calibration: Text | None = None
    calibrations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StoredArm:
    """The fields of a comparison's base that a trial needs."""

    label: Text | None = None


@dataclass(frozen=True, kw_only=True)
class StoredCandidate:
    """The fields of a candidate that a trial needs."""

    label: Text
    target: Text
    verdict: Mapping[str, Any]
    measurement: Mapping[str, Any] | None = None
    calibration: Text | None = None


@dataclass(frozen=True, kw_only=True)
class StoredComparison:
    """The fields of a `winml compare` result that trials need; the comparison may have failed."""

    schema: Literal["winml/compare/1"] = "winml/compare/1"
    base: StoredArm = StoredArm()
    candidates: tuple[StoredCandidate, ...]
    calibrations: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrialVerdict:
    """The fields of a verdict that a draft needs."""

    verdict: str | None = None
    gain_pct: float | None = None
    interval_pct: tuple[float, float] | None = None
    rounds: int = 0


@dataclass(frozen=True, kw_only=True)
class TrialEnvironment:
    runtime: RuntimeVersion | None = None


@dataclass(frozen=True, kw_only=True)
class TrialMeasurement:
    """The fields of a measurement that a draft needs."""

    environment: TrialEnvironment = TrialEnvironment()


def draft_findings(run: Path) -> tuple[list[Finding], list[PassedOver]]:
    """The draft findings of a run, and why other trials were skipped."""
    path = run / TRIALS
    if run.is_dir() and not path.is_file():
        raise RequestError(f"`{run}` has no `{TRIALS}`", hint="give the folder of a run, or a stored comparison")
    trials = list(_read_lines(path)) if run.is_dir() else files.read(run, _read_comparison)
    drafts, passed_over = [], []
    for trial in trials:
        try:
            found = _draft(trial)
        except RequestError as error:
            raise DataError(f"`{run}`: `{trial.hypothesis}`: {error.message}", hint=error.hint) from error
        if isinstance(found, Finding):
            drafts.append(found)
        else:
            passed_over.append(PassedOver(hypothesis=trial.hypothesis, reason=found))
    return drafts, passed_over


def _read_lines(path: Path) -> Iterator[TrialLine]:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            value = parse_json(line)
            record = value.get("record", value) if isinstance(value, dict) else value
            yield read(TrialLine, record, strict=False)
        except ValueError as error:
            raise DataError(f"`{path}` line {number} is not JSON: {error}") from error
        except RequestError as error:
            raise DataError(f"`{path}` line {number}: {error.message}", hint=error.hint) from error


def _read_comparison(value: Any) -> list[TrialLine]:
    """The candidates of a stored comparison as trials."""
    if not isinstance(value, dict) or value.get("schema") != "winml/compare/1" or "candidates" not in value:
        raise RequestError("it is not a stored comparison", hint="write one with `winml compare ... --json -o FILE`")
    stored = read(StoredComparison, value, strict=False)
    return [
        TrialLine(
            hypothesis=candidate.label,
            target=candidate.target,
            model=stored.base.label,
            verdict=candidate.verdict,
            measurement=candidate.measurement,
            calibration=candidate.calibration,
            calibrations=stored.calibrations,
        )
        for candidate in stored.candidates
    ]


_CATEGORIES: dict[str, Category] = {
    "optimize": "graph-fusion-benefit",
    "quantize": "quantization",
    "compile": "compile",
    "session": "session-options",
}
"""By the changed section; a change of several sections is category `config`."""


def _draft(trial: TrialLine) -> Finding | str:
    """The draft finding of a trial, or why there is none."""
    verdict = read(TrialVerdict, trial.verdict, "verdict", strict=False)
    if verdict.verdict not in ("KEEP", "MARGINAL_KEEP"):
        return f"not kept: {verdict.verdict}"
    gain = verdict.gain_pct
    if gain is None or not math.isfinite(gain):
        raise RequestError(f"`verdict.gain_pct` must be a number but got {gain!r}")
    if gain <= GAIN_PCT:
        return f"a gain of {gain:.1f} % is not above {GAIN_PCT:g} %"
    asked = targets.parse_target(trial.target)
    if asked.ep is None:
        raise RequestError(f"`target` must name an execution provider but is `{trial.target}`")
    device = asked.device or asked.ep.devices[0]
    evidence = _evidence(trial, gain)
    stamp = digest.of_json([trial.target, trial.model, trial.hypothesis, trial.changes, trial.verdict])
    model = trial.model or "unnamed model"
    interval = verdict.interval_pct
    between = "" if interval is None else f", 95 % between {interval[0]:.1f} and {interval[1]:.1f}"
    words = f"{verdict.verdict} after {verdict.rounds} rounds{between}"
    section = next(iter(trial.changes)) if len(trial.changes) == 1 else ""
    return Finding(
        id=f"{device}-draft-{stamp.partition(':')[2][:8]}",
        title=f"{trial.hypothesis} takes {gain:.0f} % less time than the base on {trial.target}",
        category=_CATEGORIES.get(section, "config"),
        claim="latency",
        observation=f"{model}: {trial.hypothesis} saved {gain:.1f} % of the base's time; {words}.",
        scope=Scope(
            ep=asked.ep.name,
            device=device,
            versions={name: (version,) for name, version in evidence.versions.items()},
            families=() if trial.model_type is None else (trial.model_type,),
            models=(ScopeModel(model, "benefits", f"{gain:+.1f} %"),),
        ),
        status="draft",
        source="drafted from a run",
        confidence="L1",
        caveats=("one model, one run; why it is faster is not known",),
        evidence=(evidence,),
        follow_up=("repeat it in another run, then on another model of the same type",),
    )


def _evidence(trial: TrialLine, gain: float) -> Evidence:
    """The samples if the run kept them, otherwise a text."""
    shows = f"{trial.hypothesis} saves {gain:.1f} % of the base's time"
    run = f"run {digest.of_json([trial.verdict, trial.measurement]).partition(':')[2][:12]}"
    if trial.measurement is None:
        return WordsEvidence(
            kind="latency", run=run, shows=shows, model=trial.model, family=trial.model_type, facts=trial.facts or None
        )
    runtime = read(TrialMeasurement, trial.measurement, "measurement", strict=False).environment.runtime
    return SamplesEvidence(
        kind="latency",
        run=run,
        shows=shows,
        model=trial.model,
        family=trial.model_type,
        facts=trial.facts or None,
        versions={} if runtime is None else {runtime.name: runtime.version},
        data=RawSamples(
            measurement=trial.measurement,
            verdict=trial.verdict,
            calibration=trial.calibration,
            calibrations=trial.calibrations,
            tests=1,
        ),
    )
