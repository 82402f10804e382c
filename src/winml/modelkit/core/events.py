"""Events that commands report while they work: each is a value of its own class.

Every command has a closed set of events; those that several commands have are here, the others beside the function that
reports them.
"""

from __future__ import annotations

from collections.abc import Callable

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Target


@dataclass(frozen=True)
class Event:
    """Something happened."""


OnEvent = Callable[[Event], None]


def ignore(event: Event) -> None:
    """For callers that need no events."""


@dataclass(frozen=True)
class TargetChosen(Event):
    """The target that a request resolved to on this machine."""

    target: Target


@dataclass(frozen=True)
class ExportNeeded(Event):
    """A Hugging Face model is not in the cache and is exported first."""

    model: str
