"""The text of `winml quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

MAX_LEFT = 12


def _how(section: dict[str, Any]) -> str:
    """The section in a few words: `static, uint8 activations, int8 weights per channel`."""
    if section["mode"] == "fp16":
        return "float16" + ("" if section["keep_io_types"] else ", inputs and outputs too")
    if section["mode"] == "weight_only":
        return f"{section['weight_type']} weights in blocks of {section['block_size']}"
    channels = "per channel" if section["per_channel"] else "per tensor"
    activations = f"{section['activation_type']} activations, " if section["activation_type"] else ""
    return f"{section['mode']}, {activations}{section['weight_type']} weights {channels}"


def _calibration(found: dict[str, Any]) -> str:
    where = "random inputs" if found["source"] == "random" else Path(found["source"]).name
    return (
        f"{found['samples']} samples of {where} (seed {found['seed']}), {found['method']}, {found['tensors']} tensors"
    )


def _output(entry: dict[str, Any]) -> tuple[str, str, str]:
    if entry["identical"]:
        return entry["name"], "identical", ""
    cosine = "cosine unknown" if entry["cosine"] is None else f"cosine {entry['cosine']:.5f}"
    noise = "" if entry["sqnr_db"] is None else f"SQNR {entry['sqnr_db']:.1f} dB"
    return entry["name"], cosine, noise


def _fidelity(found: dict[str, Any]) -> str:
    if not found["outputs"]:
        return f"outputs not compared: {found['reason']}"
    where = "random inputs" if found["source"] == "random" else "samples"
    head = f"outputs against the original's on {found['samples']} {where} (cpu)"
    return f"{head}\n{table([_output(entry) for entry in found['outputs']], indent='  ')}"


def _nodes(nodes: dict[str, Any]) -> str:
    done = ", ".join(f"{op} x{count}" for op, count in nodes["quantized"].items()) or "none"
    rows = [(entry["op"], str(entry["nodes"]), entry["reason"]) for entry in nodes["left"][:MAX_LEFT]]
    lines = [f"quantized  {done}"]
    if rows:
        lines += ["left", table(rows, indent="  ", right=frozenset({1}))]
    if len(nodes["left"]) > MAX_LEFT:
        lines.append(f"  … {len(nodes['left']) - MAX_LEFT} more rows, all in --json")
    return "\n".join(lines)


def quantize_text(result: dict[str, Any]) -> str:
    """What became of the model."""
    before, after = result["size"]["before_bytes"], result["size"]["after_bytes"]
    change = f"{size(before)} -> {size(after)}" if result["changed"] else "no change"
    head = f"{Path(result['model']).name} -> {Path(result['output']).name} for {result['target']} · {change}"
    facts = [("precision", f"{result['precision']}: {_how(result['section'])}")]
    if result["calibration"] is not None:
        facts.append(("calibration", _calibration(result["calibration"])))
    return "\n\n".join([f"{head}\n{table(facts)}", _nodes(result["nodes"]), _fidelity(result["fidelity"])])
