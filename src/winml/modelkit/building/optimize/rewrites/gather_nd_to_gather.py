"""GatherND by constant indices -> Reshape + Gather.

Attention masks are exported as a GatherND over all positions (batch, key); QNN does not take it on the mask's types.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import Editor, attribute, constant, nodes, static_shape


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for node in nodes(model, "GatherND"):
        sizes, indices = static_shape(node.inputs[0]), constant(node.inputs[1])
        if sizes and indices is not None and attribute(node, "batch_dims", 0) == 0:
            _replace(editor, node, sizes, indices)
    return editor.replaced


def _replace(editor: Editor, node: ir.Node, sizes: tuple[int, ...], indices: npt.NDArray[np.int64]) -> None:
    output, depth = node.outputs[0], indices.shape[-1]
    rows, rest = sizes[:depth], sizes[depth:]
    positive = np.where(indices < 0, indices + np.array(rows), indices)
    flat = np.ravel_multi_index(tuple(np.moveaxis(positive, -1, 0)), rows)
    target = editor.constant(np.array([int(np.prod(rows)), *rest], np.int64), output.name, "rows")
    picked = editor.constant(flat.astype(np.int64), output.name, "indices")
    reshape = editor.node("Reshape", [node.inputs[0], target], output)
    gather = editor.node("Gather", [reshape.outputs[0], picked], output, {"axis": 0})
    editor.replace([node], [reshape, gather], {output: gather.outputs[0]})
