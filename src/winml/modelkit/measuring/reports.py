"""What worker processes answer while two arms are compared (`measuring/arms.py`)."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.distance import Distance
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.values import key
from winml.modelkit.core.verdict import Clock


@dataclass(frozen=True, kw_only=True)
class Samples:
    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]

    def on(self, clock: Clock) -> tuple[int, ...]:
        """Times; a probe says nothing of memory, because processes that probe are shared."""
        return self.cpu_ns if clock == "cpu" else self.wall_ns


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What the machine did while arms were measured."""

    load_before: float | None
    load_after: float | None
    pressure_pct: float | None
    priority: str | None
    """How the priority was raised; null where it was not."""


@dataclass(frozen=True, kw_only=True)
class RoundReport:
    """A round with both arms alive in one process."""

    order: tuple[int, int]
    """The arm that was opened and run first, and the other."""
    arms: tuple[Samples, Samples]
    conditions: Conditions = key(inline=True)


@dataclass(frozen=True, kw_only=True)
class BlockReport(Samples):
    """Runs of an arm that stays open."""

    load_after: float | None
    pressure_pct: float | None
    peak_bytes: tuple[int, ...] | None = None
    """The most memory the process had until now; only where memory is compared."""


@dataclass(frozen=True, kw_only=True)
class Port:
    """An input or output of a model."""

    name: str
    type: str
    rank: int


@dataclass(frozen=True, kw_only=True)
class Probe(Samples):
    """A few runs of an arm at ordinary priority."""

    placement: Placement | None
    """Null where the program that runs it does not say."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    shapes: tuple[tuple[str | int, ...], ...]
    """Type and dimensions of every input it ran on."""
    environment: Environment
    tokens: tuple[int, ...] = ()
    """What a folder that generates text said, of all sequences."""


@dataclass(frozen=True, kw_only=True)
class Distances:
    """How far outputs are apart, by position."""

    outputs: tuple[Distance, ...]
