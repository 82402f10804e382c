"""The text of `winml analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark, with_bar
from winml.modelkit.render.table import table

if TYPE_CHECKING:
    from winml.modelkit.building.analysis.result import AnalyzeResult, Fusion, Fusions, TargetAnswer

_STAND_INS = {"ORIGINAL.onnx": "the model that this one was made from", "CALIBRATION.npz": "samples of its inputs"}
"""Placeholders in a hazard's fix for files that cannot be known."""
MAX_FUSIONS = 15
_WORDS = {
    "supported": "fully supported",
    "partial": "partly supported",
    "unsupported": "not supported",
    "unknown": "unknown",
    "refused": "refused by the EP",
    "failed": "could not be queried",
}


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _headline(result: AnalyzeResult) -> str:
    facts = result.facts
    share = "unknown" if facts.conv_share is None else f"{100 * facts.conv_share:.0f} %"
    opset = facts.opsets.get("ai.onnx", "none")
    return (
        f"{Path(result.model).name} · {_number(facts.nodes, 'node')} of {_number(len(facts.ops), 'operator')} "
        f"· opset {opset} · "
        f"conv share {share} · quantized: {facts.quantized.kind}"
    )


def _source(answer: TargetAnswer) -> str:
    source = answer.source
    if source.kind == "asked":
        if source.runtime is None or source.ep is None:
            return "queried"
        version = "" if source.ep.name == "cpu" else f", {source.ep.name} {source.ep.version or 'of unknown version'}"
        return f"queried onnxruntime {source.runtime.version}{version}"
    if source.table is None:
        return "not available on this machine, and its operators are not known"
    return f"not available on this machine; from the table of {source.table.ep or source.table.runtime}"


def _placement(answer: TargetAnswer) -> list[str]:
    placement = answer.placement
    if placement is None:
        return []
    parts = placement.partitions
    grouped = f" in {_number(parts, 'partition')}" if parts else ""
    text = f"  nodes  {placement.on_target} on {answer.target}{grouped}"
    if placement.on_cpu:
        text += f", {placement.on_cpu} on the CPU"
    if placement.by_setting:
        text += f" ({placement.by_setting} of them by a setting of the EP)"
    if placement.layout_nodes:
        text += f"; {placement.layout_nodes} of them Transposes for the layout"
    return [text]


def _ops(answer: TargetAnswer) -> list[str]:
    if answer.status == "unknown" and answer.source.kind == "none":
        return []
    rows = [
        (op.op, mark(op.status), f"{op.taken} of {op.nodes}" if op.taken is not None else str(op.nodes),
         op.reason or ("" if op.status == "unknown" else "no reason given"))
        for op in answer.ops
        if op.status != "supported"
    ]  # fmt: skip
    return [table(rows, indent="    ", right=frozenset({2}), below=3)] if rows else []


def _hazards(answer: TargetAnswer) -> list[str]:
    lines = []
    for hazard in answer.hazards:
        lines.append(f"  hazard {hazard.id}: {hazard.message}")
        if hazard.fix:
            lines.append(f"    fix: {hazard.fix}")
            lines += [f"      {word}: {meaning}" for word, meaning in _STAND_INS.items() if word in hazard.fix]
    return lines


def _target(answer: TargetAnswer) -> str:
    simulated = " (simulated)" if answer.target.simulated else ""
    lines = [f"{answer.target}{simulated} · {mark(answer.status, _WORDS[answer.status])} · {_source(answer)}"]
    if answer.error:
        lines.append(f"  {answer.error.message}")
    if answer.absent:
        lines.append(f"  {answer.absent}")
    found = answer.counts
    numbers = (
        (found.supported, "supported"),
        (found.partial, "partial"),
        (found.unsupported, "unsupported"),
        (found.unknown, "unknown"),
    )
    counts = ", ".join(f"{count} {status}" for count, status in numbers if count)
    total = sum(count for count, _ in numbers)
    if found.supported:
        counts = with_bar(counts, found.supported / total).rstrip()
    lines.append(f"  operators  {counts or 'none'}")
    lines += _placement(answer)
    if answer.source.kind == "asked" and answer.source.fixed_dims:
        fixed = ", ".join(f"{name}={size}" for name, size in answer.source.fixed_dims.items())
        lines.append(f"  queried with dynamic dimensions fixed: {fixed}")
    return "\n".join([*lines, *_ops(answer), *_hazards(answer)])


def _fusion(row: Fusion) -> tuple[str, str, str]:
    refused = f" (not for {', '.join(row.not_for)})" if row.not_for else ""
    return row.name, f"{row.nodes_delta:+d} nodes", row.what + refused


def _fusions(fusions: Fusions | None) -> list[str]:
    if fusions is None:
        return []
    if fusions.error:
        return [f"fusion candidates  unknown: {fusions.error.message}"]
    rows = [_fusion(row) for row in fusions.passes if row.status == "changes"]
    if not rows:
        return [f"fusion candidates  none among {fusions.tried} passes"]
    more = [f"  {len(rows) - MAX_FUSIONS} more; --json has them all"] if len(rows) > MAX_FUSIONS else []
    listed = table(rows[:MAX_FUSIONS], indent="  ", right=frozenset({1}), below=2)
    return ["\n".join(["fusion candidates (each pass run alone)", listed, *more])]


def analyze_text(result: AnalyzeResult) -> str:
    """One block per target, then the fusion candidates."""
    return "\n\n".join([_headline(result), *map(_target, result.targets), *_fusions(result.fusions)])
