"""The registry against a fake runtime, and against the real one for QNN."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from winml.modelkit.ep.discovery import Host
from winml.modelkit.session import ep_registry
from winml.modelkit.session.ep_registry import EPRegistry
from winml.modelkit.worker.client import Worker


class Runtime:
    """Registers libraries, or refuses them while `broken`."""

    def __init__(self) -> None:
        self.registered: list[str] = []
        self.broken = False

    def register(self, full_name: str, library: str) -> None:
        if self.broken:
            raise OSError(f"{library}: cannot open shared object file")
        self.registered.append(full_name)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    module = tmp_path / "onnxruntime_qnn"
    module.mkdir()
    (module / "libonnxruntime_providers_qnn.so").touch()
    (tmp_path / "onnxruntime").mkdir()
    return Host("Linux", "x86_64", {"onnxruntime_qnn": module, "onnxruntime": tmp_path / "onnxruntime"})


def test_a_registered_ep_is_not_registered_again(host: Host) -> None:
    runtime = Runtime()
    registry = EPRegistry(host, runtime.register)
    registry.ensure_initialized()
    registry.ensure_initialized(["qnn"])
    assert runtime.registered == ["QNNExecutionProvider"]
    assert registry.registration_failures == {}


def test_a_failed_ep_is_logged_kept_and_tried_again(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    runtime = Runtime()
    runtime.broken = True
    registry = EPRegistry(host, runtime.register)
    with caplog.at_level(logging.WARNING):
        registry.ensure_initialized()
    assert "qnn" in caplog.text
    assert "OSError" in caplog.text
    assert registry.registration_failures["qnn"].startswith("OSError: ")
    runtime.broken = False
    registry.ensure_initialized()
    assert runtime.registered == ["QNNExecutionProvider"]
    assert registry.registration_failures == {}


def test_failures_are_a_copy(host: Host) -> None:
    runtime = Runtime()
    runtime.broken = True
    registry = EPRegistry(host, runtime.register)
    registry.ensure_initialized()
    registry.registration_failures.clear()
    assert "qnn" in registry.registration_failures


def test_it_never_throws_even_for_a_name_it_does_not_know(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    EPRegistry(host, Runtime().register).ensure_initialized(["no-such-ep"])
    assert "KeyError" in caplog.text


def test_module_functions_work_on_the_registry_of_this_process() -> None:
    ep_registry.ensure_initialized(["cpu"])
    assert "cpu" not in ep_registry.registration_failures()


def test_the_cpu_ep_is_probed_with_its_device() -> None:
    with Worker() as worker:
        answer = worker.call("session.probe", {"ep": "cpu"})
    assert [d["kind"] for d in answer["devices"]] == ["cpu"]


@pytest.mark.qnn
def test_the_qnn_library_loads_and_shows_its_simulator_as_a_cpu() -> None:
    with Worker() as worker:
        answer = worker.call("session.probe", {"ep": "qnn"})
    assert {d["kind"] for d in answer["devices"]} == {"cpu"}
