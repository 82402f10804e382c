"""The text of `winml export`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.building.export.result import ExportedPart, ExportResult, ParityNotRun, ParityPassed
    from winml.modelkit.building.export.sample_copy import SampleCopy


def _parity(parity: ParityPassed | ParityNotRun) -> str:
    if parity.status == "not run":
        return f"not compared with PyTorch: {parity.reason}"
    outputs = {row.output for row in parity.outputs}
    many = f"{len(outputs)} output{'s'[: len(outputs) > 1]}"
    return f"{many} within {parity.difference:.1e} of PyTorch ({parity.tolerance:g} allowed)"


def _part(part: ExportedPart) -> tuple[str, ...]:
    took = "from the cache" if part.cache == "hit" else f"{part.seconds:.1f} s"
    peak = part.metadata.peak_memory_bytes
    memory = "" if peak is None else f"{size(peak)} of memory at most"
    return (part.part, took, size(part.bytes), f"opset {part.metadata.opset}", memory)


def export_text(result: ExportResult) -> str:
    """What was exported, how it compares with PyTorch, and its inputs."""
    first = result.parts[0].metadata
    lines = [f"{first.architecture} for {result.task}, exporter {first.exporter}"]
    lines.append(table([_part(part) for part in result.parts], indent="  ", right=frozenset({1, 2})))
    for part in result.parts:
        name = f"{part.part}: " if len(result.parts) > 1 else ""
        inputs = part.metadata.inputs
        lines.append(f"  {name}{_parity(part.metadata.parity)}")
        shown = [f"{one.name} [{', '.join(map(str, one.shape))}]" for one in inputs if not one.name.startswith("past_")]
        past = len(inputs) - len(shown)
        more = [f"{past} cache inputs"] if past else []
        lines.append(f"  {name}inputs {', '.join([*shown, *more])}")
    lines += [f"  {note}" for note in dict.fromkeys(note for part in result.parts for note in part.metadata.notes)]
    return "\n".join(lines)


def sample_text(result: SampleCopy) -> str:
    """Which file was written, and what it is."""
    return f"wrote {result.path}: the sample, a digits classifier ({size(result.bytes)}, {result.task})"
