"""com.microsoft.BiasGelu -> Add + Gelu, of ONNX from opset 20 on and of ONNX Runtime before."""

from __future__ import annotations

import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import MICROSOFT, Editor, nodes, opset


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    domain = "" if opset(model) >= 20 else MICROSOFT
    for node in nodes(model, "BiasGelu", MICROSOFT):
        output = node.outputs[0]
        add = editor.node("Add", node.inputs, output)
        gelu = editor.node("Gelu", [add.outputs[0]], output, domain=domain)
        editor.replace([node], [add, gelu], {output: gelu.outputs[0]})
    return editor.replaced
