"""Events of `winml debug` and of quantizing with an eye on accuracy."""

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
    """An attempt begins, with some layers in float, or with 16-bit activations."""

    number: int
    kept: int
    raised: bool = False


@dataclass(frozen=True, kw_only=True)
class SensitivityStep(Event):
    """A variant begins, after `done` of `total`; or a step before the first."""

    label: str
    done: int
    total: int
