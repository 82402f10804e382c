"""The text of `winml matrix`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table
from winml.modelkit.render.times import duration
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.build_matrix.command import PlanResult, RunState
    from winml.modelkit.build_matrix.disk import DiskUse
    from winml.modelkit.build_matrix.progress import Progress
    from winml.modelkit.build_matrix.state import CellRow

_ERROR_WIDTH = 100


def summary(progress: Progress, disk: DiskUse) -> str:
    """The line over a table of cells."""
    parts = [f"{progress.done} of {progress.total} cells done"]
    if progress.failed:
        parts.append(f"{progress.failed} failed")
    if progress.pending:
        left = progress.seconds_left
        parts.append(f"{progress.pending} pending, {'time left unknown' if left is None else f'{duration(left)} left'}")
    limit = "" if disk.limit_bytes is None else f" of {size(disk.limit_bytes)}"
    return " · ".join([*parts, f"{size(disk.in_use_bytes)}{limit} in use"])


def _row(row: CellRow) -> tuple[str, ...]:
    if row.build_status is None:
        build = mark("pending") if row.upload_status == "n/a" else "-"
    else:
        at = "" if row.build_status == "ok" else f" at {row.build_stage}"
        build = mark(row.build_status, f"{row.build_status}{at}")
    return (
        row.hf_id,
        row.combo,
        row.precision,
        build,
        "" if row.seconds is None else duration(row.seconds),
        "" if not row.bytes else size(row.bytes),
        mark(row.upload_status),
        (row.error or "").partition("\n")[0][:_ERROR_WIDTH],
    )


def cells_text(result: RunState) -> str:
    """Every cell of a run, and how far it is."""
    head = ("model", "combo", "precision", "build", "took", "size", "upload", "")
    where = "" if result.feed is None else f" to {result.feed}"
    rows = [head, *map(_row, result.cells)]
    listed = table(rows, right=frozenset((4, 5)), head=True, drop=(5, 4, 2), below=7)
    line = f"run {result.run_stamp}{where}: {summary(result.progress, result.disk)}"
    return f"{line}\n{listed}"


def plan_text(result: PlanResult) -> str:
    rows = [("model", "combo", "target", "precision", "compile", "folder", "version")]
    rows += [
        (c.hf_id, c.combo, c.target, c.precision, "yes" if c.compile else "no", c.folder, c.version)
        for c in result.cells
    ]
    return table(rows, head=True, drop=(6, 4, 5, 1))
