"""What a reader must know about a session besides its results."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.target import Target


def left_on_cpu(target: Target, placement: dict[str, Any]) -> list[str]:
    """Nodes that the target did not take."""
    if not placement["fallback"]:
        return []
    ops = ", ".join(f"{op} x{n}" for op, n in placement["cpu_ops"].items())
    return [f"{sum(placement['cpu_ops'].values())} nodes run on the CPU instead of `{target}`: {ops}"]


def fixed_dims(target: Target, report: dict[str, Any]) -> list[str]:
    """Symbolic dimensions that got a size because the target needs one."""
    fixed = ", ".join(f"{name}={size}" for name, size in report["fixed_dims"].items())
    return [f"symbolic dimensions were fixed for {target}: {fixed}"] if fixed else []


def simulator_options(report: dict[str, Any]) -> list[str]:
    """Options that nobody asked for and the simulator needs."""
    chosen = {k: v for k, v in report["added_options"].items() if k != "backend_type"}
    return [f"provider option {k}={v} was chosen for the simulator" for k, v in chosen.items()]
