"""AveragePool whose window holds the whole input -> GlobalAveragePool.

EfficientNet is exported with a window as wide as it has channels, far larger than the image that is left. QNN refuses
such a window after the layout was changed for it, and then no EP can run the node (finding npu-110).
"""

from __future__ import annotations

import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import Editor, attribute, nodes, static_shape


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for node in nodes(model, "AveragePool"):
        sizes = static_shape(node.inputs[0])
        if sizes is not None and _whole(node, sizes[2:]):
            made = editor.node("GlobalAveragePool", [node.inputs[0]], node.outputs[0])
            editor.replace([node], [made], {node.outputs[0]: made.outputs[0]})
    return editor.replaced


def _whole(node: ir.Node, sizes: tuple[int, ...]) -> bool:
    """Whether the output is one mean over all of the input: nothing is padded, and there is one window."""
    kernel = attribute(node, "kernel_shape", ())
    ones = [1] * len(sizes)
    plain = (
        not any(attribute(node, "pads", ()))
        and attribute(node, "auto_pad", "NOTSET") in ("NOTSET", "VALID")
        and list(attribute(node, "dilations", ones)) == ones
    )
    larger = any(window > size for window, size in zip(kernel, sizes, strict=True))
    # Rounded up, a window that is too large starts once, and what lies outside does not count.
    once = all(
        window >= size and window - size < step
        for window, size, step in zip(kernel, sizes, attribute(node, "strides", ones), strict=True)
    )
    return plain and once and (not larger or attribute(node, "ceil_mode", 0) == 1)
