"""Registers installed execution providers with ONNX Runtime, once per process each.

`ensure_initialized()` never throws: what could not be registered is logged, kept in `registration_failures()` and
tried again on the next call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from winml.modelkit.core.errors import EPUnavailableError
from winml.modelkit.core.target import DEVICES, Device
from winml.modelkit.ep import catalog
from winml.modelkit.ep.devices import EPAnswer, EPDevice, HardwareDevice
from winml.modelkit.ep.discovery import Host, Installed, Rejected, distribution_version, look_for, this_host
from winml.modelkit.ep.targets import unavailable
from winml.modelkit.session import failures, windows_ml

log = logging.getLogger(__name__)

Register = Callable[[str, str], None]


def _ort_register(full_name: str, library: str) -> None:
    import onnxruntime

    onnxruntime.register_execution_provider_library(full_name, library)


class EPRegistry:
    """What was registered with the runtime of this process, and what could not be."""

    def __init__(self, host: Host | None = None, register: Register = _ort_register) -> None:
        self._host = host
        self._register = register
        self._registered: dict[str, str] = {}
        self._failures: dict[str, EPUnavailableError] = {}

    @property
    def registration_failures(self) -> dict[str, str]:
        """A copy: EP name -> exception class and message of its last attempt."""
        return {name: str(error.details["failure"]) for name, error in self._failures.items()}

    def require(self, ep: str, distribution: str | None = None) -> None:
        """Register an EP, from the named package where several provide it; raises when it cannot be registered."""
        self.ensure_initialized([ep], distribution)
        if ep in self._failures:
            raise self._failures[ep]
        taken = self._registered.get(ep, distribution)
        if distribution not in (None, taken):
            raise EPUnavailableError(
                f"execution provider `{ep}` is registered from `{taken}` in this process, not from `{distribution}`"
            )

    def ensure_initialized(self, eps: Iterable[str] | None = None, distribution: str | None = None) -> None:
        """Register the named EPs (all installed ones by default) that are not registered yet."""
        try:
            host = self._host = self._host or this_host()
            wanted = [catalog.BY_NAME[name] for name in eps] if eps is not None else list(catalog.TABLE)
        except Exception as error:  # noqa: BLE001 - callers probe with this and rely on its never throwing
            log.warning("execution providers could not be looked up: %s: %s", type(error).__name__, error)
            return
        for info in wanted:
            if info.name not in self._registered:
                self._try(info, host, distribution)

    def _try(self, info: catalog.EPInfo, host: Host, distribution: str | None) -> None:
        try:
            found = look_for(info, host, distribution)
            if isinstance(found, Rejected):
                return
            if found.package.kind == "windowsml":
                self._register(info.full_name, str(windows_ml.library_of(info)))
            elif found.library is not None:
                self._register(info.full_name, str(found.library))
        except Exception as error:  # noqa: BLE001 - one EP that does not load must not hide the others
            log.warning("execution provider %s was not registered: %s: %s", info.name, type(error).__name__, error)
            self._failures[info.name] = _failure(info, error)
            return
        self._registered[info.name] = found.package.distribution
        self._failures.pop(info.name, None)


def _failure(info: catalog.EPInfo, error: Exception) -> EPUnavailableError:
    failure = f"{type(error).__name__}: {failures.plain(str(error))}"
    if isinstance(error, EPUnavailableError):
        error.details["failure"] = failure
        return error
    return EPUnavailableError(
        f"execution provider `{info.name}` does not load: {failure}", details={"failure": failure}
    )


_REGISTRY = EPRegistry()


def ensure_initialized(eps: Iterable[str] | None = None, distribution: str | None = None) -> None:
    """Register the named EPs (all installed ones by default) with this process's runtime; never throws."""
    _REGISTRY.ensure_initialized(eps, distribution)


def registration_failures() -> dict[str, str]:
    """A copy: EP name -> exception class and message of its last attempt."""
    return _REGISTRY.registration_failures


def require(ep: str, distribution: str | None = None) -> None:
    """Register one EP with this process's runtime; raises when it cannot be registered."""
    _REGISTRY.require(ep, distribution)


def devices_of(info: catalog.EPInfo) -> list[Any]:
    """The runtime's devices of a registered EP (`OrtEpDevice`)."""
    import onnxruntime

    return [d for d in onnxruntime.get_ep_devices() if d.ep_name == info.full_name]


def has_devices(ep: str) -> bool:
    """Whether an EP can be registered in this process and finds a device."""
    ensure_initialized([ep])
    return bool(devices_of(catalog.BY_NAME[ep]))


def device_kind(device: Any) -> Device:
    """`npu`, `gpu` or `cpu`."""
    return cast("Device", device.device.type.name.lower())


def _describe_hardware(hardware: Any) -> HardwareDevice:
    return HardwareDevice(
        kind=hardware.type.name.lower(),
        vendor=hardware.vendor,
        vendor_id=hardware.vendor_id,
        device_id=hardware.device_id,
        metadata=dict(hardware.metadata),
    )


def _describe(device: Any) -> EPDevice:
    metadata = {k: v for k, v in dict(device.ep_metadata).items() if k != "library_path"}
    return EPDevice(**vars(_describe_hardware(device.device)), ep_metadata=metadata)


def _machine_devices() -> tuple[HardwareDevice, ...] | None:
    """All hardware the runtime sees, with any EP; None when the runtime is too old to list it."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    list_hardware = getattr(native, "get_hardware_devices", None)
    return None if list_hardware is None else tuple(_describe_hardware(h) for h in list_hardware())


def _openvino_kinds() -> list[str] | None:
    """Devices that the bundled OpenVINO EP lists through its own call; None when this runtime has no such call."""
    from onnxruntime.capi import onnxruntime_pybind11_state as native

    ask = getattr(native, "get_available_openvino_device_ids", None)
    return None if ask is None else sorted({str(name).partition(".")[0].lower() for name in ask()})


def _kinds(info: catalog.EPInfo, found: Installed, listed: Sequence[EPDevice]) -> list[str] | None:
    """Kinds of devices the EP has on this machine; None when only opening a session can tell."""
    import onnxruntime

    if found.package.kind != "bundled":
        return sorted({device.kind for device in listed})
    if info.full_name not in onnxruntime.get_available_providers():
        return []
    return _openvino_kinds() if info.name == "openvino" else None


def kinds_here(found: Installed) -> tuple[Device, ...] | None:
    """The kinds of devices an EP has, asked in this process; one in another environment cannot be used in it."""
    if found.environment is not None:
        raise EPUnavailableError(
            f"execution provider `{found.ep}` is installed in a private environment, not in this process"
        )
    info = catalog.BY_NAME[found.ep]
    ensure_initialized([info.name], found.package.distribution)
    kinds = _kinds(info, found, [_describe(d) for d in devices_of(info)])
    return None if kinds is None else tuple(d for d in DEVICES if d in kinds)


def probe(args: dict[str, Any], context: object) -> EPAnswer:
    """Worker operation: register one EP and list the devices it finds."""
    import onnxruntime

    info = catalog.BY_NAME[args["ep"]]
    found = look_for(info, this_host(), args.get("distribution"))
    if isinstance(found, Rejected):
        raise unavailable(info, found)
    require(info.name, found.package.distribution)
    listed = tuple(_describe(d) for d in devices_of(info))
    kinds = _kinds(info, found, listed)
    return EPAnswer(
        ep=info.name,
        runtime=onnxruntime.__version__,
        version=distribution_version(found.package),
        devices=listed,
        kinds=None if kinds is None else cast("tuple[Device, ...]", tuple(kinds)),
        machine_devices=_machine_devices(),
    )
