"""com.microsoft.SkipLayerNormalization -> Add (+ Add) + LayerNormalization: QNN takes only the parts."""

from __future__ import annotations

import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import MICROSOFT, Editor, attribute, nodes


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for node in nodes(model, "SkipLayerNormalization", MICROSOFT):
        mean, inverse = (*node.outputs, None, None, None)[1:3]
        if not any(value is not None and (value.uses() or value.is_graph_output()) for value in (mean, inverse)):
            _unfuse(editor, node)
    return editor.replaced


def _unfuse(editor: Editor, node: ir.Node) -> None:
    output = node.outputs[0]
    data, skip, gamma, beta, bias = (*node.inputs, None, None)[:5]
    new = [editor.node("Add", [data, skip], output)]
    if bias is not None:
        new.append(editor.node("Add", [new[-1].outputs[0], bias], output))
    total = new[-1].outputs[0]
    epsilon = float(attribute(node, "epsilon", 1e-12))
    parameters = [gamma] if beta is None else [gamma, beta]
    new.append(editor.node("LayerNormalization", [total, *parameters], output, {"axis": -1, "epsilon": epsilon}))
    replaced = {output: new[-1].outputs[0]}
    if len(node.outputs) > 3:
        replaced[node.outputs[3]] = total
    editor.replace([node], new, replaced)
