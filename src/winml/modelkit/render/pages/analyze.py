"""The report of `winml analyze`: which operators targets take, why not the others, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.figures.legend import Key
from winml.modelkit.render.figures.stacks import Part, Stack, stack_figure
from winml.modelkit.render.pages.common import model_name
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Notices, Page, Text, table
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.building.analysis.result import AnalyzeResult, Fusions, OpAnswer, TargetAnswer

_STYLES = {"supported": ("good", "✓"), "partial": ("open", "~"), "unsupported": ("bad", "✗"), "unknown": ("plain", "?")}
_WORST = ("failed", "refused", "unsupported", "partial", "unknown", "supported")
_MOST_TARGETS = 4
"""Targets that the answer names."""
_MOST_NODES = 50
_FEW_NODES = 5


def analyze_page(result: AnalyzeResult) -> Page:
    """What targets take of a model."""
    statuses, hazards = {one.status for one in result.targets}, _hazards(result)
    blocks = (
        *hazards[:1],
        *_targets_figure(result),
        *hazards[1:],
        *_operators(result),
        *_nodes_left(result),
        _targets_table(result),
        *_fusions(result.fusions),
        _facts(result),
    )
    state = next(status for status in _WORST if status in statuses)
    return Page("analyze", f"What targets take of {model_name(result.model)}", _answer(result), blocks, state)


def _answer(result: AnalyzeResult) -> str:
    said = "; ".join(f"{one.target} {_words(one)}" for one in result.targets[:_MOST_TARGETS])
    left = len(result.targets) - _MOST_TARGETS
    more = f"; {counted(left, 'more target')} below" if left > 0 else ""
    hazards = sum(len(one.hazards) for one in result.targets)
    return f"{said}{more}." + (f" {counted(hazards, 'hazard')} to know of." if hazards else "")


def _words(answer: TargetAnswer) -> str:
    counts = node_counts(answer)
    whole = sum(counts.values())
    match answer.status:
        case "supported":
            return f"takes all {counted(whole, 'node')}"
        case "partial" | "unsupported":
            return f"takes {counts['supported']} of {counted(whole, 'node')}"
        case "refused":
            return "refuses the model"
        case "failed":
            return "could not be asked"
        case "unknown":
            return "is not here, and its operators are not known" if answer.source.kind == "none" else "is not known"


def node_counts(answer: TargetAnswer) -> dict[str, int]:
    """Nodes of the model by what the target does with them."""
    counts = dict.fromkeys(_STYLES, 0)
    for one in answer.ops:
        if one.status == "partial" and one.taken is not None:
            counts["supported"] += one.taken
            counts["unsupported"] += max(one.nodes - one.taken, 0)
        else:
            counts[one.status] += one.nodes
    return counts


def _targets_figure(result: AnalyzeResult) -> tuple[Block, ...]:
    stacks: list[Stack] = []
    seen: set[str] = set()
    for one in result.targets:
        counts = {status: count for status, count in node_counts(one).items() if count}
        whole = sum(counts.values())
        seen |= counts.keys()
        listed = ", ".join(f"{count} {status}" for status, count in counts.items()) or "no nodes"
        text = "unknown" if counts.keys() == {"unknown"} else f"{counts.get('supported', 0)} of {whole}"
        parts = tuple(Part(count, *_STYLES[status]) for status, count in counts.items())
        stacks.append(Stack(str(one.target), f"{one.target}: {listed}", parts, text))
    if not seen:
        return ()
    sentence = _targets_sentence(result)
    keys = [Key(glyph, status, role) for status, (role, glyph) in _STYLES.items() if status in seen]
    return (
        Figure("targets", "Nodes that targets take", sentence,
               lambda width: stack_figure(stacks, sentence, width, keys)),
    )  # fmt: skip


def _targets_sentence(result: AnalyzeResult) -> str:
    full = [str(one.target) for one in result.targets if one.status == "supported"]
    said = f"All nodes run on {', '.join(full)}." if full else "No target is known to take all nodes."
    for one in result.targets:
        left = [op.op for op in one.ops if op.status in ("partial", "unsupported")]
        if left:
            more = f" and {len(left) - 4} more types" if len(left) > 4 else ""
            said += f" {one.target} leaves {', '.join(left[:4])}{more}."
    return said


def _hazards(result: AnalyzeResult) -> tuple[Block, ...]:
    """What to know before the model is used, with what to do about it; how it is known is folded."""
    found = [(str(one.target), hazard) for one in result.targets for hazard in one.hazards]
    if not found:
        return ()
    lines = [f"{target}: {one.message}" + (f". Fix: `{one.fix}`" if one.fix else "") for target, one in found]
    rows = [(one.id, target, str(one.count or ""), ", ".join(one.nodes[:_FEW_NODES]), one.evidence)
            for target, one in found]  # fmt: skip
    head = ("hazard", "target", "nodes", "among them", "evidence")
    folded = f"how {'it is' if len(rows) == 1 else f'these {len(rows)} are'} known"
    return (Notices(tuple(lines)), table("Hazards", head, rows, numeric=(2,), folded=folded))


def _operators(result: AnalyzeResult) -> tuple[Block, ...]:
    """Operators by targets; those that every target takes that is known are folded."""
    answers: list[dict[str, OpAnswer]] = [{op.op: op for op in one.ops} for one in result.targets]
    names = sorted({name for one in answers for name in one}, key=lambda name: (-result.facts.ops.get(name, 0), name))
    rows: list[tuple[Cell | str, ...]] = []
    fine: list[tuple[Cell | str, ...]] = []
    for name in names:
        found = [one.get(name) for one in answers]
        nodes = result.facts.ops.get(name, 0)
        cells: tuple[Cell | str, ...] = (
            name,
            Cell(str(nodes), sort=nodes),
            *("not asked" if one is None else Cell(_nodes_taken(one), state=one.status) for one in found),
            "; ".join(dict.fromkeys(one.reason for one in found if one is not None and one.reason)),
        )
        # What is unknown of a target as a whole is said once, not for each operator.
        known = [one for one, target in zip(found, result.targets, strict=True) if target.source.kind != "none"]
        (fine if all(one is not None and one.status == "supported" for one in known) else rows).append(cells)
    head = ("operator", "nodes", *(str(one.target) for one in result.targets), "why")
    blocks: list[Block] = []
    if rows:
        blocks.append(table("Operators that stay behind", head, rows, numeric=(1,)))
    if fine:
        which = "type runs" if len(fine) == 1 else "types run"
        folded = f"{len(fine)} operator {which} wherever that is known"
        blocks.append(table("Operators that run", head, fine, numeric=(1,), folded=folded))
    return tuple(blocks)


def _nodes_taken(one: OpAnswer) -> str:
    return f"{one.taken} of {one.nodes}" if one.status == "partial" and one.taken is not None else one.status


def _nodes_left(result: AnalyzeResult) -> tuple[Block, ...]:
    rows = [
        (str(one.target), node.name, node.op, node.ep, "by a setting" if node.by_setting else "", node.reason or "")
        for one in result.targets
        for node in one.left
    ]
    if not rows:
        return ()
    folded = counted(len(rows), "node") + (f", the first {_MOST_NODES}" if len(rows) > _MOST_NODES else "")
    head = ("target", "node", "operator", "runs on", "setting", "why")
    return (table("Nodes that stay behind", head, rows[:_MOST_NODES], folded=folded),)


def _targets_table(result: AnalyzeResult) -> Block:
    rows = []
    for one in result.targets:
        known, notes = one.placement, [_source(one)]
        if one.target.simulated:
            notes.append("simulated")
        if one.source.kind == "asked" and one.source.fixed_dims:
            notes.append("with " + ", ".join(f"{name}={size}" for name, size in one.source.fixed_dims.items()))
        if known is not None and known.layout_nodes:
            notes.append(f"{counted(known.layout_nodes, 'Transpose')} added for the layout")
        if one.gone:
            notes.append("folded or fused before: " + ", ".join(f"{count} {op}" for op, count in one.gone.items()))
        notes += [text for text in (one.absent, None if one.error is None else one.error.message) if text]
        numbers = ("", "", "", "") if known is None else (
            str(known.on_target), str(known.partitions or ""), str(known.on_cpu), str(known.by_setting or "")
        )  # fmt: skip
        rows.append((str(one.target), Cell(one.status, state=one.status), *numbers, "; ".join(notes)))
    head = ("target", "answer", "nodes on it", "partitions", "on the CPU", "by a setting", "how that is known")
    return table("Targets", head, rows, numeric=(2, 3, 4, 5))


def _source(answer: TargetAnswer) -> str:
    source = answer.source
    if source.kind == "asked":
        runtime = "it" if source.runtime is None else f"{source.runtime.name} {source.runtime.version}"
        ep = source.ep
        version = "" if ep is None or ep.name == "cpu" else f", {ep.name} {ep.version or 'of unknown version'}"
        return f"asked {runtime}{version}"
    if source.table is None:
        return "not on this machine, and no table has its operators"
    return f"not on this machine; from the table of {source.table.ep or source.table.runtime}"


def _fusions(fusions: Fusions | None) -> tuple[Block, ...]:
    """Passes that would change the model, those that remove most nodes first."""
    if fusions is None:
        return ()
    if fusions.error is not None:
        return (Text(f"Unknown: {fusions.error.message}", "What the optimizer could fuse"),)
    changing = sorted((one for one in fusions.passes if one.status == "changes"), key=lambda one: one.nodes_delta)
    if not changing:
        return (Text(f"None of {fusions.tried} passes changes the model.", "What the optimizer could fuse"),)
    rows = [
        (
            one.name,
            one.what,
            Cell(f"{one.nodes_delta:+d}", sort=one.nodes_delta),
            ", ".join(one.not_for),
            one.note or "",
        )
        for one in changing
    ]
    folded = f"{len(changing)} of {fusions.tried} passes change the model when they run alone"
    head = ("pass", "what", "nodes", "refused by", "note")
    return (table("What the optimizer could fuse", head, rows, numeric=(2,), folded=folded),)


def _facts(result: AnalyzeResult) -> Facts:
    facts = result.facts
    axes = "; ".join(f"{name}: {', '.join(dims)}" for name, dims in facts.dynamic_axes.items())
    pairs = (
        ("model", result.model),
        ("nodes", f"{facts.nodes:,} of {counted(len(facts.ops), 'operator type')}"),
        ("opsets", ", ".join(f"{name} {version}" for name, version in facts.opsets.items()) or "none"),
        ("share of convolutions", "unknown" if facts.conv_share is None else f"{100 * facts.conv_share:.0f} %"),
        ("quantized", facts.quantized.kind),
        ("open dimensions", axes or "none"),
        ("operators of ONNX Runtime's own", ", ".join(facts.contrib_ops) or "none"),
        ("compiled for", ", ".join(facts.compiled_for) or "nothing"),
    )
    return Facts("Model", pairs)
