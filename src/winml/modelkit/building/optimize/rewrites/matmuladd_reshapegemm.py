"""MatMul + Add of constants on rank 3 and more -> Reshape + Gemm + Reshape."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import Editor, nodes, only_use, shape


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for matmul in nodes(model, "MatMul"):
        add = only_use(matmul.outputs[0])
        if add is not None and add.op_type == "Add" and not add.domain:
            _fuse(editor, matmul, add)
    return editor.replaced


def _fuse(editor: Editor, matmul: ir.Node, add: ir.Node) -> None:
    data, weight = matmul.inputs
    bias = next((value for value in add.inputs if value is not matmul.outputs[0]), None)
    sizes, weight_sizes = shape(data), _initializer_shape(weight)
    if sizes is None or len(sizes) < 3 or len(weight_sizes) != 2 or _initializer_shape(bias) != weight_sizes[1:]:
        return
    if sum(size is None for size in sizes[:-1]) > 1:
        return
    output = add.outputs[0]
    rows = editor.constant(np.array([-1, weight_sizes[0]], np.int64), output.name, "rows")
    leading = [-1 if size is None else size for size in sizes[:-1]]
    back = editor.constant(np.array([*leading, weight_sizes[1]], np.int64), output.name, "shape")
    flat = editor.node("Reshape", [data, rows], output)
    gemm = editor.node("Gemm", [flat.outputs[0], weight, bias], output)
    unfolded = editor.node("Reshape", [gemm.outputs[0], back], output)
    editor.replace([matmul, add], [flat, gemm, unfolded], {output: unfolded.outputs[0]})


def _initializer_shape(value: ir.Value | None) -> tuple[int, ...]:
    """The sizes of a floating point initializer; none for anything else."""
    if value is None or value.const_value is None or value.is_graph_input():
        return ()
    tensor = value.const_value
    return tuple(tensor.shape.numpy()) if tensor.dtype.is_floating_point() else ()
