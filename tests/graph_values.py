"""Facts of graphs for tests."""

from __future__ import annotations

from typing import Any

from winml.modelkit.graph.description import GraphFacts, MACs, Quantization


def make_facts(ops: dict[str, int], **changes: Any) -> GraphFacts:
    """A graph of these operators."""
    nodes = sum(ops.values())
    facts: dict[str, Any] = {
        "nodes": nodes,
        "ops": ops,
        "opsets": {"ai.onnx": 17},
        "ir_version": 10,
        "producer_name": "tests",
        "producer_version": "",
        "inputs": (),
        "outputs": (),
        "dynamic_axes": {},
        "conv_share": ops.get("Conv", 0) / nodes if nodes else None,
        "parameters": 0,
        "initializer_bytes": 0,
        "file_bytes": None,
        "macs": MACs(macs=None, unknown_nodes=0, assumed={}),
        "quantized": Quantization(kind="none", evidence={}),
        "float_types": {},
        "compiled_for": (),
        "contrib_ops": (),
        "external_data": False,
    }
    return GraphFacts(**{**facts, **changes})
