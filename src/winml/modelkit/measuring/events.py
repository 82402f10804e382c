"""Events of comparisons; searches measure the same way."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event


@dataclass(frozen=True)
class ArmBuilding(Event):
    """An arm is a config, which is built first."""

    label: str


@dataclass(frozen=True)
class BaseProbing(Event):
    label: str


@dataclass(frozen=True)
class CandidateTrying(Event):
    label: str
    number: int
    total: int


@dataclass(frozen=True)
class CandidateConfirming(Event):
    """A kept candidate is measured again on fresh rounds."""

    label: str


@dataclass(frozen=True)
class RoundsStarted(Event):
    """Two arms are measured until there is a verdict, which needs `least` rounds and takes no more than `most`."""

    least: int
    most: int
    seconds: float
    """No round begins after this time."""


@dataclass(frozen=True)
class RoundDone(Event):
    number: int


@dataclass(frozen=True)
class CalibrationStarted(Event):
    """A/A rounds of the base are not in the cache and are measured."""

    rounds: int


@dataclass(frozen=True)
class CalibrationRoundDone(Event):
    """An A/A round of the base."""

    number: int
