"""The catalog of Windows ML against a stand-in with the API of `windowsml` 2.x."""

from __future__ import annotations

import enum
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.core.errors import EPNotDownloaded, EPUnavailableError
from winml.modelkit.ep import catalog, sys_command
from winml.modelkit.ep import ep_command as environments
from winml.modelkit.ep.devices import DownloadProgress, WindowsMLProvider
from winml.modelkit.ep.discovery import Host, Installed
from winml.modelkit.session import windows_ml
from winml.modelkit.session.ep_registry import EPRegistry

QNN, NV = catalog.BY_NAME["qnn"], catalog.BY_NAME["nvtensorrtrtx"]


class EpReadyState(enum.IntEnum):
    Ready = 0
    NotReady = 1
    NotPresent = 2


class EpCertification(enum.IntEnum):
    Unknown = 0
    Certified = 1


class Operation:
    """What `ensure_ready_async` hands out."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work

    def __enter__(self) -> Operation:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def wait(self) -> None:
        self._work()


@dataclass
class Provider:
    name: str
    ready_state: EpReadyState
    version: str = "1.2.3.0"
    path: str = "C:\\EPs\\ep.dll"
    downloads: int = 0
    refused: str | None = None
    certification: EpCertification = EpCertification.Certified

    @property
    def library_path(self) -> str:
        return self.path if self.ready_state is EpReadyState.Ready else ""

    def ensure_ready(self) -> None:
        if self.refused is not None:
            raise OSError(self.refused)
        self.downloads += self.ready_state is EpReadyState.NotPresent
        self.ready_state = EpReadyState.Ready

    def ensure_ready_async(self, on_complete: Any = None, on_progress: Any = None) -> Operation:
        def work() -> None:
            for part in (0.0, 0.5, 1.0):
                on_progress(part)
            self.ensure_ready()

        return Operation(work)


@dataclass
class Events:
    seen: list[DownloadProgress] = field(default_factory=list)

    def tell(self, event: DownloadProgress) -> None:
        self.seen.append(event)


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes Windows offer these providers."""

    def install(*providers: Provider) -> None:
        module = types.ModuleType("windowsml")
        module.EpCatalog = lambda: types.SimpleNamespace(find_all_providers=lambda: list(providers))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "windowsml", module)

    return install


@pytest.fixture
def windows(tmp_path: Path) -> Host:
    (tmp_path / "windowsml").mkdir()
    return Host("Windows", "amd64", {"windowsml": tmp_path / "windowsml"})


def test_a_provider_that_is_not_downloaded_stays_so(offer: Callable[..., None]) -> None:
    provider = Provider("QNNExecutionProvider", EpReadyState.NotPresent)
    offer(provider)
    with pytest.raises(EPNotDownloaded, match="not downloaded") as caught:
        windows_ml.library_of(QNN)
    assert caught.value.hint == "`winml ep install qnn` downloads it"
    assert (provider.downloads, provider.ready_state) == (0, EpReadyState.NotPresent)


@pytest.mark.parametrize("state", [EpReadyState.Ready, EpReadyState.NotReady])
def test_one_that_is_on_the_machine_is_used(offer: Callable[..., None], state: EpReadyState) -> None:
    provider = Provider("QNNExecutionProvider", state)
    offer(provider)
    assert windows_ml.library_of(QNN) == Path("C:\\EPs\\ep.dll")
    assert provider.downloads == 0


def test_of_two_versions_the_one_that_is_ready_is_taken_whatever_the_spelling(offer: Callable[..., None]) -> None:
    absent = Provider("NvTensorRtRtxExecutionProvider", EpReadyState.NotPresent)
    offer(absent, Provider("NvTensorRTRTXExecutionProvider", EpReadyState.Ready, path="C:\\nv.dll"))
    assert windows_ml.library_of(NV) == Path("C:\\nv.dll")
    assert absent.downloads == 0


def test_one_that_is_not_offered_is_told_with_what_is(offer: Callable[..., None]) -> None:
    offer(Provider("OpenVINOExecutionProvider", EpReadyState.Ready))
    with pytest.raises(EPUnavailableError, match="offers no `QNNExecutionProvider`") as caught:
        windows_ml.library_of(QNN)
    assert "it offers: OpenVINOExecutionProvider" in str(caught.value.hint)


def test_a_download_is_asked_for_and_tells_how_far_it_is(offer: Callable[..., None]) -> None:
    provider, events = Provider("QNNExecutionProvider", EpReadyState.NotPresent), Events()
    offer(provider)
    found = windows_ml.download({"ep": "qnn"}, events)
    assert found == WindowsMLProvider(
        ep="qnn", version="1.2.3.0", certification="certified", downloaded=True, library="C:\\EPs\\ep.dll"
    )
    assert [event.part for event in events.seen] == [0.0, 0.5, 1.0]
    assert windows_ml.download({"ep": "qnn"}, Events()).downloaded is False
    assert provider.downloads == 1


def test_a_download_that_windows_refuses_is_unavailable(offer: Callable[..., None]) -> None:
    offer(Provider("QNNExecutionProvider", EpReadyState.NotPresent, refused="[WinError -2145124322] no policy"))
    with pytest.raises(EPUnavailableError, match="could not make `qnn` ready.*no policy"):
        windows_ml.download({"ep": "qnn"}, Events())


def test_the_registry_keeps_the_reason_and_its_hint(offer: Callable[..., None], windows: Host) -> None:
    offer(Provider("QNNExecutionProvider", EpReadyState.NotPresent))
    registry = EPRegistry(windows, lambda name, library: None)
    with pytest.raises(EPNotDownloaded) as caught:
        registry.require("qnn")
    assert caught.value.hint == "`winml ep install qnn` downloads it"
    assert registry.registration_failures["qnn"].startswith("EPNotDownloaded: Windows ML offers `qnn`")


def test_the_registry_takes_the_package_that_was_named(offer: Callable[..., None], tmp_path: Path) -> None:
    for name in ("windowsml", "onnxruntime_qnn"):
        (tmp_path / name).mkdir()
    (tmp_path / "onnxruntime_qnn" / "onnxruntime_providers_qnn.dll").touch()
    host = Host("Windows", "amd64", {name: tmp_path / name for name in ("windowsml", "onnxruntime_qnn")})
    offer(Provider("QNNExecutionProvider", EpReadyState.Ready))
    seen: list[str] = []
    registry = EPRegistry(host, lambda name, library: seen.append(library))
    registry.require("qnn", "windowsml")
    assert seen == [str(Path("C:\\EPs\\ep.dll"))]
    with pytest.raises(EPUnavailableError, match="registered from `windowsml` in this process"):
        registry.require("qnn", "onnxruntime-qnn")


def test_sys_says_how_to_bring_one_that_is_offered(windows: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(found: Installed) -> dict[str, Any]:
        raise EPNotDownloaded("it is not downloaded", hint="`winml ep install qnn` downloads it")

    monkeypatch.setattr(sys_command.probing, "probe", probe)
    (entry,) = sys_command.describe_ep(QNN, windows).installations
    assert {(state.status, state.hint) for state in entry.targets} == {
        ("missing", "`winml ep install qnn` downloads it")
    }


def test_without_the_package_of_windows_ml_its_name_is_the_hint() -> None:
    with pytest.raises(Exception, match="needs no private environment") as caught:
        environments._find_bundled(catalog.BY_NAME["vitisai"], Host("Windows", "amd64"))
    assert caught.value.hint == "`pip install windowsml`, then `winml ep install vitisai`"  # type: ignore[attr-defined]
