"""The text of `winml inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import with_bar
from winml.modelkit.render.table import table
from winml.modelkit.render.units import amount, size

if TYPE_CHECKING:
    from winml.modelkit.building.export.describe import FolderInspection
    from winml.modelkit.building.inspect import Inspection
    from winml.modelkit.core.config import InputSection
    from winml.modelkit.graph.description import GraphFacts, ModelDescription, ValueFacts

MAX_OPS = 30
_CACHES = {"in place": "every step writes into one buffer", "grows": "every step returns a longer one"}


def _value(value: ValueFacts) -> tuple[str, str, str]:
    dims = "unknown rank" if value.shape is None else f"[{', '.join(map(str, value.shape))}]"
    return value.name, value.dtype, dims


def _values(label: str, values: Sequence[ValueFacts]) -> str:
    rows = [(label if i == 0 else "", *_value(v)) for i, v in enumerate(values)]
    return table(rows) if rows else f"{label}  none"


def _facts(found: ModelDescription) -> list[tuple[str, str]]:
    facts = found.facts
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts.opsets.items())
    floats = ", ".join(f"{kind} {size(count)}" for kind, count in facts.float_types.items())
    file_bytes = 0 if facts.file_bytes is None else facts.file_bytes
    macs, unknown = facts.macs.macs, facts.macs.unknown_nodes
    if macs is None:
        macs_text = f"unknown ({unknown} nodes without known shapes; `--dim NAME=N` gives a size)"
    else:
        assumed = ", ".join(f"{k}={v}" for k, v in facts.macs.assumed.items())
        macs_text = amount(macs) + (f", {unknown} nodes not counted" if unknown else "")
        macs_text += f" at {assumed}" if assumed else ""
    rows = [
        ("opset", f"{opsets} (IR {facts.ir_version})"),
        ("producer", f"{facts.producer_name or 'unknown'} {facts.producer_version}".strip()),
        ("size", f"{size(file_bytes)} in {len(found.files)} file{'s'[: len(found.files) > 1]}"),
        ("parameters", amount(facts.parameters) + (f" ({floats})" if floats else "")),
        ("MACs", macs_text),
        ("quantized", facts.quantized.kind),
        ("conv share", "unknown" if facts.conv_share is None else f"{100 * facts.conv_share:.0f} % of nodes"),
    ]
    if facts.dynamic_axes:
        rows.append(("dynamic axes", ", ".join(f"{k} ({' '.join(v)})" for k, v in facts.dynamic_axes.items())))
    if facts.contrib_ops:
        rows.append(("contrib ops", ", ".join(facts.contrib_ops)))
    if facts.compiled:
        rows.append(("compiled for", ", ".join(facts.compiled_for)))
    rows.append(("fingerprint", found.fingerprint or f"none: {found.fingerprint_reason}"))
    return rows


def _ops(facts: GraphFacts) -> str:
    items = list(facts.ops.items())
    rows = [(op, str(n), with_bar(f"{100 * n / facts.nodes:.0f} %", n / facts.nodes)) for op, n in items[:MAX_OPS]]
    rest = items[MAX_OPS:]
    if rest:
        rows.append((f"{len(rest)} more operators", str(sum(n for _, n in rest)), ""))
    return table(rows, indent="  ", right=frozenset({1, 2}))


def _generation(result: Inspection) -> list[str]:
    """How a folder generates text, or why it does not."""
    if result.generation_problem is not None:
        return [f"generates text  no: {result.generation_problem}"]
    found = result.generation
    if found is None:
        return []
    sizes = "heads and sizes differ between layers, as the graph has them"
    if found.heads is not None and found.head_size is not None:
        sizes = f"{found.heads} heads of size {found.head_size}"
    ends = ", ".join(map(str, found.end_tokens)) or "none: a text goes on to its last token"
    rows = [
        ("generates text", f"by {found.runtime} on {found.target}: {found.reason}"),
        ("context", f"{found.context_length} tokens"),
        ("cache", f"{found.layers} layers, {sizes}; {_CACHES[found.cache]}"),
        ("vocabulary", "unknown" if found.vocabulary is None else f"{found.vocabulary} tokens"),
        ("end tokens", ends),
        ("tokenizer", found.tokenizer or "none: texts need `--processor DIR`"),
        ("chat template", "yes" if found.chat_template else "no"),
        ("precision", found.precision or "not known: winml did not build the folder"),
    ]
    if found.ignored:
        rows.append(("not used", f"{', '.join(found.ignored)} of genai_config.json"))
    return [table(rows)]


def inspect_text(result: Inspection) -> str:
    """The whole description."""
    facts = result.description.facts
    blocks = [
        f"{Path(result.model).name} · {facts.nodes} nodes",
        _values("inputs", facts.inputs),
        _values("outputs", facts.outputs),
        table(_facts(result.description)),
        *_generation(result),
        f"operators\n{_ops(facts)}" if facts.nodes else "operators  none",
    ]
    return "\n\n".join(blocks)


def _folder_inputs(inputs: Sequence[InputSection]) -> str:
    shown = [one for one in inputs if not one.name.startswith("past_")]
    past = len(inputs) - len(shown)
    words = [f"{one.name} {one.dtype} [{', '.join(map(str, one.shape))}]" for one in shown]
    return ", ".join([*words, *([f"{past} cache inputs"] if past else [])])


def folder_text(result: FolderInspection) -> str:
    """What the files of a Hugging Face model tell."""
    types = ", ".join(f"{kind} {amount(count)}" for kind, count in result.weight_types.items())
    parameters = "unknown until loaded" if result.parameters is None else f"{amount(result.parameters)} ({types})"
    weights = "not on this machine"
    if result.weight_bytes is not None:
        weights = f"{size(result.weight_bytes)} in {', '.join(result.files)}"
    rows = [
        ("class", result.architecture or "not given"),
        ("family", f"{result.model_type}{'' if result.proven else ' (no test exports one)'}"),
        ("parameters", parameters),
        ("weights", weights),
    ]
    if result.task is None:
        rows.append(("task", f"unknown: {result.reason}"))
    else:
        rows.append(("task", result.task))
        rows.append(("other tasks", ", ".join(result.tasks[1:]) or "none"))
        known = result.inputs is not None
        rows.append(("inputs", _folder_inputs(result.inputs or ()) if known else f"unknown: {result.reason}"))
        rows += [(f"part {part.part}", _folder_inputs(part.inputs)) for part in result.parts]
        rows += [("derived", note) for note in result.derived]
    if result.remote_code:
        rows.append(("remote code", ", ".join(result.remote_code)))
    return f"{result.model}\n\n{table(rows)}"
