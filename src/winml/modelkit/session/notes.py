"""Notes and warnings about a session, next to its results."""

from __future__ import annotations

from collections.abc import Mapping

from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target


def describe_fallback(placement: Placement) -> tuple[int, str] | None:
    """How many nodes an EP did not take, and which; None when it took all that it takes by its settings."""
    left = placement.fell_back
    return (sum(left.values()), ", ".join(f"{op} x{n}" for op, n in left.items())) if left else None


def fallback_notes(target: Target, placement: Placement) -> list[str]:
    """Nodes that the target did not take."""
    words = describe_fallback(placement)
    return [] if words is None else [f"{words[0]} nodes run on the CPU instead of `{target}`: {words[1]}"]


def dims_notes(target: Target, dims: Mapping[str, int]) -> list[str]:
    """Symbolic dimensions that got a size because the target needs one."""
    fixed = ", ".join(f"{name}={size}" for name, size in dims.items())
    return [f"symbolic dimensions were fixed for {target}: {fixed}"] if fixed else []


def simulator_notes(added: Mapping[str, str]) -> list[str]:
    """Options that were added by default because the simulator needs them."""
    return [f"provider option {k}={v} was chosen for the simulator" for k, v in added.items() if k != "backend_type"]


def saturation_notes(count: int | None) -> list[str]:
    """Weights in 8 bits on a processor that adds their products in 16."""
    if not count:
        return []
    return [
        f"the 8-bit kernels of this processor saturate, and {count} weights of the model use all 8 bits: its outputs "
        "are less accurate than on processors with VNNI; quantize it again with `winml quantize --reduce-range`"
    ]
