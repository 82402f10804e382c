"""Where a reviewer runs the commands of a contribution again: in a sandbox, or without one only on request."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.support.commands import DEFAULT_TIMEOUT_S, Commands
from winml.modelkit.support.model import SupportModel, hub_cache
from winml.modelkit.worker.sandbox import Room, RoomLimits, Sandbox, find_sandbox, memory_limit

FOLDER = "again"
"""Where commands run, in a folder that also holds their cache."""
_GRACE_S = 30.0
"""How much later than ours the sandbox's own clock ends a command."""
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
"""Without a network, only the hub's cache is used."""


@dataclass(frozen=True, kw_only=True)
class SandboxLimits:
    memory_bytes: int
    processes: int
    """Threads count."""
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class SandboxUse:
    """The sandbox in which commands were run again, and its limits."""

    kind: Literal["bwrap", "unshare", "none"]
    limits: SandboxLimits | None


@dataclass(frozen=True)
class ReviewPlace:
    """Where commands are run again."""

    timeout_s: float | None
    sandbox: Sandbox | None
    """None: no sandbox, as requested."""
    limits: RoomLimits | None

    def commands(self, model: SupportModel, name: Path, *, targets: tuple[str, ...]) -> Commands:
        """Commands on a model in an empty folder, with an empty cache."""
        folder, cache, private = name / FOLDER, name / "cache", name / "private"
        for path in (folder, cache, private):
            path.mkdir()
        inside = None
        if self.sandbox is not None and self.limits is not None:
            hub = hub_cache(model.places)
            room = Room(
                private,
                self.limits,
                writable=(folder, cache),
                readable=model.places,
                accelerators=any(not target.endswith("cpu") for target in targets),
                variables={**_OFFLINE, **({} if hub is None else {"HF_HUB_CACHE": str(hub)})},
            )
            inside = self.sandbox, room
        return Commands(model.reference, folder, timeout_s=self.timeout_s, cache=cache, inside=inside)

    @property
    def sandbox_use(self) -> SandboxUse:
        limits = None if self.limits is None else SandboxLimits(**vars(self.limits))
        return SandboxUse(kind="none" if self.sandbox is None else self.sandbox.kind, limits=limits)


def find_place(timeout_s: float | None, *, unsandboxed: bool, known: object) -> ReviewPlace:
    """The sandbox of this machine; without one nothing is run again unless that was requested.

    `known` is the result so far, attached to the error.
    """
    if unsandboxed:
        return ReviewPlace(timeout_s, None, None)
    try:
        sandbox = find_sandbox()
    except UnavailableError as error:
        raise UnavailableError(
            f"nothing was run again: {error.message}",
            hint="review it on Linux, with bubblewrap installed or user namespaces allowed; `--unsandboxed` runs what "
            "others sent with your permissions",
            result=known,
        ) from error
    # Every session has a thread for each core, and so has every library that computes.
    processes = max(2048, 32 * (os.cpu_count() or 1))
    return ReviewPlace(
        timeout_s, sandbox, RoomLimits(memory_limit(), processes, (timeout_s or DEFAULT_TIMEOUT_S) + _GRACE_S)
    )
