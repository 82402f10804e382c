"""The text of `winml report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.reporting.command import ReportResult


def report_text(result: ReportResult) -> str:
    """What was reported, and the pictures."""
    lines = []
    for run in result.runs:
        lines += [run.title, f"  {run.answer}"]
    if result.figures:
        lines.append(f"  pictures  {', '.join(one.name for one in result.figures)}")
    return "\n".join([*lines, f"  {result.format}, {size(result.bytes)}"])
