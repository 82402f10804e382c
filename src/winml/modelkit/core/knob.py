"""A knob: something about a build or a session that can be chosen, declared beside the code that owns it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from winml.modelkit.core.dataclass import dataclass

DEFAULT = "default"
"""The level that leaves everything as it is; every knob has it first."""


@dataclass(frozen=True)
class Level:
    """One setting of a knob, as what it writes into a build config."""

    name: str
    sets: Mapping[str, Any] = field(default_factory=dict)
    """Config keys, with dots into sections, and their values; an object is merged into the one that is there."""
    adds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Config keys of lists, and what is added to them."""
    needs: tuple[str, ...] = ()
    """What must be available: `data`."""
    ops: tuple[str, ...] = ()
    """Operators that a graph must have; none for a level that is for every graph."""


@dataclass(frozen=True)
class Knob:
    """Levels of which a config has one."""

    name: str
    levels: tuple[Level, ...]
    """Without the default."""
    when: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Config keys and the values with which the knob has an effect; with others it stays at its default."""
    prior: float = 0.0
    """How much it usually matters: knobs that matter more are tried first."""
    narrows: bool = False
    """Whether its levels take back some of what another knob changed: they are tried where that was too inaccurate."""

    def level(self, name: str) -> Level:
        return Level(DEFAULT) if name == DEFAULT else next(level for level in self.levels if level.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        return (DEFAULT, *(level.name for level in self.levels))
