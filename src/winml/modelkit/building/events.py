"""What a build tells of while it works: stages that begin, how far they are, and how they end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winml.modelkit.core.events import Event


@dataclass(frozen=True)
class StageStarted(Event):
    """A stage begins, or is looked up."""

    stage: str
    hit: bool = False
    """Whether the cache has its result."""


@dataclass(frozen=True)
class StageStep(Event):
    """What the running stage is at, and how far it is where that can be counted."""

    name: str
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class StageDone(Event):
    """A stage has ended well."""

    stage: str
    hit: bool
    seconds: float
    """How long it took when it ran, which may have been in an earlier build."""


@dataclass(frozen=True)
class PrecisionGivenUp(Event):
    """An artifact is no good on its target, and the build begins again at another precision."""

    precision: str
    then: str
    reason: str


def step_of(event: Any) -> StageStep:
    """What a worker tells of a stage, until its events are values."""
    if isinstance(event, StageStep):
        return event
    known = event if isinstance(event, dict) else vars(event)
    name = next((known[k] for k in ("name", "pass", "op", "step", "event") if known.get(k)), type(event).__name__)
    return StageStep(str(name), known.get("done"), known.get("total"))
