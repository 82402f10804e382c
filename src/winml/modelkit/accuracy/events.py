"""Events of `winml debug`."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True)
class DebugStep:
    """A step begins: `what` is done, after `done` of `total` steps."""

    what: str
    done: int
    total: int
