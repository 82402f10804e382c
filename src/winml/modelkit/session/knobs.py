"""What a search may choose about opening a session."""

from __future__ import annotations

from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target

DISABLED = "optimization.disable_specified_optimizers"


def knobs(target: Target) -> tuple[Knob, ...]:
    """What the runtime does to the graph, and threads where the runtime's own are used."""
    level = Knob(
        "session.optimization_level",
        (
            Level("extended", {"session.optimization_level": "extended"}),
            Level("basic", {"session.optimization_level": "basic"}),
        ),
    )
    if target.ep != "cpu":
        return (level,)
    nchwc = Knob(
        "session.nchwc",
        (Level("off", {"session.config_entries": {DISABLED: "NchwcTransformer"}}),),
        when={"session.optimization_level": ("all",)},
    )
    return (level, nchwc, Knob("session.threads", (Level("1", {"session.threads": 1}),), prior=-2.0))
