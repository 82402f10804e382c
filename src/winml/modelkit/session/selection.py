"""An EP chosen for a session or a compilation: found, registered, bound to its device."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnxruntime

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import EPUnavailableError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog, options
from winml.modelkit.ep.catalog import EPInfo, Package
from winml.modelkit.ep.discovery import Rejected, look_for, this_host
from winml.modelkit.ep.targets import unavailable
from winml.modelkit.session import ep_registry
from winml.modelkit.session.options import session_options

if TYPE_CHECKING:
    import tempfile


@dataclass(frozen=True)
class EPSelection:
    """Session options with the EP in them, and where it comes from."""

    options: Any
    providers: list[Any] | None
    """Providers to name beside the options; None when the options carry the EP."""
    package: Package
    provider_options: dict[str, str]
    added_options: dict[str, str]
    """The provider options among them that were added by default."""
    files: tempfile.TemporaryDirectory[str] | None = None
    """Files that the EP reads while a session is made."""

    def release(self) -> None:
        """Remove what was only needed to make the session."""
        if self.files is not None:
            self.files.cleanup()


def select(
    target: Target,
    section: SessionSection,
    distribution: str | None = None,
    *,
    added: Mapping[str, str] | None = None,
    verbose: bool = False,
) -> EPSelection:
    """Bind the target's EP: a plugin through its device, a bundled EP by name.

    `distribution` names the package to take it from where several provide it; `added` are session options
    of a monitor; `verbose` makes it log everything.
    """
    info = catalog.BY_NAME[target.ep]
    provider_options, added_options = options.complete(target, section.ep_options)
    found = look_for(info, this_host(), distribution)
    if isinstance(found, Rejected):
        raise unavailable(info, found)
    prepared = session_options(section, added, verbose=verbose)
    passed, files = _as_files(info, provider_options)
    providers: list[Any] | None = None
    if info.name == "cpu":
        providers = ["CPUExecutionProvider"]
    elif found.package.kind == "bundled":
        providers = [_provider_entry(info, passed), "CPUExecutionProvider"]
    else:
        prepared.add_provider_for_devices([_device(info, target, found.package.distribution)], passed)
    return EPSelection(prepared, providers, found.package, provider_options, added_options, files)


def _as_files(
    info: EPInfo, provider_options: dict[str, str]
) -> tuple[dict[str, str], tempfile.TemporaryDirectory[str] | None]:
    """The options as the EP takes them: what it reads from a file is text everywhere else."""
    texts = {
        name: value
        for name, value in provider_options.items()
        if name in info.options and info.options[name].type == "json"
    }
    if not texts:
        return provider_options, None
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="winml-options-", ignore_cleanup_errors=True)
    for name, value in texts.items():
        (Path(folder.name) / f"{name}.json").write_text(value, encoding="utf-8", newline="\n")
    return {**provider_options, **{name: str(Path(folder.name) / f"{name}.json") for name in texts}}, folder


def _provider_entry(info: EPInfo, provider_options: dict[str, str]) -> tuple[str, dict[str, str]]:
    if info.full_name not in onnxruntime.get_available_providers():
        raise EPUnavailableError(f"this onnxruntime does not contain `{info.full_name}`")
    return info.full_name, dict(provider_options)


def _device(info: EPInfo, target: Target, distribution: str) -> Any:
    """The runtime's device of a plugin EP that the target means."""
    ep_registry.require(info.name, distribution)
    devices = ep_registry.devices_of(info)
    # A simulator presents itself as the CPU it runs on.
    kind = "cpu" if target.simulated else target.device
    for device in devices:
        if ep_registry.device_kind(device) == kind:
            return device
    kinds = ", ".join(sorted({ep_registry.device_kind(d) for d in devices})) or "none"
    raise EPUnavailableError(
        f"execution provider `{info.name}` has no {target.device} on this machine; it found: {kinds}",
        hint="`winml sys` shows what this machine has",
    )
