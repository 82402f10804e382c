"""com.microsoft.FusedConv -> Conv (+ Add) + activation: only ONNX Runtime's own providers take the fused operator."""

from __future__ import annotations

import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites import activation
from winml.modelkit.building.optimize.rewrites.editing import MICROSOFT, Editor, attribute, nodes, opset

_FUSED = ("activation", "activation_params")


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for node in nodes(model, "FusedConv", MICROSOFT):
        name = attribute(node, "activation", "")
        parameters = attribute(node, "activation_params", ())
        if not name or (activation.is_known(name, parameters) and (name != "Clip" or opset(model) >= 11)):
            _unfuse(editor, node, name, parameters)
    return editor.replaced


def _unfuse(editor: Editor, node: ir.Node, name: str, parameters: tuple[float, ...]) -> None:
    output = node.outputs[0]
    data, weight, bias, summand = (*node.inputs, None, None)[:4]
    inputs = [data, weight] if bias is None else [data, weight, bias]
    kept = {key: value.value for key, value in node.attributes.items() if key not in _FUSED}
    new = [editor.node("Conv", inputs, output, kept)]
    if summand is not None:
        new.append(editor.node("Add", [new[-1].outputs[0], summand], output))
    if name:
        new.append(activation.node(editor, name, parameters, new[-1].outputs[0], output))
    editor.replace([node], new, {output: new[-1].outputs[0]})
