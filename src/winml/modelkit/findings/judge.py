"""`winml kb judge`: what recorded session medians show, pair by pair and finding by finding."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.finding import Evidence, Finding
from winml.modelkit.core.sections import choice, each, key, number, optional, section, text
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.sweep import ORDERS, Config, Order, RecordedPair, Sweep, pair_from_json
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.presets import Preset, load_presets
from winml.modelkit.measuring.recorded import Judged, judge_pair

SESSIONS = "winml/sessions/1"
BASE = "h0"

milliseconds = number(math.ulp(0.0), 1e9)

Where = tuple[str | None, str | None, str]
"""EP, device and model."""


def _opset(value: Any, where: str) -> int | None:
    """An opset; `auto` is what the preset says."""
    if value in (None, "auto"):
        return None
    if type(value) is not int or value < 1:
        raise RequestError(f"`{where}` must be an opset, `auto` or null but got {value!r}")
    return value


def _passes(value: Any, where: str) -> tuple[str, ...] | None:
    """Names of passes that are on, as a list or as an object of flags; null when that was not recorded."""
    if value is None:
        return None
    if isinstance(value, dict):
        value = [name for name, on in value.items() if on]
    return sections.names(value, where)


@dataclass(frozen=True)
class Row:
    """A config of one model on one target, as recorded."""

    model: str = key(text)
    hypothesis: str = key(text)
    session_p50s_ms: tuple[float, ...] | None = key(optional(each(milliseconds)))
    ep: str | None = key(optional(text), None)
    device: str | None = key(optional(text), None)
    model_type: str | None = key(optional(text), None)
    measured_on: str | None = key(optional(text), None)
    opset: int | None = key(_opset, None)
    passes: tuple[str, ...] | None = key(_passes, None)
    status: str | None = key(optional(text), None)
    screen_p50_ms: float | None = key(optional(milliseconds), None)
    screen_cv: float | None = key(optional(number(0, math.inf)), None)

    @property
    def where(self) -> Where:
        return self.ep, self.device, self.model


def _kind(value: Any, where: str) -> str:
    if value != "medians":
        raise RequestError(
            f"`{where}` must be `medians` but got {value!r}",
            hint="raw samples are judged by `winml compare --from FILE`",
        )
    return "medians"


@dataclass(frozen=True)
class Record:
    """A file of recorded sessions."""

    kind: str = key(_kind)
    rows: tuple[Row, ...] = key(each(section(Row)))
    schema: str = key(choice(SESSIONS), SESSIONS)
    about: str | None = key(optional(text), None)
    order: Order = key(choice(*ORDERS), "sequential")
    """How configs followed one another; medians per config without rounds were taken one after the other."""


def _load_preset(where: Where, known: Iterable[Preset]) -> Preset | None:
    ep, device, _ = where
    target = ep if ep == device else f"{ep}/{device}"
    return next((p for p in known if p.target == target), None)


def _config(row: Row, preset: Preset | None) -> Config:
    """A row as a config; what it does not say is what the target's preset means by its hypothesis."""
    opset, passes = row.opset, row.passes
    known = {h.id: h for h in preset.hypotheses} if preset else {}
    if preset is not None and row.hypothesis in known:
        meant = known[row.hypothesis]
        opset = opset or meant.opset or preset.opset
        passes = meant.passes if passes is None else passes
    return Config(row.hypothesis, opset, passes, row.session_p50s_ms or ())


def _may_mean_unknown(row: Row, preset: Preset | None) -> bool:
    """Whether the row says that no pass was on and nothing else does: some write that for what they do not know."""
    meant = next((h for h in preset.hypotheses if h.id == row.hypothesis), None) if preset else None
    return row.passes == () and (meant is None or bool(meant.passes))


@dataclass(frozen=True)
class Recorded:
    """A sweep, and the configs whose empty list of passes may stand for unknown ones."""

    sweep: Sweep
    unsure: tuple[str, ...] = ()

    def judge(self, base: str, candidate: str) -> Judged:
        """What a pair shows; insufficient where that hangs on what an empty list of passes means."""
        found = judge_pair(self.sweep, base, candidate)
        configs = tuple(replace(c, passes=None) if c.id in self.unsure else c for c in self.sweep.configs)
        other = judge_pair(replace(self.sweep, configs=configs), base, candidate)
        if (found.answer, found.effect) == (other.answer, other.effect):
            return found
        ids = ", ".join(self.unsure)
        reason = (
            f"it hangs on what the empty `passes` of {ids} mean: {found.answer} when no pass was on ({found.reason}), "
            f"{other.answer} when that is not known ({other.reason})"
        )
        return replace(found, answer="insufficient", effect="unknown", reason=reason)


