"""A recorded sweep: medians per session for each config of one model on one target, where raw samples are gone."""

from __future__ import annotations

from typing import Annotated, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.values import AtLeast, AtMost, MoreThan, Names, Text, key

Order = Literal["sequential", "interleaved", "unknown"]
Claim = Literal["faster", "slower", "neutral"]
Milliseconds = Annotated[float, MoreThan(0), AtMost(1e9)]


@dataclass(frozen=True)
class Config:
    """One config of a sweep with the median of each of its sessions, in the order they ran."""

    id: Text
    opset: Annotated[int, AtLeast(1)] | None = None
    passes: Names | None = None
    """Passes switched on; null when that was not recorded."""
    sessions_ms: tuple[Milliseconds, ...] = ()

    def equals(self, other: Config) -> bool:
        """Whether both are recorded as the same config; what was not recorded is never the same."""
        known = None not in (self.opset, other.opset, self.passes, other.passes)
        return known and self.opset == other.opset and set(self.passes or ()) == set(other.passes or ())


@dataclass(frozen=True)
class Sweep:
    """All configs of one model on one target, in the order they were measured."""

    order: Order
    configs: tuple[Config, ...]
    measured_on: Text | None = key(omit=True)

    def __post_init__(self) -> None:
        if len({c.id for c in self.configs}) != len(self.configs):
            raise RequestError("`configs` must have unique ids")

    def config(self, name: str) -> Config | None:
        return next((c for c in self.configs if c.id == name), None)


@dataclass(frozen=True)
class RecordedPair:
    """Two configs of a recorded sweep and what is claimed of them: evidence where raw samples are gone."""

    base: Text
    candidate: Text
    claim: Claim
    sweep: Sweep

    def __post_init__(self) -> None:
        for side, name in (("base", self.base), ("candidate", self.candidate)):
            if self.sweep.config(name) is None:
                raise RequestError(f"`{side}` names no config of the sweep: {name!r}")
