"""The text of `winml autoconfig`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from winml.modelkit.core.verdict import speedup
from winml.modelkit.render.table import table
from winml.modelkit.render.times import milliseconds, speedup_text
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.core.verdict import Verdict
    from winml.modelkit.search.result import Champion, SearchResult, TrialResult
    from winml.modelkit.search.trial import Note

_BETTER = {"latency": "faster", "size": "smaller", "placement": "better by pieces and size"}
_FRONT = {
    "latency": "speed, accuracy and size", "size": "accuracy and size", "placement": "pieces, accuracy and size",
}  # fmt: skip


def gain(verdict: Verdict | None) -> str:
    return "" if verdict is None or verdict.gain_pct is None else f"{verdict.gain_pct:+.1f} %"


def interval(verdict: Verdict | None) -> str:
    found = None if verdict is None else verdict.interval_pct
    return "" if found is None else f"({found[0]:+.1f} … {found[1]:+.1f})"


def verdict_label(trial: TrialResult) -> str:
    """The verdict of a trial, and whether fresh rounds confirmed it."""
    if trial.confirmation is not None:
        return trial.confirmation.word
    if trial.verdict is None:
        return "BASELINE"
    if trial.outcome == "inaccurate":
        return "FAILED accuracy"
    return f"FAILED {trial.step}" if trial.outcome == "failed" else trial.verdict.verdict


def accuracy(trial: TrialResult) -> str:
    return "" if trial.accuracy is None or trial.accuracy.value is None else f"{trial.accuracy.value:.4f}"


def artifact_size(trial: TrialResult) -> str:
    return "" if trial.artifact is None else size(trial.artifact.bytes)


def times(trial: TrialResult) -> tuple[str, str]:
    """Milliseconds of a trial, and how many times as fast as the baseline it is; empty where times are not known."""
    if trial.times is None:
        return "", ""
    verdict = trial.deciding_verdict
    gain_pct = None if verdict is None else verdict.gain_pct
    return milliseconds(trial.times.candidate_ms), "" if gain_pct is None else speedup_text(speedup(gain_pct))


def targets(result: SearchResult) -> str:
    return ", ".join(f"{target}{' (simulated)' if target.simulated else ''}" for target in result.targets)


def trial_count(result: SearchResult) -> str:
    choices = "thousands of" if result.choices is None else result.choices
    return f"{len(result.trials)} trials of {choices} choices"


def champion_text(best: Champion, objective: str) -> str:
    """The champion in a sentence or two."""
    what, trial = _BETTER[objective], best.trial
    if best.status == "BASELINE_IS_BEST":
        return f"the baseline is best: no trial is {what} and accurate enough"
    limits = best.speedup_interval
    between = "" if limits is None else f" ({limits[0]:.2f} … {limits[1]:.2f}, 95 %)"
    took = ""
    if trial.times is not None:
        took = f"{milliseconds(trial.times.candidate_ms)} instead of {milliseconds(trial.times.base_ms)} ms · "
    known = ""
    if trial.accuracy is not None:
        drop = "" if trial.accuracy.drop is None else f", dropped by {trial.accuracy.drop:.4f}"
        known = f"{trial.accuracy.metric} {trial.accuracy.value:.4f}{drop}"
    gained = f"{best.factor:.2f}x {what}{between} · {took}{known} · {artifact_size(trial)}"
    return f"champion {trial.id}  {trial.label}\n  {gained}"


def autoconfig_text(result: SearchResult) -> str:
    """The champion, then every trial, then what was skipped."""
    assert result.champion is not None
    rows = [("trial", "config", "ms", "speed", "saved", "95 %", "verdict", "accuracy", "size", "why")]
    for trial in sorted(result.trials, key=lambda trial: -_rank(trial)):
        verdict = trial.deciding_verdict
        rows.append(
            (
                trial.id + ("*" if trial.id in result.pareto else ""),
                trial.label,
                *times(trial),
                gain(verdict),
                interval(verdict),
                verdict_label(trial),
                accuracy(trial),
                artifact_size(trial),
                trial.reason if trial.outcome not in ("measured", "baseline") else "",
            )
        )
    lines = [
        f"{result.model} on {targets(result)} · searched for {result.objective} in {result.seconds:.0f} s",
        champion_text(result.champion, result.objective),
        table(rows, indent="  "),
        f"* Pareto optimal in {_FRONT[result.objective]}",
        f"{trial_count(result)}; {result.ended}",
    ]
    skipped = [note for note in result.insight if note.kind in ("skip", "blocked")]
    if skipped:
        lines.append(f"skipped {len(skipped)} levels: {_sources(skipped)}; the report has the reasons")
    return "\n".join(lines)


def _rank(trial: TrialResult) -> float:
    verdict = trial.deciding_verdict
    if verdict is None:
        return 0.0
    return -1e9 if verdict.gain_pct is None else verdict.gain_pct


def _sources(notes: Sequence[Note]) -> str:
    counts: dict[str, int] = {}
    for note in notes:
        counts[note.source] = counts.get(note.source, 0) + 1
    return ", ".join(f"{source} ({count})" for source, count in counts.items())
