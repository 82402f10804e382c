"""The text of `winml optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.render.table import table
from winml.modelkit.render.units import ms, size

_KINDS = {"ort": "ONNX Runtime", "ir": "onnx-ir", "onnxscript": "onnxscript", "own": "winml"}


def _ops(result: dict[str, Any]) -> str:
    before, after = result["ops_before"], result["ops_after"]
    rows = []
    for op in sorted({*before, *after}, key=lambda op: (-max(before.get(op, 0), after.get(op, 0)), op)):
        delta = after.get(op, 0) - before.get(op, 0)
        rows.append((op, str(before.get(op, 0)), str(after.get(op, 0)), f"{delta:+d}" if delta else ""))
    return table([("operator", "before", "after", ""), *rows], indent="  ", right=frozenset({1, 2, 3}))


def _passes(result: dict[str, Any]) -> str:
    told = [p for p in result["passes"] if p["status"] != "no change" or p["note"]]
    rows = [(p["name"], p["status"], ms(1000 * p["seconds"]), p["note"] or "") for p in told]
    idle = len(result["passes"]) - len(told)
    lines = [table(rows, indent="  ", right=frozenset({2}))] if rows else []
    return "\n".join([*lines, f"  {idle} pass{'es'[: 2 * (idle > 1)]}: no change"] if idle else lines)


def _verification(found: dict[str, Any]) -> str:
    if found["status"] in ("not run", "not asked for"):
        return f"outputs not compared{': ' + found['reason'] if found['reason'] else ''}"
    word = "equal to the input model's" if found["status"] == "passed" else "DIFFERENT from the input model's"
    distance = "without a distance" if found["max_rel"] is None else f"largest difference {found['max_rel']:.1e}"
    return f"outputs {word} on {len(found['runs'])} seeded inputs ({distance}, limit {found['tolerance']:g})"


def optimize_text(result: dict[str, Any]) -> str:
    """What was done to the model."""
    total = sum(file["bytes"] for file in result["files"])
    opsets = (result["opset_before"], result["opset_after"])
    target = f" for {result['target']}" if result["target"] else ""
    head = f"{Path(result['model']).name} -> {Path(result['output']).name}{target} · {size(total)}"
    change = f"{result['nodes_before']} -> {result['nodes_after']} nodes" if result["changed"] else "no change"
    if opsets[0] != opsets[1]:
        change += f", opset {opsets[0]} -> {opsets[1]}"
    blocks = [f"{head}\n{change}; {_verification(result['verification'])}"]
    if result["passes"]:
        blocks.append(f"passes\n{_passes(result)}")
    if result["ops_before"] or result["ops_after"]:
        blocks.append(_ops(result))
    return "\n\n".join(blocks)


def _state(row: dict[str, Any]) -> str:
    if row["unavailable"]:
        return "unavailable"
    state = row["level"] or "by name"
    return f"{state}, approximate" if row["approximate"] else state


def _what(row: dict[str, Any]) -> str:
    return f"unavailable: {row['unavailable']} ({row['what']})" if row["unavailable"] else row["what"]


def passes_text(result: dict[str, Any]) -> str:
    """The table of passes: what each turns into what, at which level it starts, and who does it."""
    rows = [(row["name"], _state(row), _KINDS[row["kind"]], _what(row)) for row in result["table"]]
    refusals = [(row["name"], ", ".join(row["refused"])) for row in result["table"] if row["refused"]]
    blocks = [table([("pass", "level", "by", "what becomes what"), *rows])]
    if refusals:
        blocks.append(f"makes what {result['target']} is not known to take\n{table(refusals, indent='  ')}")
    return "\n\n".join(blocks)
