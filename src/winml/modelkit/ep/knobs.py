"""What a search may choose about the options of an execution provider."""

from __future__ import annotations

from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target

OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "qnn/npu": {
        "htp_graph_finalization_optimization_mode": ("3", "1"),
        "htp_performance_mode": ("burst", "sustained_high_performance"),
        "offload_graph_io_quantization": ("0",),
        "vtcm_mb": ("8",),
    },
}
"""Options that change how fast a target is and not what it computes, with the values worth a trial."""


def knobs(target: Target) -> tuple[Knob, ...]:
    """One knob per option."""
    return tuple(
        Knob(f"ep.{name}", tuple(Level(value, {"session.ep_options": {name: value}}) for value in values), prior=-2.0)
        for name, values in OPTIONS.get(str(target), {}).items()
    )
