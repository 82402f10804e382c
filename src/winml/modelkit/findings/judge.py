"""`winml kb judge`: judges recorded session medians, pair by pair and finding by finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.evidence import MediansEvidence
from winml.modelkit.core.finding import Finding
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.sweep import Claim, Config, Milliseconds, Order, Sweep
from winml.modelkit.core.values import AtLeast, Names, OneOf, Text, read
from winml.modelkit.findings.result import ClaimedPair, JudgedFinding, JudgedPair, KbJudgement
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.presets import Preset, load_presets
from winml.modelkit.measuring.recorded import Answer, PairAnswer, judge_pair

Where = tuple[str | None, str | None, str]
"""EP, device and model."""


@dataclass(frozen=True, kw_only=True)
class RecordedRow:
    """A config of one model on one target, as recorded."""

    model: Text
    hypothesis: Text
    session_p50s_ms: tuple[Milliseconds, ...] | None
    ep: Text | None = None
    device: Text | None = None
    model_type: Text | None = None
    measured_on: Text | None = None
    opset: Annotated[int, AtLeast(1)] | Literal["auto"] | None = None
    """`auto` means the preset's opset."""
    passes: Names | Mapping[str, Any] | None = None
    """Passes that are on, as a list or as an object of flags; null when that was not recorded."""
    status: Text | None = None
    screen_p50_ms: Milliseconds | None = None
    screen_cv: Annotated[float, AtLeast(0)] | None = None

    @property
    def where(self) -> Where:
        return self.ep, self.device, self.model

    @property
    def known_passes(self) -> tuple[str, ...] | None:
        if isinstance(self.passes, Mapping):
            return tuple(name for name, on in self.passes.items() if on)
        return self.passes


@dataclass(frozen=True, kw_only=True)
class RecordedSessions:
    """A file of recorded sessions."""

    schema: Annotated[str, OneOf(("winml/sessions/1",))] = "winml/sessions/1"
    kind: Literal["medians"] = "medians"
    rows: tuple[RecordedRow, ...]
    about: Text | None = None
    order: Order = "sequential"
    """The order of measurement; medians per config without rounds were measured one config after another."""


def _find_preset(where: Where, known: Iterable[Preset]) -> Preset | None:
    ep, device, _ = where
    target = ep if ep == device else f"{ep}/{device}"
    return next((p for p in known if p.target == target), None)


def _config(row: RecordedRow, preset: Preset | None) -> Config:
    """A row as a config; what it omits is taken from the hypothesis of the target's preset."""
    opset, passes = None if row.opset == "auto" else row.opset, row.known_passes
    known = {h.id: h for h in preset.hypotheses} if preset else {}
    if preset is not None and row.hypothesis in known:
        meant = known[row.hypothesis]
        opset = opset or meant.opset or preset.opset
        passes = meant.passes if passes is None else passes
    return Config(row.hypothesis, opset, passes, row.session_p50s_ms or ())


def _may_mean_unknown(row: RecordedRow, preset: Preset | None) -> bool:
    """Whether the row has an empty list of passes that nothing confirms: some tools write that for unknown."""
    meant = next((h for h in preset.hypotheses if h.id == row.hypothesis), None) if preset else None
    return row.known_passes == () and (meant is None or bool(meant.passes))


@dataclass(frozen=True)
class RecordedSweep:
    """A sweep, and the configs whose empty list of passes may mean unknown."""

    sweep: Sweep
    unsure: tuple[str, ...] = ()

    def judge(self, base: str, candidate: str) -> PairAnswer:
        """What a pair shows; insufficient when that depends on the meaning of an empty list of passes."""
        found = judge_pair(self.sweep, base, candidate)
        configs = tuple(replace(c, passes=None) if c.id in self.unsure else c for c in self.sweep.configs)
        other = judge_pair(replace(self.sweep, configs=configs), base, candidate)
        if (found.answer, found.effect) == (other.answer, other.effect):
            return found
        ids = ", ".join(self.unsure)
        reason = (
            f"it depends on the empty `passes` of {ids}: {found.answer} if no pass was on ({found.reason}), "
            f"{other.answer} if that is unknown ({other.reason})"
        )
        return replace(found, answer="insufficient", effect="unknown", reason=reason)


