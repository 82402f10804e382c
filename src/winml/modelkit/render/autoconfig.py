"""The text of `winml autoconfig`."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.verdict import speedup
from winml.modelkit.render.table import table
from winml.modelkit.render.times import faster, milliseconds
from winml.modelkit.render.units import size

_BETTER = {"latency": "faster", "size": "smaller", "placement": "better by pieces and size"}
_FRONT = {
    "latency": "speed, accuracy and size", "size": "accuracy and size", "placement": "pieces, accuracy and size",
}  # fmt: skip


def percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f} %"


def interval(verdict: dict[str, Any] | None) -> str:
    found = None if verdict is None else verdict["interval_pct"]
    return "" if found is None else f"({found[0]:+.1f} … {found[1]:+.1f})"


def word(trial: dict[str, Any]) -> str:
    """The verdict of a trial, and whether fresh rounds confirmed it."""
    if trial["confirmation"] is not None:
        return str(trial["confirmation"]["word"])
    if trial["verdict"] is None:
        return "BASELINE"
    failed = {"inaccurate": "FAILED accuracy", "failed": f"FAILED {trial['step']}"}
    return failed.get(trial["outcome"], str(trial["verdict"]["verdict"]))


def shown(trial: dict[str, Any]) -> dict[str, Any] | None:
    """The verdict whose gain is reported: that of fresh rounds where there are some."""
    found: dict[str, Any] | None = trial["confirmation"]["verdict"] if trial["confirmation"] else trial["verdict"]
    return found


def accuracy(trial: dict[str, Any]) -> str:
    found = trial["accuracy"]
    return "" if found is None or found["value"] is None else f"{found['value']:.4f}"


def bytes_of(trial: dict[str, Any]) -> str:
    return "" if trial["artifact"] is None else size(trial["artifact"]["bytes"])


def times_of(trial: dict[str, Any]) -> tuple[str, str]:
    """Milliseconds of a trial, and how many times as fast as the baseline it is; empty where times are not known."""
    times, verdict = trial.get("times"), shown(trial)
    gain = None if verdict is None or times is None else verdict["gain_pct"]
    return milliseconds(times and times["candidate_ms"]), "" if gain is None else faster(speedup(gain))


def _row(trial: dict[str, Any], front: list[str]) -> tuple[str, ...]:
    verdict = shown(trial)
    return (
        trial["id"] + ("*" if trial["id"] in front else ""),
        trial["label"],
        *times_of(trial),
        percent(None if verdict is None else verdict["gain_pct"]),
        interval(verdict),
        word(trial),
        accuracy(trial),
        bytes_of(trial),
        trial["reason"] if trial["outcome"] not in ("measured", "baseline") else "",
    )


def champion_text(result: dict[str, Any]) -> str:
    """The champion in a sentence or two."""
    best, what = result["champion"], _BETTER[result["objective"]]
    if best["status"] == "BASELINE_IS_BEST":
        return f"the baseline is best: nothing that was tried is {what} and accurate enough"
    limits = best["speedup_interval"]
    between = "" if limits is None else f" ({limits[0]:.2f} … {limits[1]:.2f}, 95 %)"
    drop = best["accuracy"]["drop"]
    known = f"{best['accuracy']['metric']} {best['accuracy']['value']:.4f}"
    lost = "" if drop is None else f", dropped by {drop:.4f}"
    times = best.get("times")
    sides = () if times is None else (milliseconds(times[side]) for side in ("candidate_ms", "base_ms"))
    took = "" if times is None else " instead of ".join(sides) + " ms · "
    gained = f"{best['factor']:.2f}x {what}{between} · {took}{known}{lost} · {bytes_of(best)}"
    return f"champion {best['id']}  {best['label']}\n  {gained}"


def autoconfig_text(result: dict[str, Any]) -> str:
    """The champion, then every trial, then what was left out."""
    order = sorted(result["trials"], key=lambda t: -_gain(t))
    head = ("trial", "config", "ms", "speed", "saved", "95 %", "verdict", "accuracy", "size", "why")
    skipped = [note for note in result["insight"] if note["kind"] in ("skip", "blocked")]
    targets = ", ".join(f"{t['target']}{' (simulated)' if t['simulated'] else ''}" for t in result["targets"])
    lines = [
        f"{result['model']} on {targets} · searched for {result['objective']} in {result['seconds']:.0f} s",
        champion_text(result),
        table([head, *(_row(trial, result["pareto"]) for trial in order)], indent="  "),
        f"* not beaten in {_FRONT[result['objective']]} at once",
        f"{len(result['trials'])} trials of {count_of(result['choices'])} choices; {result['ended']}",
    ]
    if skipped:
        lines.append(f"left out: {len(skipped)} levels, by {_sources(skipped)}; reasons are in the report")
    return "\n".join(lines)


def count_of(choices: int | None) -> str:
    return "thousands of" if choices is None else str(choices)


def _gain(trial: dict[str, Any]) -> float:
    verdict = shown(trial)
    if verdict is None:
        return 0.0
    return -1e9 if verdict["gain_pct"] is None else float(verdict["gain_pct"])


def _sources(notes: list[dict[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for note in notes:
        counts[note["source"]] = counts.get(note["source"], 0) + 1
    return ", ".join(f"{source} ({count})" for source, count in counts.items())
