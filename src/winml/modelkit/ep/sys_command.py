"""`winml sys`: what this machine has, and why the rest is unavailable."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import Literal

from winml.modelkit import __version__
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import EPNotDownloaded, ModelkitError
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Device, Target
from winml.modelkit.ep import catalog, probing
from winml.modelkit.ep.catalog import EPInfo
from winml.modelkit.ep.devices import EPAnswer, EPDevice
from winml.modelkit.ep.discovery import Host, Installed, Rejected, candidates, distribution_version, this_host
from winml.modelkit.ep.environment_facts import read_environment_facts
from winml.modelkit.ep.problems import Problem, find_problems

TargetStatus = Literal["ready", "simulated", "missing", "does-not-load", "no-device", "unknown"]


@dataclass(frozen=True, kw_only=True)
class TargetState:
    """Whether a target can be used here, and why not."""

    target: str
    simulated: bool
    status: TargetStatus
    reason: str | None
    hint: str | None


@dataclass(frozen=True, kw_only=True)
class Installation:
    """One installation of an EP: where it comes from and what it can be used for."""

    package: str
    version: str | None
    environment: str | None
    """The folder of its private environment; null when it is in this one."""
    devices: tuple[EPDevice, ...]
    targets: tuple[TargetState, ...]


@dataclass(frozen=True, kw_only=True)
class EPState:
    """An EP of the table, and its installations on this machine."""

    ep: str
    full_name: str
    can_compile: bool
    installations: tuple[Installation, ...]
    missing: tuple[TargetState, ...]


@dataclass(frozen=True, kw_only=True)
class Machine:
    system: str
    release: str
    architecture: str
    cores: int | None
    memory_bytes: int


@dataclass(frozen=True, kw_only=True, repr=False)
class SysResult(CommandResult):
    schema: Literal["winml/sys/1"] = "winml/sys/1"
    ok: Literal[True] = True
    machine: Machine
    winml: str
    python: str
    onnxruntime: str | None
    eps: tuple[EPState, ...]
    problems: tuple[Problem, ...] = ()
    """What is wrong with this environment, with the commands that mend it."""

    def list_targets(self) -> Iterator[TargetState]:
        """The targets of every installation."""
        return (state for ep in self.eps for found in ep.installations for state in found.targets)


def _state(target: Target, status: TargetStatus, reason: str | None, hint: str | None = None) -> TargetState:
    return TargetState(target=str(target), simulated=target.simulated, status=status, reason=reason, hint=hint)


def _explain_missing_device(info: EPInfo, device: Device, answer: EPAnswer) -> str:
    """Why an EP that loads has no such device: another vendor's hardware, or none at all."""
    vendors = sorted({d.vendor for d in answer.machine_devices or () if d.kind == device and d.vendor})
    if vendors and info.vendors:
        return (
            f"wrong vendor: this machine's {device} is from {', '.join(vendors)}, it drives {', '.join(info.vendors)}"
        )
    wanted = f"{' or '.join(info.vendors)} {device}" if info.vendors else device
    return f"no device: it loads but finds no {wanted}"


def _judge_target(info: EPInfo, target: Target, answer: EPAnswer) -> TargetState:
    if target.simulated:
        return _state(target, "simulated", "placement, outputs and compiled binaries are real, times are not")
    if answer.kinds is None:
        return _state(target, "unknown", "it lists no devices; opening a session shows whether there is one")
    if target.device in answer.kinds:
        return _state(target, "ready", None)
    return _state(target, "no-device", _explain_missing_device(info, target.device, answer))


def describe_installation(info: EPInfo, found: Installed) -> Installation:
    """Ask an installed EP in a process of its own what it finds."""
    targets = [Target(info.name, device, simulated=device in found.simulated) for device in info.devices]
    devices: tuple[EPDevice, ...] = ()
    try:
        answer = probing.probe(found)
    except EPNotDownloaded as error:
        states = [_state(target, "missing", error.message, error.hint) for target in targets]
    except ModelkitError as error:
        states = [_state(target, "does-not-load", f"library fails to load: {error.message}") for target in targets]
    except OSError as error:
        # Without a folder for temporary files no process can be asked; that is one of the problems that are listed.
        states = [_state(target, "unknown", f"it was not asked: {error.strerror or error}") for target in targets]
    else:
        devices = answer.devices
        states = [_judge_target(info, target, answer) for target in targets]
    private = found.environment
    return Installation(
        package=found.package.distribution,
        version=private.version if private else distribution_version(found.package),
        environment=str(private.folder) if private else None,
        devices=devices,
        targets=tuple(states),
    )


def describe_ep(info: EPInfo, host: Host) -> EPState:
    """Every installation of an EP, or why there is none."""
    found = candidates(info, host)
    installations: tuple[Installation, ...] = ()
    missing: tuple[TargetState, ...] = ()
    if isinstance(found, Rejected):
        missing = tuple(_state(Target(info.name, d), "missing", found.reason, found.hint) for d in info.devices)
    else:
        installations = tuple(describe_installation(info, one) for one in found)
    return EPState(
        ep=info.name,
        full_name=info.full_name,
        can_compile=info.can_compile,
        installations=installations,
        missing=missing,
    )


def describe_system() -> SysResult:
    """Machine, runtime, one entry per EP of the table, and what is wrong with the environment."""
    import psutil

    host = this_host()
    machine = Machine(
        system=host.system,
        release=platform.release(),
        architecture=platform.machine(),
        cores=os.cpu_count(),
        memory_bytes=int(psutil.virtual_memory().total),
    )
    return SysResult(
        machine=machine,
        winml=__version__,
        python=platform.python_version(),
        onnxruntime=distribution_version(catalog.BY_NAME["cpu"].packages[0]),
        eps=tuple(describe_ep(info, host) for info in catalog.TABLE),
        problems=find_problems(read_environment_facts()),
    )
