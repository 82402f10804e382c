"""The text of `winml optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.table import table
from winml.modelkit.render.units import ms, size

if TYPE_CHECKING:
    from winml.modelkit.building.optimize.result import (
        OptimizeReport,
        OptimizeResult,
        PassRow,
        PassTable,
        Verification,
    )

_KINDS = {"ort": "ONNX Runtime", "ir": "onnx-ir", "onnxscript": "onnxscript", "own": "winml"}
_STATUS = {"left out": "skipped"}
"""Words for people where the JSON has another one."""


def _ops(report: OptimizeReport) -> str:
    before, after = report.ops_before, report.ops_after
    rows = []
    for op in sorted({*before, *after}, key=lambda op: (-max(before.get(op, 0), after.get(op, 0)), op)):
        delta = after.get(op, 0) - before.get(op, 0)
        rows.append((op, str(before.get(op, 0)), str(after.get(op, 0)), f"{delta:+d}" if delta else ""))
    return table([("operator", "before", "after", ""), *rows], indent="  ", right=frozenset({1, 2, 3}), head=True)


def _verification(found: Verification) -> str:
    if found.status in ("not run", "not asked for"):
        return f"outputs not compared{': ' + found.reason if found.reason else ''}"
    word = "equal to the input model's" if found.status == "passed" else "DIFFERENT from the input model's"
    distance = "without a distance" if found.max_rel is None else f"largest difference {found.max_rel:.1e}"
    return f"outputs {word} on {len(found.runs)} seeded inputs ({distance}, limit {found.tolerance:g})"


def optimize_text(result: OptimizeResult) -> str:
    """The changes to the model."""
    report = result.report
    target = f" for {result.target}" if result.target else ""
    total = sum(file.bytes for file in report.files)
    cached = " · from the cache" if result.cache == "hit" else ""
    head = f"{Path(result.model).name} -> {Path(result.output).name}{target} · {size(total)}{cached}"
    change = f"{report.nodes_before} -> {report.nodes_after} nodes" if report.changed else "no change"
    if report.opset_before != report.opset_after:
        change += f", opset {report.opset_before} -> {report.opset_after}"
    blocks = [f"{head}\n{change}; {_verification(report.verification)}"]
    if report.passes:
        notable = [p for p in report.passes if p.status != "no change" or p.note]
        rows = [(p.name, _STATUS.get(p.status, p.status), ms(1000 * p.seconds), p.note or "") for p in notable]
        idle = len(report.passes) - len(notable)
        lines = ["passes", *([table(rows, indent="  ", right=frozenset({2}), below=3)] if rows else [])]
        lines += [f"  {idle} pass{'es' if idle > 1 else ''}: no change"] if idle else []
        blocks.append("\n".join(lines))
    if report.ops_before or report.ops_after:
        blocks.append(_ops(report))
    return "\n\n".join(blocks)


def _state(row: PassRow) -> str:
    if row.unavailable:
        return "unavailable"
    state = row.level or "by name"
    return f"{state}, approximate" if row.approximate else state


def _what(row: PassRow) -> str:
    return f"unavailable: {row.unavailable} ({row.what})" if row.unavailable else row.what


def passes_text(result: PassTable) -> str:
    """The table of passes: what each does, the level that enables it, and who implements it."""
    rows = [(row.name, _state(row), _KINDS[row.kind], _what(row)) for row in result.table]
    refusals = [(row.name, ", ".join(row.refused)) for row in result.table if row.refused]
    blocks = [table([("pass", "level", "by", "what it does"), *rows], head=True, drop=(2,), below=3)]
    if refusals:
        blocks.append(
            f"produces operators that {result.target} is not known to support\n{table(refusals, indent='  ')}"
        )
    return "\n\n".join(blocks)
