"""What a search may choose about compiling."""

from __future__ import annotations

from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog


def knobs(target: Target) -> tuple[Knob, ...]:
    """Whether the model becomes an EP context, on EPs that can do that; tried last, because it changes no graph."""
    if not catalog.BY_NAME[target.ep].can_compile:
        return ()
    return (Knob("compile", (Level("ort", {"compile": {"compiler": "ort"}}),), prior=-3.0),)
