"""Events that commands report while they work: each is a value of its own class.

Every command has a closed set of events; those that several commands have are here, the others beside the function that
reports them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

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


@dataclass(frozen=True, kw_only=True)
class HubWaiting(Event):
    """What is awaited of the Hugging Face hub; it comes from a worker as JSON, by its name."""

    event: Literal["hub"] = "hub"
    repo: str
    endpoint: str
    doing: Literal["asking", "fetching"]
    limit_s: float | None = None
    """When the answer counts as missing."""
    done_bytes: int | None = None
    """What has arrived so far."""
    total_bytes: int | None = None

    @property
    def words(self) -> str:
        if self.doing == "asking":
            limit = "" if self.limit_s is None else f" (at most {self.limit_s:.0f} s)"
            return f"asking {self.endpoint} about {self.repo}{limit}"
        size = "" if not self.total_bytes else f" ({self.total_bytes / 2**20:.1f} MiB)"
        return f"fetching {self.repo}{size} from {self.endpoint}"


@dataclass(frozen=True)
class ExportNeeded(Event):
    """A Hugging Face model is not in the cache and is exported first."""

    model: str
