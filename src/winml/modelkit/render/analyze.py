"""The text of `winml analyze`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.render.table import table

_STAND_INS = {"ORIGINAL.onnx": "what this model was made from", "CALIBRATION.npz": "samples of its inputs"}
"""How a hazard's fix names files that cannot be known."""
MAX_FUSIONS = 15
_WORDS = {
    "supported": "fully supported",
    "partial": "partly supported",
    "unsupported": "not supported",
    "unknown": "unknown",
    "refused": "refused by the EP",
    "failed": "could not be asked",
}


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _headline(result: dict[str, Any]) -> str:
    facts = result["facts"]
    share = "unknown" if facts["conv_share"] is None else f"{100 * facts['conv_share']:.0f} %"
    opset = facts["opsets"].get("ai.onnx", "none")
    return (
        f"{Path(result['model']).name} · {_number(facts['nodes'], 'node')} of {_number(len(facts['ops']), 'operator')} "
        f"· opset {opset} · "
        f"conv share {share} · quantized: {facts['quantized']['kind']}"
    )


def _source(target: dict[str, Any]) -> str:
    source = target["source"]
    if source["kind"] == "asked":
        if "runtime" not in source:
            return "asked"
        ep = source["ep"]
        version = "" if ep["name"] == "cpu" else f", {ep['name']} {ep['version'] or 'of unknown version'}"
        return f"asked onnxruntime {source['runtime']['version']}{version}"
    if source["kind"] == "none":
        return "not here, and nothing is known of its operators"
    known = source["table"]
    return f"not here; by what {known['ep'] or known['runtime']} said elsewhere"


def _placement(target: dict[str, Any]) -> list[str]:
    placement = target["placement"]
    if placement is None:
        return []
    parts = placement["partitions"]
    grouped = f" in {_number(parts, 'partition')}" if parts else ""
    text = f"  nodes  {placement['on_target']} on {target['target']}{grouped}"
    if placement["on_cpu"]:
        text += f", {placement['on_cpu']} on the CPU"
    if placement["by_setting"]:
        text += f" ({placement['by_setting']} of them by a setting of the EP)"
    if placement["layout_nodes"]:
        text += f"; {placement['layout_nodes']} of them Transposes for the layout"
    return [text]


def _fixed(target: dict[str, Any]) -> list[str]:
    fixed = ", ".join(f"{name}={size}" for name, size in target["source"].get("fixed_dims", {}).items())
    return [f"  asked with dynamic dimensions fixed: {fixed}"] if fixed else []


def _ops(target: dict[str, Any]) -> list[str]:
    if target["status"] == "unknown" and target["source"]["kind"] == "none":
        return []
    rows = [
        (op["op"], op["status"], f"{op['taken']} of {op['nodes']}" if op["taken"] is not None else str(op["nodes"]),
         op["reason"] or ("" if op["status"] == "unknown" else "no reason given"))
        for op in target["ops"]
        if op["status"] != "supported"
    ]  # fmt: skip
    return [table(rows, indent="    ", right=frozenset({2}))] if rows else []


def _hazards(target: dict[str, Any]) -> list[str]:
    lines = []
    for hazard in target["hazards"]:
        lines.append(f"  hazard {hazard['id']}: {hazard['message']}")
        if hazard["fix"]:
            lines.append(f"    fix: {hazard['fix']}")
            lines += [f"      {word}: {meaning}" for word, meaning in _STAND_INS.items() if word in hazard["fix"]]
    return lines


def _target(target: dict[str, Any]) -> str:
    simulated = " (simulated)" if target["simulated"] else ""
    lines = [f"{target['target']}{simulated} · {_WORDS[target['status']]} · {_source(target)}"]
    if target["error"]:
        lines.append(f"  {target['error']['message']}")
    if target["absent"]:
        lines.append(f"  {target['absent']}")
    counts = ", ".join(f"{count} {status}" for status, count in target["counts"].items() if count)
    lines.append(f"  operators  {counts or 'none'}")
    return "\n".join([*lines, *_placement(target), *_fixed(target), *_ops(target), *_hazards(target)])


def _fusion(row: dict[str, Any]) -> tuple[str, str, str]:
    refused = f" (not for {', '.join(row['not_for'])})" if row["not_for"] else ""
    return row["name"], f"{row['nodes_delta']:+d} nodes", row["what"] + refused


def _fusions(fusions: dict[str, Any] | None) -> list[str]:
    if fusions is None:
        return []
    if fusions["error"]:
        return [f"fusion candidates  unknown: {fusions['error']['message']}"]
    rows = [_fusion(row) for row in fusions["passes"] if row["status"] == "changes"]
    if not rows:
        return [f"fusion candidates  none among {fusions['tried']} passes"]
    more = [f"  {len(rows) - MAX_FUSIONS} more; --json has them all"] if len(rows) > MAX_FUSIONS else []
    listed = table(rows[:MAX_FUSIONS], indent="  ", right=frozenset({1}))
    return ["\n".join(["fusion candidates (each pass run alone)", listed, *more])]


def analyze_text(result: dict[str, Any]) -> str:
    """One block per target, then what the optimizer could do."""
    return "\n\n".join([_headline(result), *map(_target, result["targets"]), *_fusions(result["fusions"])])


def next_command(result: dict[str, Any]) -> str:
    """The first fix there is, or a look at what failed, or measuring."""
    fixes = [hazard["fix"] for target in result["targets"] for hazard in target["hazards"] if hazard["fix"]]
    if fixes:
        return str(fixes[0])
    model = result["model"]
    quoted = shell_word(model)
    if all(target["status"] == "unknown" for target in result["targets"]):
        return "winml sys"
    if any(target["error"] for target in result["targets"]):
        return f"winml inspect -m {quoted}"
    here = [t["target"] for t in result["targets"] if t["source"]["kind"] == "asked"]
    return f"winml perf -m {quoted}" + (f" --target {here[0]}" if len(result["targets"]) == 1 and here else "")
