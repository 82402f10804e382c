"""Events of `winml debug`."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event


@dataclass(frozen=True)
class DebugStep(Event):
    """A step begins: `what` is done, after `done` of `total` steps."""

    what: str
    done: int
    total: int


@dataclass(frozen=True)
class MendAttempt(Event):
    """An attempt begins, with some layers in float."""

    number: int
    kept: int
