"""A job, the closed set of ways it can end, and the protocol of everything that runs jobs.

A program that fails is a value, never an exception: only lost jobs are started again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

from winml.modelkit.core.dataclass import dataclass

Status = Literal["ok", "failed", "timeout", "lost"]
"""`lost`: the program did not end by itself; it was killed, or its machine disappeared."""

PYTHON = "<python>"
"""As the first argument of a job: the Python that winml runs in on that machine."""


@dataclass(frozen=True)
class Job:
    """A program and what it needs to run; it is started in an empty folder of its own."""

    id: str
    argv: tuple[str, ...]
    needs: Mapping[str, int] = field(default_factory=dict)
    """Counted resources of a machine, such as an NPU; held while the job runs."""
    timeout_s: float = 3600.0
    retries: int = 0
    """How many times it is started again after it was lost."""
    env: Mapping[str, str] | None = None
    """Its environment; None is ours."""


@dataclass(frozen=True)
class Result:
    """How a job ended, and its output."""

    job: str
    status: Status
    returncode: int | None
    """None when we ended it or it never started."""
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
    """What the node reported about itself: versions, system, cores."""


class Executor(Protocol):
    """A place where jobs run. One thread submits and waits."""

    @property
    def slots(self) -> int:
        """How many jobs run in parallel."""

    def check(self, job: Job) -> None:
        """Raise `UnavailableError` when no machine can ever provide what a job needs."""

    def submit(self, job: Job) -> None:
        """Run a job as soon as there is room."""

    def wait(self, timeout_s: float) -> Result | None:
        """The next result; None when there was none in that time."""

    def close(self) -> None:
        """End every running job with all its processes; no more jobs are started."""
