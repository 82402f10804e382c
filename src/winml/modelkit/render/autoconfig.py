"""The text of `winml autoconfig`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.core.objective import TIMED
from winml.modelkit.core.verdict import speedup
from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table
from winml.modelkit.render.times import median_ms, speedup_interval, speedup_text
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.core.latency import Spread
    from winml.modelkit.core.verdict import Verdict
    from winml.modelkit.search.result import Champion, SearchResult, TrialResult
    from winml.modelkit.search.trial import Accuracy, Note

BETTER = {
    "latency": "faster",
    "size": "smaller",
    "placement": "better by pieces and size",
    "first-token": "faster to the first token",
    "tokens-per-second": "faster at a token",
    "memory": "smaller in memory",
}
"""What a gain is, by objective."""
_FRONT = {
    "latency": "speed, {} and size",
    "size": "{} and size",
    "placement": "pieces, {} and size",
    "first-token": "speed, {} and size",
    "tokens-per-second": "speed, {} and size",
    "memory": "memory, {} and size",
}
_SAID_BY_NUMBERS = frozenset({"baseline", "kept", "confirmed", "no gain"})
"""States whose reason is in the other columns."""
_SKIPPED = {
    "graph": ("does not apply to this graph", "do not apply to this graph"),
    "data": ("needs calibration data", "need calibration data"),
    "target": ("is not supported by the target", "are not supported by the target"),
    "objective": ("does not change the {objective}", "do not change the {objective}"),
    "unknown": ("may not apply to this graph", "may not apply to this graph"),
    "finding": ("ruled out by {findings}", "ruled out by {findings}"),
}
"""Why one setting is skipped, and why several are."""


def model_name(result: SearchResult) -> str:
    return Path(result.model).name


def quality_name(result: SearchResult) -> str:
    """The name of what the gate compares: the metric of labelled data, or agreement with the given model."""
    if result.gate.limits.kind == "agreement":
        return "agreement"
    return next((known.metric for trial in result.trials if (known := trial.accuracy) and known.metric), "accuracy")


def quality(known: Accuracy | None) -> str:
    return "" if known is None or known.value is None else f"{known.value:.4f}"


def gain(verdict: Verdict | None) -> str:
    """The speed of a trial that was timed, what it saves in one whose memory was measured or whose size was counted."""
    if verdict is None or verdict.gain_pct is None:
        return ""
    saved = verdict.metric in (None, "memory")
    return f"{verdict.gain_pct:+.1f} %" if saved else speedup_text(speedup(verdict.gain_pct))


def gain_interval(verdict: Verdict | None) -> str:
    """The interval of a speed; what was counted has none."""
    if verdict is None or verdict.gain_pct is None or verdict.interval_pct is None or verdict.metric is None:
        return ""
    low, high = verdict.interval_pct
    if verdict.metric == "memory":
        return f"({low:+.1f} … {high:+.1f})"
    return speedup_interval(speedup(verdict.gain_pct), (speedup(low), speedup(high)))


def gain_words(verdict: Verdict) -> str:
    """A gain in a sentence: `1.93x faster (1.90 … 1.97)`, or `27.0 % saved` where it was counted."""
    if verdict.gain_pct is None:
        return verdict.reason
    return f"{gain(verdict)} {gain_interval(verdict) or 'saved'}"


def trial_state(trial: TrialResult) -> str:
    """What became of a trial, and the step at which one failed."""
    return f"{trial.state} ({trial.step})" if trial.state == "failed" else trial.state


def trial_reason(trial: TrialResult) -> str:
    """Why a trial ended so, where its numbers do not tell."""
    if trial.state in _SAID_BY_NUMBERS:
        return ""
    if trial.state == "not confirmed" and trial.confirmation is not None:
        return trial.confirmation.verdict.reason
    return trial.reason


def artifact_size(trial: TrialResult) -> str:
    return "" if trial.artifact is None else size(trial.artifact.bytes)


def drop_empty_columns(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows, their head first, without the columns in which no row but the head has anything."""
    used = [any(cells[1:]) for cells in zip(*rows, strict=True)]
    return [tuple(cell for cell, keep in zip(row, used, strict=True) if keep) for row in rows]


def targets(result: SearchResult) -> str:
    return ", ".join(f"{target}{' (simulated)' if target.simulated else ''}" for target in result.targets)


def trial_count(result: SearchResult) -> str:
    choices = "thousands of" if result.choices is None else result.choices
    return f"{len(result.trials)} of {choices} configs tried"


def champion_text(result: SearchResult, best: Champion) -> str:
    """The champion: what it changes, what it gains, what it costs."""
    if best.status == "BASELINE_IS_BEST":
        return no_gain_text(result)
    facts = champion_costs(result, best.trial)
    lines = [f"champion {best.trial.id}  {best.trial.label}", f"  {champion_gain(result, best)}"]
    return "\n".join([*lines, f"  {' · '.join(facts)}"] if facts else lines)


def no_gain_text(result: SearchResult) -> str:
    """Why the baseline stays."""
    enough = "accurate enough" if result.gate.limits.kind == "task" else "agrees with the given model"
    return f"no gain: no config tried is {BETTER[result.objective]} and {enough}; the baseline stays"