def recorded(record: Record) -> dict[Where, Recorded]:
    """The record as one sweep per model and target."""
    known = load_presets().values()
    found: dict[Where, Recorded] = {}
    for row in record.rows:
        so_far = found.get(row.where) or Recorded(Sweep(record.order, (), row.measured_on))
        if so_far.sweep.config(row.hypothesis) is not None:
            raise RequestError(f"`rows`: {row.model} has `{row.hypothesis}` twice on {row.ep}/{row.device}")
        preset = _load_preset(row.where, known)
        configs = (*so_far.sweep.configs, _config(row, preset))
        unsure = (*so_far.unsure, *((row.hypothesis,) if _may_mean_unknown(row, preset) else ()))
        found[row.where] = Recorded(replace(so_far.sweep, configs=configs), unsure)
    return found


def _doubts(found: dict[Where, Recorded]) -> list[str]:
    """Configs that the record gives no passes and the target's preset some, once per target."""
    known = load_presets().values()
    doubts: dict[tuple[str, str], list[str]] = {}
    for where, entry in found.items():
        preset = _load_preset(where, known)
        named = {h.id for h in preset.hypotheses} if preset else set[str]()
        against = ", ".join(name for name in entry.unsure if name in named)
        if preset and against:
            doubts.setdefault((preset.target, against), []).append(where[2])
    return [
        f"{target}: the record gives {names} no passes (`[]`), the preset of the target gives them some "
        f"({models[0]}{f' and {len(models) - 1} more' if len(models) > 1 else ''}); write null where passes were not "
        "recorded"
        for (target, names), models in doubts.items()
    ]


def read_record(path: Path) -> Record:
    return files.read(path, lambda value: sections.read(Record, value, ""))


def _pair(where: Where, judged: Judged) -> dict[str, Any]:
    ep, device, model = where
    return {"ep": ep, "device": device, "model": model, **judged.to_json()}


def claimed_pairs(finding: Finding) -> list[tuple[Evidence, RecordedPair]]:
    """Evidence by recorded medians, with the pair it is about."""
    medians = [e for e in finding.evidence if e.form == "medians"]
    return [(e, pair_from_json(e.data, "data")) for e in medians]


def claim_answer(judged: Judged, claim: str) -> str:
    """The answer to a claim of an effect: a pair that shows another one does not support it.

    A difference that drowns in drift does not support a claim of one; it does not show either that there is none.
    """
    if judged.effect == claim:
        return "supported"
    if judged.effect == "unknown" and (claim == "neutral" or judged.answer == "insufficient"):
        return "insufficient"
    return "not supported"


def together(answers: list[str]) -> str:
    """One answer for several claims: the one they share, and insufficient when they differ."""
    return answers[0] if len(set(answers)) == 1 else "insufficient"


def _of_finding(finding: Finding, found: dict[Where, Recorded]) -> dict[str, Any] | None:
    """What the record says of a finding's own pairs; None when it holds none that carries the claim."""
    pairs = []
    for evidence, pair in claimed_pairs(finding):
        where = finding.scope.ep, finding.scope.device, evidence.model or ""
        entry = found.get(where) or found.get((None, None, where[2]))
        if entry is None or entry.sweep.config(pair.candidate) is None:
            continue
        judged = entry.judge(pair.base, pair.candidate)
        shown = {"claim": pair.claim, "claim_answer": claim_answer(judged, pair.claim), "speaks": evidence.speaks}
        pairs.append({**_pair(where, judged), **shown})
    carrying = [p["claim_answer"] for p in pairs if p["speaks"] == "for"]
    if not carrying:
        return None
    return {
        "id": finding.id,
        "title": finding.title,
        "status": finding.status,
        "answer": together(carrying),
        "pairs": pairs,
    }


def judge(
    path: Path, findings: Iterable[Finding], *, model: str | None, base: str, candidates: tuple[str, ...]
) -> dict[str, Any]:
    """Judge every recorded candidate against its base, and every finding that speaks of one of these pairs."""
    record = read_record(path)
    try:
        found = recorded(record)
    except RequestError as error:
        raise DataError(f"`{path}`: {error.message}") from error
    chosen = {where: entry for where, entry in found.items() if model is None or where[2] == model}
    if not chosen:
        models = {where[2] for where in found}
        raise RequestError(f"`{path}` has no model `{model}`", hint=did_you_mean(model or "", models))
    pairs = [
        _pair(where, entry.judge(base, name))
        for where, entry in chosen.items()
        for name in candidates or [c.id for c in entry.sweep.configs if c.id != base and c.sessions_ms]
    ]
    judged = [of for finding in findings if (of := _of_finding(finding, chosen)) is not None]
    return {
        "file": str(path),
        "base": base,
        "order": record.order,
        "doubts": _doubts(chosen),
        "pairs": pairs,
        "findings": judged,
        "counts": {a: sum(p["answer"] == a for p in pairs) for a in ("supported", "not supported", "insufficient")},
    }
