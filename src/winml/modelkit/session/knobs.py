"""What a search may choose about opening a session."""

from __future__ import annotations

from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target
from winml.modelkit.session.generation.runtimes import choose_runtime

DISABLED = "optimization.disable_specified_optimizers"
_THREADS = Knob("session.threads", (Level("1", {"session.threads": 1}),), prior=-2.0)


def decoder_knobs(target: Target) -> tuple[Knob, ...]:
    """What can be chosen for a model that generates text: the program that runs it, and threads of the CPU."""
    found = []
    if choose_runtime(target).name == "genai":
        found.append(Knob("session.runtime", (Level("onnxruntime", {"session.runtime": "onnxruntime"}),), prior=-1.0))
    return (*found, *([_THREADS] if target.ep == "cpu" else []))


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
    return (level, nchwc, _THREADS)