def champion_gain(result: SearchResult, best: Champion) -> str:
    """`3.02x faster (2.87 … 3.18): 0.594 ms instead of 1.78 ms`."""
    limits, times, memory, took = best.speedup_interval, best.trial.times, best.trial.memory, ""
    between = "" if limits is None else f" {speedup_interval(best.factor, limits)}"
    if times is not None:
        took = f": {median_ms(times.candidate_ms)} instead of {median_ms(times.base_ms)}"
    if memory is not None:
        took = f": {_median_size(memory.candidate_bytes)} instead of {_median_size(memory.base_bytes)}"
    return f"{best.factor:.2f}x {BETTER[result.objective]}{between}{took}"


def _median_size(peaks: Spread) -> str:
    return "" if peaks.median is None else size(round(peaks.median))


def champion_costs(result: SearchResult, trial: TrialResult) -> list[str]:
    """Its accuracy or agreement, and its size."""
    known, before = trial.accuracy, artifact_size(result.trials[0])
    costs = [] if known is None else [f"{quality_name(result)} {quality(known)}{_quality_change(known)}"]
    if trial.artifact is not None:
        costs.append(f"{artifact_size(trial)}{f' instead of {before}' if before else ''}")
    return costs


def _quality_change(known: Accuracy) -> str:
    """By how much a metric of labelled data changed."""
    if known.drop is None:
        return ""
    shown = f"{abs(known.drop):.4f}"
    is_lower = (known.drop > 0) != bool(known.less_is_better)
    return " (unchanged)" if float(shown) == 0 else f" ({shown} {'lower' if is_lower else 'higher'})"


def skipped_groups(notes: Sequence[Note], objective: str) -> list[tuple[str, list[Note]]]:
    """What is skipped, by reason: `do not apply to this graph` and the settings."""
    groups: dict[str, list[Note]] = {}
    for note in notes:
        if note.excludes:
            groups.setdefault(_find_source(note), []).append(note)
    findings = dict.fromkeys(note.source for note in groups.get("finding", ()))
    named = f"finding{'s' if len(findings) > 1 else ''} {', '.join(findings)}"
    return [
        (_SKIPPED[by][len(group) > 1].format(objective=objective, findings=named), group)
        for by, group in groups.items()
    ]


def skipped_text(notes: Sequence[Note], objective: str) -> str:
    """How many settings are skipped and why: `3 settings skipped: 2 do not apply to this graph, 1 ...`; or nothing."""
    groups = skipped_groups(notes, objective)
    if not groups:
        return ""
    skipped = sum(len(group) for _, group in groups)
    listed = ", ".join(f"{len(group)} {why}" for why, group in groups)
    return f"{skipped} setting{'s' if skipped > 1 else ''} skipped: {listed}"


def _find_source(note: Note) -> str:
    """A key of `_SKIPPED`: a source of notes that is not among them is a finding."""
    if note.source not in _SKIPPED:
        return "finding"
    return "unknown" if note.kind == "blocked" else note.source


def autoconfig_text(result: SearchResult) -> str:
    """The champion, then every trial, then what was skipped."""
    assert result.champion is not None
    timed, name = result.objective in TIMED, quality_name(result)
    rows = [("trial", "state", "config", "speed" if timed else "saved", "95 %", "ms", name, "size", "why")]
    for trial in sorted(result.trials, key=lambda trial: -rank(trial)):
        verdict = trial.deciding_verdict
        rows.append(
            (
                trial.id + ("*" if trial.id in result.pareto else ""),
                mark(trial.state, trial_state(trial)),
                "" if trial.outcome == "baseline" else trial.label,
                gain(verdict),
                gain_interval(verdict),
                "" if trial.times is None else median_ms(trial.times.candidate_ms).removesuffix(" ms"),
                quality(trial.accuracy),
                artifact_size(trial),
                trial_reason(trial),
            )
        )
    lines = [
        f"{model_name(result)} on {targets(result)} · searched for {result.objective} in {result.seconds:.0f} s",
        champion_text(result, result.champion),
        _trial_table(drop_empty_columns(rows), name),
        f"* Pareto-optimal in {_FRONT[result.objective].format(name)}" if result.pareto else "",
        f"{trial_count(result)}; {result.ended}",
        skipped_text(result.insight, result.objective),
        family_text(result),
    ]
    return "\n".join(line for line in lines if line)


def family_text(result: SearchResult) -> str:
    """What the model is, and the findings that changed the search; nothing where it is unknown."""
    return f"family {describe_family(result)}" if result.family is not None and result.family.names else ""


def describe_family(result: SearchResult) -> str:
    """The families that a model may be of, why, and the findings that act for it."""
    assert result.family is not None
    acted = ", ".join(find_acting(result.insight))
    named = " or ".join(result.family.names) or "not known"
    return f"{named}: {result.family.reason}{f'; findings that act: {acted}' if acted else ''}"


def find_acting(notes: Sequence[Note]) -> tuple[str, ...]:
    """The findings that changed what is tried, or in which order."""
    return tuple(dict.fromkeys(note.source for note in notes if note.source not in _SKIPPED))


def _trial_table(rows: Sequence[tuple[str, ...]], quality: str) -> str:
    """The table of trials: a narrow terminal shows their states, configs and speeds before anything else."""
    head = rows[0]
    return table(
        rows,
        indent="  ",
        head=True,
        drop=[head.index(name) for name in ("95 %", "ms", "size", quality) if name in head],
        below=head.index("why") if "why" in head else None,
    )


def rank(trial: TrialResult) -> float:
    """What trials are ordered by, the best last: the gain, and none of those that were not measured."""
    verdict = trial.deciding_verdict
    if verdict is None:
        return 0.0
    return -1e9 if verdict.gain_pct is None else verdict.gain_pct
