"""The text of `winml build` and `winml config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.render.table import table
from winml.modelkit.render.units import size


def _stage(run: dict[str, Any], *, explain: bool) -> tuple[str, ...]:
    took = f"{run['seconds']:.1f} s"
    row = (run["stage"], "from the cache" if run["cache"] == "hit" else took, run["file"], run["digest"][:19])
    return (*row, run["reason"]) if explain else row


def _change(change: dict[str, Any]) -> str:
    before, now = change["before"], change["now"]
    if isinstance(before, list) and isinstance(now, list):
        more = [f"+{name}" for name in now if name not in before]
        less = [f"-{name}" for name in before if name not in now]
        return f"{change['part']} {' '.join([*more, *less]) or 'has another order'}"
    return f"{change['part']} was {_value(before)}, is {_value(now)}"


def _value(value: Any) -> str:
    return value[:19] if isinstance(value, str) and value.startswith("sha256:") else repr(value)


def _changes(result: dict[str, Any]) -> list[str]:
    return [f"  {run['stage']}: {_change(change)}" for run in result["stages"] for change in run["changes"]]


def build_text(result: dict[str, Any], *, explain: bool = False) -> str:
    """What was built, stage by stage, and where it is."""
    simulated = " (simulated)" if result["simulated"] else ""
    lines = [f"{Path(result['model']).name} for {result['target']}{simulated}, precision {result['precision']}"]
    if result["stages"]:
        lines.append(
            table([_stage(run, explain=explain) for run in result["stages"]], indent="  ", right=frozenset({1}))
        )
    else:
        lines.append("  no stage ran: the artifact is the model itself")
    if explain:
        lines += _changes(result)
    if result["analysis"] is not None:
        lines.append(f"  {_analysis(result['analysis'])}")
    lines.append(f"  {proof_text(result['proof'])}")
    artifact = result["artifact"]
    lines.append(f"{artifact['path']}  {size(artifact['bytes'])}  {artifact['digest'][:19]}")
    if result["files_by"] == "copy":
        lines.append("the files are copies of those in the cache, not links")
    return "\n".join(lines)


def proof_text(proof: dict[str, Any]) -> str:
    """What is known of the artifact on its target."""
    text = str(proof["status"])
    if proof["status"] == "not proven":
        return f"{text}: {proof['reason']}"
    if proof["agreement"] is not None and proof["agreement"]["cosine"] is not None:
        found = proof["agreement"]
        text += (
            f": `{found['output']}` has a cosine of {found['cosine']:.4f} with the source's (least {proof['limit']:g})"
        )
    if proof["placement"] is not None:
        nodes = proof["placement"]["nodes"]
        text += f", {nodes.get(proof['placement']['requested'], 0)} of {sum(nodes.values())} nodes on {proof['on']}"
    return text if proof["compiled"] is None else f"{text}; compiled form not proven"


def built_text(result: dict[str, Any], *, explain: bool = False) -> str:
    """What was built; a composite model part by part."""
    if "parts" not in result:
        return build_text(result, explain=explain)
    blocks = [f"{part['part']}: {build_text(part, explain=explain)}" for part in result["parts"]]
    return "\n\n".join([*blocks, f"{len(blocks)} parts in {result['folder']}"])


def next_command(result: dict[str, Any]) -> str:
    """What to do with what was built."""
    part = f"/{result['parts'][0]['part']}" if "parts" in result else ""
    return f"winml perf -m {shell_word(result['folder'] + part)} --target {result['target']}"


def _analysis(counts: dict[str, Any]) -> str:
    words = ", ".join(f"{counts[name]} {name}" for name in ("supported", "partial", "unsupported", "unknown"))
    return f"operator types before quantization: {words} ({counts['source']})"


def _section(value: dict[str, Any] | None, keys: tuple[str, ...]) -> str:
    if value is None:
        return "skipped"
    shown = [f"{key} {value[key]}" for key in keys if value[key] not in (None, [], {}, False)]
    return ", ".join(shown) or "nothing to do"


def config_text(result: dict[str, Any]) -> str:
    """The sections in short."""
    config = result["config"]
    optimize = config["optimize"]
    quantize = config["quantize"]
    rows = [
        ("model", config["model"]),
        ("target", config["target"]),
        ("precision", config["precision"]),
        ("export", _section(config["export"], ("task", "part", "exporter", "opset"))),
        (
            "optimize",
            "skipped"
            if optimize is None
            else f"{len(optimize['passes'])} passes"
            + "".join(f", {name}={value}" for name, value in optimize["fixed_dims"].items()),
        ),
        ("quantize", _section(quantize, ("mode", "activation_type", "weight_type", "per_channel", "rules"))),
        ("compile", _section(config["compile"], ("compiler", "embed", "provider_options"))),
    ]
    if quantize is not None and quantize["calibration"] is not None:
        data = quantize["calibration"]
        rows.append(("calibration", f"{data['source']}, {data['limit'] or 'all'} samples, seed {data['seed']}"))
    return table(rows)
