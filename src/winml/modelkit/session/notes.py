"""What a reader must know about a session besides its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from winml.modelkit.core.target import Target


def left_on_cpu(target: Target, placement: dict[str, Any]) -> list[str]:
    """Nodes that the target did not take."""
    words = left_words(placement)
    return [] if words is None else [f"{words[0]} nodes run on the CPU instead of `{target}`: {words[1]}"]


def left_words(placement: dict[str, Any]) -> tuple[int, str] | None:
    """How many nodes an EP did not take, and which; None when it took all that it takes by its settings."""
    if not placement["fallback"]:
        return None
    kept = placement.get("by_setting", {})
    left = {op: n - kept.get(op, 0) for op, n in placement["cpu_ops"].items() if n > kept.get(op, 0)}
    return sum(left.values()), ", ".join(f"{op} x{n}" for op, n in left.items())


def fixed_dims(target: Target, report: dict[str, Any]) -> list[str]:
    """Symbolic dimensions that got a size because the target needs one."""
    fixed = ", ".join(f"{name}={size}" for name, size in report["fixed_dims"].items())
    return [f"symbolic dimensions were fixed for {target}: {fixed}"] if fixed else []


def simulator_options(report: dict[str, Any]) -> list[str]:
    """Options that nobody asked for and the simulator needs."""
    chosen = {k: v for k, v in report["added_options"].items() if k != "backend_type"}
    return [f"provider option {k}={v} was chosen for the simulator" for k, v in chosen.items()]


def saturated_weights(report: Mapping[str, Any]) -> list[str]:
    """Weights in 8 bits on a processor that adds their products in 16."""
    count = report["weights_at_risk"]
    if not count:
        return []
    return [
        f"the 8-bit kernels of this processor saturate, and {count} weights of the model use all 8 bits: its outputs "
        "are less exact here than on processors with VNNI; quantize it again with `--reduce-range`"
    ]
