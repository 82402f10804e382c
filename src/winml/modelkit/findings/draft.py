"""`winml kb draft`: kept gains of a run as draft findings.

A run is either the result of `winml compare --json -o FILE`, or a folder with `trials.jsonl`: one JSON object per line,

    {"hypothesis": "h3", "target": "cpu", "model": "bert.onnx", "model_type": "bert",
     "changes": {...}, "facts": {...}, "verdict": {...}, "measurement": {...}}

where `verdict` and `measurement` are those of `winml compare`; further keys are ignored, and a line of a journal counts
by its `record`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.finding import SCHEMA, Evidence, Finding, Mechanism, Scope, ScopeModel
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.sections import key, mapping, optional, text
from winml.modelkit.ep import targets
from winml.modelkit.knowledge import files
from winml.modelkit.store import digest

TRIALS = "trials.jsonl"
GAIN_PCT = 10.0
"""Smaller gains are kept by a search, and too small to be a finding."""


@dataclass(frozen=True)
class TrialLine:
    """What a finding needs of a trial."""

    hypothesis: str = key(text)
    target: str = key(text)
    verdict: dict[str, Any] = key(mapping)
    model: str | None = key(optional(text), None)
    model_type: str | None = key(optional(text), None)
    changes: dict[str, Any] = key(mapping, factory=dict)
    facts: dict[str, Any] = key(mapping, factory=dict)
    measurement: dict[str, Any] | None = key(optional(mapping), None)
    calibration: str | None = key(optional(text), None)
    calibrations: dict[str, Any] = key(mapping, factory=dict)


_KNOWN = frozenset(TrialLine.__dataclass_fields__)


def drafts(run: Path) -> tuple[list[Finding], list[dict[str, str]]]:
    """The draft findings of a run, and why its other trials are none."""
    made, passed_over = [], []
    for trial in _trials(run):
        try:
            found = _draft(trial)
        except RequestError as error:
            raise DataError(f"`{run}`: `{trial.hypothesis}`: {error.message}", hint=error.hint) from error
        if isinstance(found, Finding):
            made.append(found)
        else:
            passed_over.append({"hypothesis": trial.hypothesis, "reason": found})
    return made, passed_over


def _trials(run: Path) -> list[TrialLine]:
    if run.is_dir():
        path = run / TRIALS
        if not path.is_file():
            raise RequestError(f"`{run}` has no `{TRIALS}`", hint="name the folder of a run, or a stored comparison")
        return list(_lines(path))
    return files.read(run, _compared)


def _lines(path: Path) -> Iterator[TrialLine]:
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            value = parse_json(line)
            record = value.get("record", value) if isinstance(value, dict) else value
            known = {k: v for k, v in record.items() if k in _KNOWN} if isinstance(record, dict) else record
            yield sections.read(TrialLine, known, "")
        except ValueError as error:
            raise DataError(f"`{path}` line {number} is not JSON: {error}") from error
        except RequestError as error:
            raise DataError(f"`{path}` line {number}: {error.message}", hint=error.hint) from error


def _compared(value: Any) -> list[TrialLine]:
    """The candidates of a stored comparison as trials."""
    if not isinstance(value, dict) or value.get("schema") != "winml/compare/1" or "candidates" not in value:
        raise RequestError("it is not a stored comparison", hint="write one with `winml compare ... --json -o FILE`")
    lines = []
    for index, candidate in enumerate(value["candidates"]):
        found = mapping(candidate, f"candidates[{index}]")
        known = {
            "hypothesis": found.get("label"),
            "target": found.get("target"),
            "model": value.get("base", {}).get("label"),
            "verdict": found.get("verdict"),
            "measurement": found.get("measurement"),
            "calibration": found.get("calibration"),
            "calibrations": value.get("calibrations", {}),
        }
        lines.append(sections.read(TrialLine, known, f"candidates[{index}]"))
    return lines


_CATEGORIES = {
    "optimize": "graph-fusion-benefit",
    "quantize": "quantization",
    "compile": "compile",
    "session": "session-options",
}


def _category(changes: dict[str, Any]) -> str:
    """By the one section that was changed; a change of several is a config as a whole."""
    return _CATEGORIES.get(next(iter(changes)), "config") if len(changes) == 1 else "config"


def _draft(trial: TrialLine) -> Finding | str:
    """The finding a trial is worth, or why it is worth none."""
    verdict = trial.verdict
    if verdict.get("verdict") not in ("KEEP", "MARGINAL_KEEP"):
        return f"not kept: {verdict.get('verdict')}"
    gain = verdict.get("gain_pct")
    if not isinstance(gain, int | float) or not math.isfinite(gain):
        raise RequestError(f"`verdict.gain_pct` must be a number but got {gain!r}")
    if gain <= GAIN_PCT:
        return f"a gain of {gain:.1f} % is not above {GAIN_PCT:g} %"
    return _finding(trial, float(gain))


def _finding(trial: TrialLine, gain: float) -> Finding:
    asked = targets.parse_target(trial.target)
    if asked.ep is None:
        raise RequestError(f"`target` must name an execution provider but is `{trial.target}`")
    device = asked.device or asked.ep.devices[0]
    evidence = _evidence(trial, gain)
    stamp = digest.of_json([trial.target, trial.model, trial.hypothesis, trial.changes, trial.verdict])
    model = trial.model or "unnamed model"
    return Finding(
        schema=SCHEMA,
        id=f"{device}-draft-{stamp.partition(':')[2][:8]}",
        title=f"{trial.hypothesis} takes {gain:.0f} % less time than the base on {trial.target}",
        category=_category(trial.changes),
        claim="latency",
        observation=f"{model}: {trial.hypothesis} saved {gain:.1f} % of the base's time; {_words(trial.verdict)}.",
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
        mechanism=Mechanism(),
        follow_up=("repeat it in another run, then on another model of the same type",),
    )


def _words(verdict: dict[str, Any]) -> str:
    interval = verdict.get("interval_pct")
    between = "" if not interval else f", 95 % between {interval[0]:.1f} and {interval[1]:.1f}"
    return f"{verdict['verdict']} after {verdict.get('rounds', 0)} rounds{between}"


def _evidence(trial: TrialLine, gain: float) -> Evidence:
    """The samples when the run kept them, otherwise words."""
    shows = f"{trial.hypothesis} saves {gain:.1f} % of the base's time"
    run = f"run {digest.of_json([trial.verdict, trial.measurement]).partition(':')[2][:12]}"
    common = {"kind": "latency", "run": run, "shows": shows, "model": trial.model, "family": trial.model_type}
    if trial.measurement is None:
        return Evidence(form="words", **common)  # type: ignore[arg-type]  # the fields of Evidence, by name
    environment = trial.measurement.get("environment", {})
    runtime = environment.get("runtime", {})
    data = {
        "verdict": trial.verdict,
        "measurement": trial.measurement,
        "calibration": trial.calibration,
        "calibrations": trial.calibrations,
        "tests": 1,
    }
    versions = {runtime["name"]: runtime["version"]} if runtime else {}
    return Evidence(form="samples", data=data, versions=versions, **common)  # type: ignore[arg-type]  # as above
