"""The text of `winml quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.building.quantize.result import (
        Calibration,
        NodeSummary,
        OutputFidelity,
        QuantizeResult,
    )
    from winml.modelkit.core.config import QuantizeSection

MAX_LEFT = 12


def _how(section: QuantizeSection) -> str:
    """A summary of the section: `static, uint8 activations, int8 weights per channel`."""
    if section.mode == "fp16":
        return "float16" + ("" if section.keep_io_types else ", inputs and outputs too")
    if section.mode == "weight_only":
        method = "" if section.block_method in (None, "rtn") else f" by {section.block_method}"
        compute = "" if section.block_compute in (None, "float32") else f", computed in {section.block_compute}"
        return f"{section.weight_type} weights in blocks of {section.block_size}{method}{compute}"
    channels = "per channel" if section.per_channel else "per tensor"
    activations = f"{section.activation_type} activations, " if section.activation_type else ""
    more = ", biases corrected" if section.bias_correction else ""
    more += "" if section.smoothing is None else f", smoothed by {section.smoothing:g}"
    return f"{section.mode}, {activations}{section.weight_type} weights {channels}{more}"


def _calibration(found: Calibration) -> str:
    where = "random inputs" if found.source == "random" else Path(found.source).name
    method: str = found.method
    if found.methods:
        method = f"{method} ({', '.join(f'{name} x{count}' for name, count in found.methods.items())})"
    return f"{found.samples} samples of {where} (seed {found.seed}), {method}, {found.tensors} tensors"


def _output(output: OutputFidelity) -> tuple[str, str, str]:
    if output.identical:
        return output.name, "identical", ""
    cosine = "cosine unknown" if output.cosine is None else f"cosine {output.cosine:.5f}"
    noise = "" if output.sqnr_db is None else f"SQNR {output.sqnr_db:.1f} dB"
    return output.name, cosine, noise


def _nodes(nodes: NodeSummary) -> str:
    done = ", ".join(f"{op} x{count}" for op, count in nodes.quantized.items()) or "none"
    rows = [(left.op, str(left.nodes), left.reason) for left in nodes.left[:MAX_LEFT]]
    lines = [f"quantized  {done}"]
    if rows:
        lines += ["not quantized", table(rows, indent="  ", right=frozenset({1}), below=2)]
    if len(nodes.left) > MAX_LEFT:
        lines.append(f"  … {len(nodes.left) - MAX_LEFT} more rows, all in --json")
    return "\n".join(lines)


def quantize_text(result: QuantizeResult) -> str:
    """What changed in the model."""
    outcome = result.outcome
    before, after = outcome.size.before_bytes, outcome.size.after_bytes
    change = f"{size(before)} -> {size(after)}" if outcome.changed else "no change"
    cached = " · from the cache" if result.cache == "hit" else ""
    head = f"{Path(result.model).name} -> {Path(result.output).name} for {result.target} · {change}{cached}"
    facts = [("precision", f"{result.precision}: {_how(result.section)}")]
    if outcome.calibration is not None:
        facts.append(("calibration", _calibration(outcome.calibration)))
    found = outcome.fidelity
    fidelity = f"outputs not compared: {found.reason}"
    if found.outputs:
        where = "random inputs" if found.source == "random" else "samples"
        rows = table([_output(output) for output in found.outputs], indent="  ")
        fidelity = f"outputs compared with the original's on {found.samples} {where} (cpu)\n{rows}"
    return "\n\n".join([f"{head}\n{table(facts)}", _nodes(outcome.nodes), fidelity])
