"""What a search may choose about optimizing."""

from __future__ import annotations

from winml.modelkit.building.optimize import table
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target

OPSETS = (17, 18, 19, 20, 21, 22, 23)
"""What the converter reaches from most models; one that it does not reach is a failed trial with the reason."""
GROUPS = ("basic", "extended", "all")
"""Levels as groups. What a group does not fuse before the model is quantized the runtime fuses afterwards."""


def group(level: str, target: Target) -> tuple[str, ...]:
    """The passes of a level that apply to a target."""
    return resolve(level=level, target=target).passes


def knobs(target: Target) -> tuple[Knob, ...]:
    """Passes in groups and one by one, and the opset."""
    groups = tuple(Level(name, {"optimize.passes": list(group(name, target))}) for name in GROUPS)
    single = tuple(
        Knob(f"optimize.{row.name}", (Level("on", adds={"optimize.passes": (row.name,)}),))
        for row in table.available()
        if row.level != "basic"
    )
    opsets = tuple(Level(str(opset), {"optimize.opset": opset}) for opset in OPSETS)
    return (Knob("optimize.passes", groups, prior=2.0), Knob("optimize.opset", opsets, prior=-1.0), *single)


def sort_passes(passes: list[str]) -> list[str]:
    """Passes in the order they run."""
    return [row.name for row in table.PASSES if row.name in passes]


def single_pass(knob: str) -> str | None:
    """The pass that a knob switches on; None for knobs of another kind."""
    name = knob.removeprefix("optimize.")
    return name if name in table.BY_NAME else None
