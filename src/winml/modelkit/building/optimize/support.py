"""Which operators a pass may make for a target; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable

from winml.modelkit.core.target import Target
from winml.modelkit.knowledge import operators


def find_unknown(target: Target, ops: Iterable[str]) -> list[str]:
    """The operators among `ops` of which nobody has asked the EP of a target: it may support them or not."""
    return (
        [] if target.ep == "cpu" else sorted(op for op in ops if operators.takes(target.ep, target.device, op) is None)
    )


def find_unsupported(target: Target | None, ops: Iterable[str]) -> list[str]:
    """The operators among `ops` that must not be made for a target.

    Without a target nothing is refused. ONNX Runtime's CPU provider runs whatever ONNX Runtime makes. For another EP an
    operator must be known to be supported; where nothing is known of the EP, operators of ONNX itself pass.
    """
    if target is None or target.ep == "cpu":
        return []
    if operators.load_table(target.ep, target.device) is None:
        return sorted(op for op in ops if ":" in op)
    return sorted(op for op in ops if operators.takes(target.ep, target.device, op) is not True)