def group_rows(record: RecordedSessions) -> dict[Where, RecordedSweep]:
    """The record as one sweep per model and target."""
    known = load_presets().values()
    found: dict[Where, RecordedSweep] = {}
    for row in record.rows:
        so_far = found.get(row.where) or RecordedSweep(Sweep(record.order, (), row.measured_on))
        if so_far.sweep.config(row.hypothesis) is not None:
            raise RequestError(f"`rows`: {row.model} has `{row.hypothesis}` twice on {row.ep}/{row.device}")
        preset = _find_preset(row.where, known)
        configs = (*so_far.sweep.configs, _config(row, preset))
        unsure = (*so_far.unsure, *((row.hypothesis,) if _may_mean_unknown(row, preset) else ()))
        found[row.where] = RecordedSweep(replace(so_far.sweep, configs=configs), unsure)
    return found


def _doubts(found: Mapping[Where, RecordedSweep]) -> Iterator[str]:
    """Warnings about configs without passes in the record but with some in the target's preset, once per target."""
    known = load_presets().values()
    doubts: dict[tuple[str, str], list[str]] = {}
    for where, entry in found.items():
        preset = _find_preset(where, known)
        named = {h.id for h in preset.hypotheses} if preset else set[str]()
        against = ", ".join(name for name in entry.unsure if name in named)
        if preset and against:
            doubts.setdefault((preset.target, against), []).append(where[2])
    for (target, names), models in doubts.items():
        more = f" and {len(models) - 1} more" if len(models) > 1 else ""
        yield (
            f"{target}: {names} have no passes (`[]`) in the record, but some in the preset of the target "
            f"({models[0]}{more}); write null where passes were not recorded"
        )


def load_record(path: Path) -> RecordedSessions:
    def make(value: Any) -> RecordedSessions:
        kind = value.get("kind", "medians") if isinstance(value, dict) else "medians"
        if kind != "medians":
            raise RequestError(
                f"`kind` must be `medians` but got {kind!r:.200}",
                hint="raw samples are judged by `winml compare --from FILE`",
            )
        return read(RecordedSessions, value)

    return files.read(path, make)


def answer_claim(shown: PairAnswer, claim: Claim) -> Answer:
    """The answer to a claimed effect: a pair that shows another one does not support it.

    A difference within drift does not support a claim of one; nor does it show that there is none.
    """
    if shown.effect == claim:
        return "supported"
    if shown.effect == "unknown" and (claim == "neutral" or shown.answer == "insufficient"):
        return "insufficient"
    return "not supported"


def _judge_finding(finding: Finding, found: Mapping[Where, RecordedSweep]) -> JudgedFinding | None:
    """The judgement of a finding's own pairs in the record; None when it has none that support the claim."""
    pairs = []
    for evidence in finding.evidence:
        if not isinstance(evidence, MediansEvidence):
            continue
        pair, model = evidence.data, evidence.model or ""
        ep, device = finding.scope.ep, finding.scope.device
        entry = found.get((ep, device, model)) or found.get((None, None, model))
        if entry is None or entry.sweep.config(pair.candidate) is None:
            continue
        shown = entry.judge(pair.base, pair.candidate)
        pairs.append(
            ClaimedPair(
                ep=ep,
                device=device,
                model=model,
                shown=shown,
                claim=pair.claim,
                claim_answer=answer_claim(shown, pair.claim),
                speaks=evidence.speaks,
            )
        )
    answers = {pair.claim_answer for pair in pairs if pair.speaks == "for"}
    if not answers:
        return None
    # Claims with different answers show nothing together.
    answer: Answer = answers.pop() if len(answers) == 1 else "insufficient"
    return JudgedFinding(id=finding.id, title=finding.title, status=finding.status, answer=answer, pairs=tuple(pairs))


def judge(
    path: Path, findings: Iterable[Finding], *, model: str | None, base: str, candidates: tuple[str, ...]
) -> KbJudgement:
    """Judge every recorded candidate against its base, and every finding about one of these pairs."""
    record = load_record(path)
    try:
        found = group_rows(record)
    except RequestError as error:
        raise DataError(f"`{path}`: {error.message}") from error
    chosen = {where: entry for where, entry in found.items() if model is None or where[2] == model}
    if not chosen:
        models = {where[2] for where in found}
        raise RequestError(f"`{path}` has no model `{model}`", hint=did_you_mean(model or "", models))
    pairs = tuple(
        JudgedPair(ep=ep, device=device, model=name, shown=entry.judge(base, candidate))
        for (ep, device, name), entry in chosen.items()
        for candidate in candidates or [c.id for c in entry.sweep.configs if c.id != base and c.sessions_ms]
    )
    judged = (_judge_finding(finding, chosen) for finding in findings)
    return KbJudgement(
        file=str(path),
        base=base,
        order=record.order,
        doubts=tuple(_doubts(chosen)),
        pairs=pairs,
        findings=tuple(one for one in judged if one is not None),
        counts={answer: sum(pair.shown.answer == answer for pair in pairs) for answer in get_args(Answer)},
    )
