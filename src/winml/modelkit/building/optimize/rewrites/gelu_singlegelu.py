"""GELU by Erf or Tanh, however its factors are ordered -> one Gelu."""

from __future__ import annotations

import math
from collections import Counter

import onnx_ir as ir

from winml.modelkit.building.optimize.rewrites.editing import Editor, nodes, number, only_use

_TOLERANCE = 1e-3
"""Constants are compared relative to this: exporters write them with three to eight digits."""


def rewrite(model: ir.Model) -> bool:
    editor = Editor(model)
    for kind in ("Erf", "Tanh"):
        for node in nodes(model, kind):
            _fuse(editor, node)
    return editor.replaced


def _fuse(editor: Editor, inner: ir.Node) -> None:
    source = _erf_source(inner.inputs[0]) if inner.op_type == "Erf" else _tanh_source(inner.inputs[0])
    plus_one = only_use(inner.outputs[0])
    if source is None or plus_one is None or plus_one.op_type != "Add":
        return
    if not any(_near(number(value), 1.0) for value in plus_one.inputs):
        return
    last = _last_factor(plus_one, source)
    if last is None:
        return
    output = last.outputs[0]
    approximate = {"approximate": "tanh"} if inner.op_type == "Tanh" else {}
    gelu = editor.node("Gelu", [source], output, approximate)
    editor.replace([last], [gelu], {output: gelu.outputs[0]})


def _near(value: float | None, wanted: float) -> bool:
    return value is not None and math.isclose(value, wanted, rel_tol=_TOLERANCE)


def _last_factor(plus_one: ir.Node, source: ir.Value) -> ir.Node | None:
    """The node that makes `source / 2 * (1 + ...)`, if there is one."""
    node = plus_one
    for _ in range(2):
        following = only_use(node.outputs[0])
        if following is None or following.op_type not in ("Mul", "Div"):
            return None
        node = following
        scale, values = _factors(node.outputs[0], stop=plus_one.outputs[0])
        if values == Counter([source, plus_one.outputs[0]]) and _near(scale, 0.5):
            return node
    return None


def _factors(value: ir.Value, *, stop: ir.Value | None = None) -> tuple[float, Counter[ir.Value]]:
    """A product as its constant factor and the values in it, each with its power."""
    known = number(value)
    if known is not None:
        return known, Counter()
    node = value.producer()
    if node is None or value is stop or node.domain:
        return 1.0, Counter([value])
    left, right = (*node.inputs, None)[:2]
    if left is None or right is None:
        return 1.0, Counter([value])
    divisor = number(right)
    if node.op_type == "Div" and divisor:
        scale, values = _factors(left, stop=stop)
        return scale / divisor, values
    if node.op_type == "Pow" and divisor in (2.0, 3.0):
        scale, values = _factors(left, stop=stop)
        power = int(divisor)
        return scale**power, Counter({item: count * power for item, count in values.items()})
    if node.op_type == "Mul":
        (one, first), (two, second) = _factors(left, stop=stop), _factors(right, stop=stop)
        return one * two, first + second
    return 1.0, Counter([value])


def _erf_source(value: ir.Value | None) -> ir.Value | None:
    """x of `x / sqrt 2`."""
    scale, values = (0.0, Counter[ir.Value]()) if value is None else _factors(value)
    return next(iter(values)) if _near(scale, math.sqrt(0.5)) and sum(values.values()) == 1 else None


def _tanh_source(value: ir.Value | None) -> ir.Value | None:
    """x of `sqrt(2 / pi) * (x + 0.044715 x^3)` or of the same with x taken out of the bracket."""
    scale, values = (0.0, Counter[ir.Value]()) if value is None else _factors(value)
    if not _near(scale, math.sqrt(2 / math.pi)):
        return None
    bracket = next((v for v in values if (maker := v.producer()) is not None and maker.op_type == "Add"), None)
    if bracket is None or values[bracket] != 1:
        return None
    outside = values - Counter([bracket])
    maker = bracket.producer()
    assert maker is not None
    terms = [_factors(term) for term in maker.inputs if term is not None]
    linear, cubic = sorted(terms, key=lambda term: sum(term[1].values()))
    source = next(iter(cubic[1]), None)
    if source is None or not _near(linear[0], 1.0) or not _near(cubic[0], 0.044715):
        return None
    powers = (Counter({source: 1}), Counter({source: 3}))
    return source if (linear[1] + outside, cubic[1] + outside) == powers else None
