"""A job, the closed set of ways it can end, and what everything that runs jobs can do.

An application that fails is a value, never an exception: only what was lost is worth starting again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

from winml.modelkit.core.dataclass import dataclass

Status = Literal["ok", "failed", "timeout", "lost"]
"""`lost`: the program did not end by itself; it was killed, or the machine that ran it went away."""

PYTHON = "<python>"
"""As the first word of a job: the Python that winml runs in there, wherever that is."""


@dataclass(frozen=True)
class Job:
    """A program and what it takes to run it; it is started in an empty folder of its own."""

    id: str
    argv: tuple[str, ...]
    needs: Mapping[str, int] = field(default_factory=dict)
    """Things of which a machine has so many, such as an NPU; held while the job runs."""
    timeout_s: float = 3600.0
    retries: int = 0
    """How often it is started again after it was lost."""
    env: Mapping[str, str] | None = None
    """Its environment; None is ours."""


@dataclass(frozen=True)
class Result:
    """How a job ended, and what it said."""

    job: str
    status: Status
    returncode: int | None
    """None when it was ended by us or never started."""
    output: str
    """What it wrote to stdout."""
    log: str
    """What it wrote to stderr."""
    seconds: float
    attempts: int = 1
    pids: tuple[int, ...] = ()
    """The processes it ran as, on the machine it ran on."""
    node: str | None = None
    """The machine it ran on; None is this one."""
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What the node said of itself: versions, system, cores."""


class Executor(Protocol):
    """A place where jobs run. One thread submits and waits."""

    @property
    def slots(self) -> int:
        """How many jobs run at once."""

    def check(self, job: Job) -> None:
        """Raise `UnavailableError` when no machine here ever has what a job needs."""

    def submit(self, job: Job) -> None:
        """Run a job as soon as there is room."""

    def wait(self, timeout_s: float) -> Result | None:
        """The next result; None when none came in that time."""

    def close(self) -> None:
        """End every job that runs, with all its processes; nothing is started any more."""
