"""com.microsoft.FusedGemm -> Gemm + activation."""

from __future__ import annotations

import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites import activation
from winml.modelkit.building.optimize.rewrites.editing import MICROSOFT, Editor, attribute, nodes, opset

_PARAMETERS = ("activation_alpha", "activation_beta")


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for node in nodes(model, "FusedGemm", MICROSOFT):
        name = attribute(node, "activation", "")
        parameters = [attribute(node, key, None) for key in _PARAMETERS]
        given = [float(value) for value in parameters if value is not None]
        if activation.is_known(name, given) and (name != "Clip" or opset(model) >= 11):
            _unfuse(editor, node, name, given)
    return editor.replaced


def _unfuse(editor: Editor, node: ir.Node, name: str, parameters: list[float]) -> None:
    output = node.outputs[0]
    kept = {key: value.value for key, value in node.attributes.items() if not key.startswith("activation")}
    gemm = editor.node("Gemm", node.inputs, output, kept)
    act = activation.node(editor, name, parameters, gemm.outputs[0], output)
    editor.replace([node], [gemm, act], {output: act.outputs[0]})
