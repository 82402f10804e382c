"""The catalog of Windows ML: the execution providers that Windows offers for this machine, and their libraries.

A provider in the catalog is ready, on the machine but not yet usable by this process, or only offered. Making the last
kind ready downloads hundreds of megabytes through Windows Update, so only `download` does, for `winml ep install`.
The API is that of the package `windowsml` (2.x); contract test: `tests/session/test_windows_ml.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import EPNotDownloaded, EPUnavailableError
from winml.modelkit.ep import catalog
from winml.modelkit.ep.devices import DownloadProgress, WindowsMLProvider

_STATES = ("Ready", "NotReady", "NotPresent")
"""`EpReadyState` of `windowsml` in the order in which we take providers of one name."""
_KEPT: list[Any] = []


def _load_runtime() -> None:
    """Load the runtime of the installed package, by its path.

    Windows has an older onnxruntime.dll of its own. What loads one by its bare name gets the copy that is in the
    process already, so ours has to be the first.
    """
    import onnxruntime

    library = Path(onnxruntime.__file__).parent / "capi" / "onnxruntime.dll"
    if sys.platform == "win32" and library.is_file():
        import ctypes

        _KEPT.append(ctypes.WinDLL(str(library)))


def _providers() -> list[Any]:
    _load_runtime()
    import windowsml

    opened = windowsml.EpCatalog()
    # Never closed: releasing the catalog crashes the process with some drivers, and it goes with the worker.
    _KEPT.append(opened)
    return list(opened.find_all_providers())


def _find(info: catalog.EPInfo) -> Any:
    """The provider of this EP that is nearest to being usable; spelling of names differs between versions."""
    offered = _providers()
    found = [one for one in offered if one.name.lower() == info.full_name.lower()]
    if not found:
        names = ", ".join(sorted({one.name for one in offered})) or "none"
        raise EPUnavailableError(
            f"Windows ML offers no `{info.full_name}` for this machine",
            hint=f"it offers: {names}; what it offers depends on hardware, drivers and the version of Windows",
        )
    return min(found, key=lambda one: _STATES.index(one.ready_state.name))


def library_of(info: catalog.EPInfo) -> Path:
    """The library of an EP that is on this machine; downloads nothing."""
    provider = _find(info)
    if provider.ready_state.name == "NotPresent":
        raise EPNotDownloaded(
            f"Windows ML offers `{info.name}` for this machine, but it is not downloaded",
            hint=f"`winml ep install {info.name}` downloads it",
        )
    if provider.ready_state.name == "NotReady":
        provider.ensure_ready()  # adds what is on the machine to this process
    return _library(info, provider)


def _library(info: catalog.EPInfo, provider: Any) -> Path:
    if not provider.library_path:
        raise EPUnavailableError(f"Windows ML names no library for `{info.full_name}`, version {provider.version}")
    return Path(provider.library_path)


def _wait(provider: Any, on_progress: Callable[[float], None]) -> None:
    with provider.ensure_ready_async(on_progress=on_progress) as operation:
        operation.wait()


def download(args: dict[str, Any], context: Any) -> WindowsMLProvider:
    """Worker operation: have Windows download and install a provider."""
    info = catalog.BY_NAME[args["ep"]]
    provider = _find(info)
    before = provider.ready_state.name
    if before != "Ready":
        try:
            _wait(provider, lambda part: context.tell(DownloadProgress(part=max(0.0, min(1.0, float(part))))))
        except OSError as error:
            raise EPUnavailableError(
                f"Windows could not make `{info.name}` ready: {error}",
                hint="Windows Update has to be allowed to download; `winml sys` shows what is there",
            ) from error
    return WindowsMLProvider(
        ep=info.name,
        version=provider.version or None,
        certification=provider.certification.name.lower(),
        downloaded=before == "NotPresent",
        library=str(_library(info, provider)),
    )
