"""From what the user wrote (`--target`, or `--ep` and `--device`) to a target on this machine."""

from __future__ import annotations

from collections.abc import Callable

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import EPUnavailableError, RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.target import DEVICES, Device, Target
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import EPInfo
from winml.modelkit.ep.discovery import Host, Installed, Rejected, candidates

Probe = Callable[[Installed], tuple[Device, ...] | None]
"""Asks an installed EP in a worker which real devices this machine has; None when only opening a session can tell.

Raises EPUnavailableError when the EP cannot load.
"""


_COMBO_ENDS = tuple(f"_{device}" for device in DEVICES)


@dataclass(frozen=True)
class TargetRequest:
    """What was requested; None where the user left it open."""

    ep: EPInfo | None
    device: Device | None

    @property
    def key(self) -> tuple[str, str]:
        """The same for two requests that mean the same: `cpu`, `cpu/cpu` and `mlas_cpu`."""
        only = self.ep.devices[0] if self.ep is not None and len(self.ep.devices) == 1 else "auto"
        return "auto" if self.ep is None else self.ep.name, self.device or only

    def allows(self, target: str) -> bool:
        """Whether a target, as results name it, is one that was requested."""
        ep, _, device = target.partition("/")
        return (self.ep is None or self.ep.name == ep) and self.device in (None, device or ep)


def _device(word: str) -> Device | None:
    folded = word.strip().casefold()
    if folded == "auto":
        return None
    if folded not in DEVICES:
        raise RequestError(f"unknown device `{word}`", hint=did_you_mean(word, (*DEVICES, "auto")))
    return folded


def _check_request(ep: EPInfo | None, device: Device | None) -> TargetRequest:
    if ep and device and device not in ep.devices:
        devices = ", ".join(f"`{ep.name}/{d}`" if d != ep.name else f"`{d}`" for d in ep.devices)
        raise RequestError(f"execution provider `{ep.name}` does not drive a {device}", hint=f"it drives {devices}")
    return TargetRequest(ep, device)


def parse_target(text: str) -> TargetRequest:
    """`EP[/DEVICE]` in any case, or `EP_DEVICE` as a matrix calls it (`mlas_cpu`); `auto` leaves both open."""
    ep_word, slash, device_word = text.strip().partition("/")
    if not slash and not catalog.is_known(ep_word) and ep_word.casefold().endswith(_COMBO_ENDS):
        ep_word, slash, device_word = ep_word.rpartition("_")
    if slash and not device_word.strip():
        raise RequestError(f"target must be written EP or EP/DEVICE but got `{text}`", hint="for example `qnn/npu`")
    if not slash and ep_word.casefold() == "auto":
        return TargetRequest(None, None)
    return _check_request(catalog.find(ep_word), _device(device_word) if slash else None)


def request(target: str | None, ep: str | None, device: str | None) -> TargetRequest:
    """The one request behind the three options."""
    if target is not None:
        if ep is not None or device is not None:
            raise RequestError(
                "`--target` cannot be combined with `--ep` or `--device`", hint="write `--target EP/DEVICE`"
            )
        return parse_target(target)
    ep_info = None if ep is None or ep.strip().casefold() == "auto" else catalog.find(ep)
    return _check_request(ep_info, _device(device) if device is not None else None)


def unavailable(info: EPInfo, found: Rejected) -> EPUnavailableError:
    hints = [h for h in (found.hint, "`winml sys` shows why each provider was rejected") if h]
    return EPUnavailableError(
        f"execution provider `{info.name}` is not available: {found.reason}", hint="; ".join(hints)
    )


@dataclass(frozen=True)
class Resolved:
    """A target that can be used here, and the installation of its EP to use it with."""

    target: Target
    installed: Installed


def _device_of(found: Installed, wanted: tuple[Device, ...], probe: Probe, *, named: bool) -> Target | None:
    """The first wanted device that this installation has, a real one before a simulated one.

    A device that cannot be queried is tried when it was named, and skipped otherwise.
    """
    if found.ep == "cpu":
        return Target("cpu", "cpu")
    real = probe(found) if any(d not in found.simulated for d in wanted) else ()
    if real is None:
        return Target(found.ep, wanted[0]) if named else None
    for device in wanted:
        if device in real and device not in found.simulated:
            return Target(found.ep, device)
    for device in wanted:
        if device in found.simulated:
            return Target(found.ep, device, simulated=True)
    return None


def _resolve_ep(info: EPInfo, device: Device | None, host: Host, probe: Probe) -> Resolved:
    found = candidates(info, host)
    if isinstance(found, Rejected):
        raise unavailable(info, found)
    wanted = (device,) if device else info.devices
    broken: EPUnavailableError | None = None
    for installed in found:
        try:
            target = _device_of(installed, wanted, probe, named=True)
        except EPUnavailableError as error:
            broken = error
            continue
        if target is not None:
            return Resolved(target, installed)
    if broken is not None:
        raise broken
    raise EPUnavailableError(
        f"execution provider `{info.name}` has no {' or '.join(wanted)} on this machine",
        hint="`winml sys` shows what this machine has",
    )


def _resolve_device(device: Device, host: Host, probe: Probe, *, named: bool) -> Resolved | None:
    """The best EP on this machine for a kind of device; an EP that does not load counts as missing."""
    for name in catalog.DEVICE_EPS[device]:
        found = candidates(catalog.BY_NAME[name], host)
        for installed in () if isinstance(found, Rejected) else found:
            if device in installed.simulated and not named:
                continue
            try:
                target = _device_of(installed, (device,), probe, named=named)
            except EPUnavailableError:
                continue
            if target is not None:
                return Resolved(target, installed)
    return None


def _once(probe: Probe) -> Probe:
    """The same probe, asked once per installation: an EP that drives several kinds of devices comes up for each."""
    answers: dict[Installed, tuple[Device, ...] | EPUnavailableError | None] = {}

    def ask(found: Installed) -> tuple[Device, ...] | None:
        if found not in answers:
            try:
                answers[found] = probe(found)
            except EPUnavailableError as error:
                answers[found] = error
        answer = answers[found]
        if isinstance(answer, EPUnavailableError):
            raise answer
        return answer

    return ask


def resolve(asked: TargetRequest, host: Host, probe: Probe) -> Resolved:
    """The target to use; a simulated one only when the EP or the device was named."""
    probe = _once(probe)
    if asked.ep is not None:
        return _resolve_ep(asked.ep, asked.device, host, probe)
    for device in (asked.device,) if asked.device else catalog.AUTO_DEVICES:
        found = _resolve_device(device, host, probe, named=asked.device is not None)
        if found is not None:
            return found
    wanted = asked.device or "npu, gpu or cpu"
    raise EPUnavailableError(
        f"no execution provider on this machine drives a {wanted}",
        hint="`winml sys` shows why each provider was rejected",
    )
