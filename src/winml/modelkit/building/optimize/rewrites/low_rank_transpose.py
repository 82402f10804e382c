"""Reshape + Transpose + Reshape above rank 4 -> the same with fewer dimensions.

Dimensions of size 1 vanish, and neighbours that stay neighbours become one. Where the first Reshape unfolds the
output of a Gemm, the rewrite cost 19 % on an NPU (finding npu-010), so that is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import Editor, attribute, nodes, only_use, static_shape

MIN_RANK = 5


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for transpose in nodes(model, "Transpose"):
        first = transpose.inputs[0].producer() if transpose.inputs[0] is not None else None
        last = only_use(transpose.outputs[0])
        if first is not None and last is not None and _is_pattern(first, transpose, last):
            _lower(editor, first, transpose)
    return editor.replaced


def _is_pattern(first: ir.Node, transpose: ir.Node, last: ir.Node) -> bool:
    if first.op_type != "Reshape" or last.op_type != "Reshape" or last.inputs[0] is not transpose.outputs[0]:
        return False
    maker = first.inputs[0].producer() if first.inputs[0] is not None else None
    return only_use(first.outputs[0]) is transpose and (maker is None or maker.op_type != "Gemm")


def _lower(editor: Editor, first: ir.Node, transpose: ir.Node) -> None:
    sizes = static_shape(first.outputs[0])
    if sizes is None or len(sizes) < MIN_RANK:
        return
    order = attribute(transpose, "perm", tuple(reversed(range(len(sizes)))))
    lower_sizes, lower_order = lower_rank(sizes, order)
    if len(lower_sizes) >= len(sizes):
        return
    target = editor.constant(np.array(lower_sizes, np.int64), first.outputs[0].name, "shape")
    reshape = editor.node("Reshape", [first.inputs[0], target], first.outputs[0])
    moved = editor.node("Transpose", [reshape.outputs[0]], transpose.outputs[0], {"perm": lower_order})
    editor.replace([first, transpose], [reshape, moved], {transpose.outputs[0]: moved.outputs[0]})


def lower_rank(sizes: Sequence[int], order: Sequence[int]) -> tuple[list[int], list[int]]:
    """The sizes and the order of a Transpose of the smallest rank (at least 1) that moves the same elements."""
    kept = [axis for axis in order if sizes[axis] != 1]
    rank = {axis: position for position, axis in enumerate(sorted(kept))}
    groups: list[list[int]] = []
    for axis in kept:
        if groups and rank[groups[-1][-1]] + 1 == rank[axis]:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    by_place = sorted(groups)
    lower_sizes = [int(np.prod([sizes[axis] for axis in group])) for group in by_place]
    return lower_sizes or [1], [by_place.index(group) for group in groups] or [0]
