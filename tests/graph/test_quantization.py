"""How a model is quantized, by the nodes it has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from winml.modelkit.core.values import to_json
from winml.modelkit.graph.quantization import quantization_of

SCALE = {"s": np.ones((), np.float32), "z": np.zeros((), np.uint8)}
WEIGHTS = {"w": np.ones((3, 3), np.uint8), "f": np.ones((3, 3), np.float32)}


def graph(nodes: str) -> str:
    return f"g (float[3,3] x, uint8[3,3] u, int64[3] i) => (float[3,3] y) {{ {nodes} }}"


PAIR = "a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)"
EDGES = "a = QuantizeLinear(x, s, z)  c = QLinearMatMul(a, s, z, w, s, z, s, z)  y = DequantizeLinear(c, s, z)"
DYNAMIC = "a, t, o = DynamicQuantizeLinear(x)  m = MatMulInteger(a, w, o, z)  y = Cast<to = 1>(m)"
NBITS = "y = com.microsoft.MatMulNBits<K = 3, N = 3, bits = 4, block_size = 16>(x, w, s)"


@pytest.mark.parametrize(
    ("nodes", "kind"),
    [
        ("y = MatMul(x, f)", "none"),
        (f"{PAIR}  d = DequantizeLinear(w, s, z)  y = MatMul(b, d)", "qdq"),
        (f"{PAIR}  y = MatMul(b, f)", "qdq"),
        ("b = DequantizeLinear(u, s, z)  y = MatMul(b, f)", "qdq"),
        ("a = MatMul(x, f)  y = QuantizeLinear(a, s, z)", "qdq"),
        ("a = QuantizeLinear(x, s, z)  p = Transpose(a)  y = DequantizeLinear(p, s, z)", "qdq"),
        (EDGES, "qoperator"),
        ("a = QuantizeLinear(x, s, z)  c = com.microsoft.QGemm(a, s, z, w, s, z)  y = Identity(c)", "qoperator"),
        (DYNAMIC, "dynamic"),
        (f"{DYNAMIC}  e = Gather(w, i)  g = DequantizeLinear(e, s, z)", "dynamic"),
        (NBITS, "weight-only"),
        ("d = DequantizeLinear(w, s, z)  y = MatMul(x, d)", "weight-only"),
        ("q = QuantizeLinear(f, s, z)  d = DequantizeLinear(q, s, z)  y = MatMul(x, d)", "weight-only"),
        ("k = Constant<value = uint8[1] {1}>()  d = DequantizeLinear(k, s, z)  y = MatMul(x, d)", "weight-only"),
        ("e = Gather(w, i)  y = DequantizeLinear(e, s, z)", "weight-only"),
        (f"{EDGES}  v = QuantizeLinear(x, s, z)  r = DequantizeLinear(v, s, z)", "mixed"),
        (f"{EDGES}  {NBITS.replace('y =', 'n =')}", "mixed"),
    ],
)
def test_the_nodes_say_the_kind(parse: Any, nodes: str, kind: str) -> None:
    assert quantization_of(parse(graph(nodes), **SCALE, **WEIGHTS)).kind == kind


def test_the_evidence_counts_nodes(parse: Any) -> None:
    nodes = f"{PAIR}  d = DequantizeLinear(w, s, z)  e = DequantizeLinear(w, s, z)  h = MatMul(b, d)  y = MatMul(h, e)"
    assert to_json(quantization_of(parse(graph(nodes), **SCALE, **WEIGHTS))) == {
        "kind": "qdq",
        "evidence": {
            "activation_quantize": 1,
            "activation_dequantize": 1,
            "weight_dequantize": 2,
            "quantized_operators": 0,
            "dynamic_operators": 0,
            "weight_operators": 0,
        },
    }


def test_weights_outside_a_branch_are_weights_inside_it(parse: Any) -> None:
    model = parse(
        """g (float[3,3] x, bool c) => (float[3,3] y) { y = If(c) <
            then_branch = t () => (float[3,3] a) { d = DequantizeLinear(w, s, z)  a = MatMul(x, d) },
            else_branch = e () => (float[3,3] b) { b = Identity(x) }
        > }""",
        **SCALE,
        **WEIGHTS,
    )
    assert quantization_of(model).kind == "weight-only"
