"""Finds the requested target on this machine."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import EPUnavailableError, RunFailedError
from winml.modelkit.core.target import DEVICES, Device, Target
from winml.modelkit.ep import targets
from winml.modelkit.ep.devices import EPAnswer
from winml.modelkit.ep.discovery import Installed, this_host
from winml.modelkit.ep.targets import Resolved, TargetRequest
from winml.modelkit.worker.client import Worker

PROBE_TIMEOUT_S = 60.0


def probe(found: Installed) -> EPAnswer:
    """What an installed EP says of itself, asked in a process of its own: its devices, the machine's devices."""
    args = {"ep": found.ep, "distribution": found.package.distribution}
    with Worker(python=found.python) as worker:
        try:
            return worker.ask(EPAnswer, "session.probe", args, timeout_s=PROBE_TIMEOUT_S, what="loading it")
        except RunFailedError as error:
            # A library that takes the process down when it is loaded is not available.
            raise EPUnavailableError(
                f"execution provider `{found.ep}` does not load: {error.message}", details=error.details
            ) from error


def probe_devices(found: Installed) -> tuple[Device, ...] | None:
    """The kinds of devices an installed EP finds; None for a bundled EP that lists none."""
    kinds = probe(found).kinds
    return None if kinds is None else tuple(d for d in DEVICES if d in kinds)


def resolve(target: str | None, ep: str | None, device: str | None) -> Resolved:
    """The target behind `--target`, or `--ep` and `--device`, on this machine."""
    return resolve_request(targets.request(target, ep, device))


def resolve_request(asked: TargetRequest) -> Resolved:
    """The target behind a request, on this machine."""
    return targets.resolve(asked, this_host(), probe_devices)


@dataclass(frozen=True)
class Chosen:
    """Where a model runs, and what it was built for."""

    resolved: Resolved
    built_for: str | None

    @property
    def notes(self) -> list[str]:
        """That a build runs elsewhere than it was made for."""
        here = str(self.resolved.target)
        if self.built_for is None or self.built_for == here:
            return []
        return [f"it was built for {self.built_for} and runs on {here}, as requested"]


def choose(built_for: str | None, target: str | None, ep: str | None, device: str | None) -> Chosen:
    """The requested target; without a request the one that the build is for."""
    if built_for is None or (target, ep, device) != (None, None, None):
        return Chosen(resolve(target, ep, device), built_for)
    try:
        return Chosen(resolve(built_for, None, None), built_for)
    except EPUnavailableError as error:
        raise EPUnavailableError(
            f"it was built for {built_for}, which is not available on this machine: {error.message}",
            hint="run it on a machine that has it, or on another target with `--target EP/DEVICE`",
            details=error.details,
        ) from error


@dataclass(frozen=True)
class Planned:
    """A target to build for, which this machine need not have."""

    target: Target
    here: Resolved | None
    absent: EPUnavailableError | None
    """Why it cannot be asked or run on this machine."""


def plan(target: str | None, ep: str | None, device: str | None) -> Planned:
    """The target to build for; a named EP or device that is missing on this machine is tolerated."""
    asked = targets.request(target, ep, device)
    try:
        here = resolve_request(asked)
    except EPUnavailableError as error:
        if asked.ep is None:
            raise
        return Planned(Target(asked.ep.name, asked.device or asked.ep.devices[0]), None, error)
    return Planned(here.target, here, None)
