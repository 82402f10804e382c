"""What workers answer about execution providers: what one finds when it is loaded, and what Windows ML made ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event
from winml.modelkit.core.target import Device


@dataclass(frozen=True, kw_only=True)
class HardwareDevice:
    """A device of this machine."""

    kind: Device
    vendor: str
    vendor_id: int
    device_id: int
    metadata: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class EPDevice(HardwareDevice):
    """A device that an execution provider drives."""

    ep_metadata: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class EPAnswer:
    """What an execution provider found."""

    ep: str
    runtime: str
    version: str | None
    devices: tuple[EPDevice, ...]
    kinds: tuple[Device, ...] | None
    """Kinds of devices it has on this machine; null when only opening a session can tell."""
    machine_devices: tuple[HardwareDevice, ...] | None
    """All hardware that the runtime sees; null when it is too old to list it."""


@dataclass(frozen=True, kw_only=True)
class DownloadProgress(Event):
    """How much of a provider Windows has downloaded, from 0 to 1."""

    event: Literal["progress"] = "progress"
    part: float


@dataclass(frozen=True, kw_only=True)
class WindowsMLProvider:
    """A provider that Windows ML made ready."""

    ep: str
    version: str | None
    certification: str
    downloaded: bool
    library: str
