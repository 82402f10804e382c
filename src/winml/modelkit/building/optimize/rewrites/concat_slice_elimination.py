"""Concat + Slice that takes whole inputs of it -> those inputs."""

from __future__ import annotations

from itertools import accumulate

import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import Editor, attribute, integers, nodes, shape


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for node in nodes(model, "Slice"):
        maker = node.inputs[0].producer() if node.inputs[0] is not None else None
        if maker is not None and maker.op_type == "Concat" and not maker.domain:
            taken = _whole_inputs(maker, node)
            if taken:
                _bypass(editor, node, taken, attribute(maker, "axis", 0))
    return editor.replaced


def _whole_inputs(concat: ir.Node, node: ir.Node) -> list[ir.Value]:
    """The inputs of the Concat that the Slice is made of; none when it cuts one or their sizes are unknown."""
    shapes = [shape(value) for value in concat.inputs]
    ranges = _range(node)
    if ranges is None or any(sizes is None for sizes in shapes):
        return []
    start, end, axis, rank = *ranges, len(shapes[0] or ())
    along = attribute(concat, "axis", 0) % rank if rank else 0
    sizes = [(sizes or ())[along] for sizes in shapes]
    if axis % max(rank, 1) != along or any(size is None for size in sizes):
        return []
    bounds = [0, *accumulate(size or 0 for size in sizes)]
    start, end = (max(0, min(at + bounds[-1] if at < 0 else at, bounds[-1])) for at in (start, end))
    if start not in bounds or end not in bounds or start >= end:
        return []
    inside = zip(concat.inputs, bounds[:-1], bounds[1:], strict=True)
    return [value for value, low, high in inside if start <= low < high <= end and value is not None]


def _range(node: ir.Node) -> tuple[int, int, int] | None:
    """Start, end and axis of a Slice by constants along one axis in steps of 1."""
    if len(node.inputs) < 3:  # below opset 10 they are attributes
        parts = [list(attribute(node, key, ())) for key in ("starts", "ends", "axes")]
        steps = [1]
    else:
        given = [integers(value) if value is not None else [] for value in node.inputs[1:]]
        if any(part is None for part in given):
            return None
        parts = [part or [] for part in (*given, [], [])][:3]
        steps = (given[3] or [1]) if len(given) > 3 else [1]
    starts, ends, axes = parts
    if len(starts) != 1 or len(ends) != 1 or len(axes) > 1 or steps != [1]:
        return None
    return starts[0], ends[0], axes[0] if axes else 0


def _bypass(editor: Editor, node: ir.Node, taken: list[ir.Value], axis: int) -> None:
    output = node.outputs[0]
    if len(taken) == 1:
        kept = editor.node("Identity", taken, output)
    else:
        kept = editor.node("Concat", taken, output, {"axis": axis})
    editor.replace([node], [kept], {output: kept.outputs[0]})
