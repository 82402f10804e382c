"""The text of `winml inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.render.table import table
from winml.modelkit.render.units import amount, size

MAX_OPS = 30


def _value(value: dict[str, Any]) -> tuple[str, str, str]:
    shape = value["shape"]
    dims = "unknown rank" if shape is None else f"[{', '.join(map(str, shape))}]"
    return value["name"], value["dtype"], dims


def _values(label: str, values: list[dict[str, Any]]) -> str:
    rows = [(label if i == 0 else "", *_value(v)) for i, v in enumerate(values)]
    return table(rows) if rows else f"{label}  none"


def _macs(macs: dict[str, Any]) -> str:
    if macs["macs"] is None:
        return f"unknown ({macs['unknown_nodes']} nodes without known shapes; `--dim NAME=N` gives a size)"
    unknown = f", {macs['unknown_nodes']} nodes not counted" if macs["unknown_nodes"] else ""
    assumed = ", ".join(f"{k}={v}" for k, v in macs["assumed"].items())
    return f"{amount(macs['macs'])}{unknown}{f' at {assumed}' if assumed else ''}"


def _facts(result: dict[str, Any]) -> list[tuple[str, str]]:
    facts = result["facts"]
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts["opsets"].items())
    floats = ", ".join(f"{kind} {size(count)}" for kind, count in facts["float_types"].items())
    rows = [
        ("opset", f"{opsets} (IR {facts['ir_version']})"),
        ("producer", f"{facts['producer_name'] or 'unknown'} {facts['producer_version']}".strip()),
        ("size", f"{size(facts['file_bytes'])} in {len(result['files'])} file{'s'[: len(result['files']) > 1]}"),
        ("parameters", amount(facts["parameters"]) + (f" ({floats})" if floats else "")),
        ("MACs", _macs(facts["macs"])),
        ("quantized", facts["quantized"]["kind"]),
        ("conv share", "unknown" if facts["conv_share"] is None else f"{100 * facts['conv_share']:.0f} % of nodes"),
    ]
    if facts["dynamic_axes"]:
        rows.append(("dynamic axes", ", ".join(f"{k} ({' '.join(v)})" for k, v in facts["dynamic_axes"].items())))
    if facts["contrib_ops"]:
        rows.append(("contrib ops", ", ".join(facts["contrib_ops"])))
    if facts["compiled"]:
        rows.append(("compiled for", ", ".join(facts["compiled_for"])))
    rows.append(("fingerprint", result["fingerprint"] or f"none: {result['fingerprint_reason']}"))
    return rows


def _ops(facts: dict[str, Any]) -> str:
    items = list(facts["ops"].items())
    rows = [(op, str(n), f"{100 * n / facts['nodes']:.0f} %") for op, n in items[:MAX_OPS]]
    rest = items[MAX_OPS:]
    if rest:
        rows.append((f"{len(rest)} more operators", str(sum(n for _, n in rest)), ""))
    return table(rows, indent="  ", right=frozenset({1, 2}))


def inspect_text(result: dict[str, Any]) -> str:
    """The whole description."""
    facts = result["facts"]
    blocks = [
        f"{Path(result['model']).name} · {facts['nodes']} nodes",
        _values("inputs", facts["inputs"]),
        _values("outputs", facts["outputs"]),
        table(_facts(result)),
        f"operators\n{_ops(facts)}" if facts["nodes"] else "operators  none",
    ]
    return "\n\n".join(blocks)


def _folder_inputs(inputs: list[dict[str, Any]]) -> str:
    shown = [entry for entry in inputs if not entry["name"].startswith("past_")]
    past = len(inputs) - len(shown)
    words = [f"{entry['name']} {entry['dtype']} [{', '.join(map(str, entry['shape']))}]" for entry in shown]
    return ", ".join([*words, *([f"{past} of the cache"] if past else [])])


def _weights(result: dict[str, Any]) -> str:
    if result["weight_bytes"] is None:
        return "not on this machine"
    return f"{size(result['weight_bytes'])} in {', '.join(result['files'])}"


def folder_text(result: dict[str, Any]) -> str:
    """What a Hugging Face model says of itself."""
    types = ", ".join(f"{kind} {amount(count)}" for kind, count in result["weight_types"].items())
    parameters = "unknown until loaded" if result["parameters"] is None else f"{amount(result['parameters'])} ({types})"
    rows = [
        ("class", result["architecture"] or "not named"),
        ("family", f"{result['model_type']}{'' if result['proven'] else ' (no test exports one)'}"),
        ("parameters", parameters),
        ("weights", _weights(result)),
    ]
    if result["task"] is not None:
        rows.append(("task", result["task"]))
        rows.append(("other tasks", ", ".join(result["tasks"][1:]) or "none"))
        rows.append(("inputs", _folder_inputs(result["inputs"])))
        rows += [(f"part {part['part']}", _folder_inputs(part["inputs"])) for part in result["parts"]]
    else:
        rows.append(("task", f"unknown: {result['reason']}"))
    if result["remote_code"]:
        rows.append(("remote code", ", ".join(result["remote_code"])))
    return f"{result['model']}\n\n{table(rows)}"
