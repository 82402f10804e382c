"""The summary of searches of several models, as text and as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.table import markdown_table, table

if TYPE_CHECKING:
    from winml.modelkit.search.result import SweepResult, SweepRow

_HEAD = ("model", "folder", "champion", "gain", "95 %", "accuracy", "trials", "status")


def _row(entry: SweepRow) -> tuple[str, ...]:
    name, folder = Path(entry.model).name, Path(entry.folder).name
    if entry.error is not None or entry.champion is None:
        return (name, folder, "", "", "", "", "", f"failed: {entry.error.message if entry.error else 'no champion'}")
    best, known = entry.champion, entry.champion.trial.accuracy
    interval = best.speedup_interval
    return (
        name,
        folder,
        best.trial.label,
        f"{best.factor:.2f}x",
        "" if interval is None else f"{interval[0]:.2f} … {interval[1]:.2f}",
        "" if known is None or known.value is None else f"{known.metric} {known.value:.4f}",
        str(entry.trials),
        best.status,
    )


def sweep_text(result: SweepResult) -> str:
    """A line per model."""
    return table([_HEAD, *map(_row, result.models)])


def sweep_markdown(result: SweepResult) -> str:
    """`SUMMARY.md`."""
    lines = markdown_table(_HEAD, map(_row, result.models))
    done = f"{len(result.models)} of {result.total} models"
    return "\n".join(["# Searches of several models", "", done, "", lines]) + "\n"
