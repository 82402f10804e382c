"""The summary of searches of several models, as text and as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import markdown_table, table

if TYPE_CHECKING:
    from winml.modelkit.search.result import FindingEffect, SweepResult, SweepRow

_STATUS = {"KEEP_CONFIRMED": "confirmed", "BASELINE_IS_BEST": "no gain"}


def _head(result: SweepResult) -> tuple[str, ...]:
    kinds = {row.champion.trial.accuracy.kind for row in result.models if row.champion and row.champion.trial.accuracy}
    quality = "agreement" if kinds == {"agreement"} else "accuracy"
    return ("model", "folder", "champion", "gain", "95 %", quality, "trials", "conv", "findings", "state")


def _row(entry: SweepRow) -> tuple[str, ...]:
    name, folder = Path(entry.model).name, Path(entry.folder).name
    if entry.error is not None or entry.champion is None:
        why = entry.error.message if entry.error else "no champion"
        return (name, folder, "", "", "", "", "", "", "", mark("failed", f"failed: {why}"))
    best, known = entry.champion, entry.champion.trial.accuracy
    interval, value = best.speedup_interval, ""
    if known is not None and known.value is not None:
        metric = "" if known.kind == "agreement" or known.metric == "accuracy" else f"{known.metric} "
        value = f"{metric}{known.value:.4f}"
    return (
        name,
        folder,
        best.trial.label,
        f"{best.factor:.2f}x",
        "" if interval is None else f"{interval[0]:.2f} … {interval[1]:.2f}",
        value,
        str(entry.trials),
        "not known" if entry.conv_share is None else f"{entry.conv_share:.0%}",
        ", ".join(map(effect_words, entry.findings or ())),
        mark(_STATUS[best.status]),
    )


def effect_words(effect: FindingEffect) -> str:
    """`npu-006 skipped 2`, `npu-001 moved 1`: what a finding did to how many settings."""
    done = [f"{verb} {count}" for verb, count in (("skipped", effect.skipped), ("moved", effect.moved)) if count]
    return f"{effect.finding} {' and '.join(done)}"


def sweep_text(result: SweepResult) -> str:
    """A line per model."""
    return table([_head(result), *map(_row, result.models)], head=True, drop=(7, 8, 6, 4, 1, 5))


def sweep_markdown(result: SweepResult) -> str:
    """`SUMMARY.md`."""
    lines = markdown_table(_head(result), map(_row, result.models))
    done = f"{len(result.models)} of {result.total} models"
    return "\n".join(["# Searches of several models", "", done, "", lines]) + "\n"
