"""What every monitor promises, whichever EP it is for."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import pytest
from program import valid_value

from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.op_trace import LEVELS, TracingLevel
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.session.monitor.all_monitors import MONITORS, monitor_for
from winml.modelkit.session.monitor.ep_monitor import EPMonitor, Observation
from winml.modelkit.session.monitor.null import NullEPMonitor

KINDS = sorted(set(MONITORS.values()), key=lambda kind: kind.__name__)
EVERY = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def _seen(kind: type[EPMonitor]) -> Observation:
    info = catalog.BY_NAME[kind.ep_name or "cpu"]
    return Observation("m.onnx", Target(info.name, info.devices[0]), warmup_runs=1, wall_ns=(5000,))


def test_the_table_names_a_monitor_for_every_ep() -> None:
    assert list(MONITORS) == list(catalog.BY_NAME)


def test_a_monitor_is_found_in_any_case_and_an_unknown_ep_is_told_the_nearest(tmp_path: Path) -> None:
    assert type(monitor_for(" QNN ", "basic", tmp_path)) is MONITORS["qnn"]
    with pytest.raises(RequestError, match="no monitor observes execution provider `qnm`") as caught:
        monitor_for("qnm", "basic")
    assert "did you mean `qnn`" in (caught.value.hint or "")
    wrong: Any = "deep"
    with pytest.raises(RequestError, match="unknown tracing level `deep`"):
        monitor_for("qnn", wrong)


@EVERY
@pytest.mark.parametrize("level", LEVELS)
def test_options_are_texts_and_the_same_on_every_call(kind: Any, level: TracingLevel, tmp_path: Path) -> None:
    monitor = kind(level, tmp_path)
    first = monitor.get_session_options(), monitor.get_provider_options()
    first[0]["changed"] = first[1]["changed"] = "by the caller"
    again = monitor.get_session_options(), monitor.get_provider_options()
    assert "changed" not in again[0] | again[1]
    assert all(isinstance(v, str) for options in again for v in options.values())
    with monitor:
        assert (monitor.get_session_options(), monitor.get_provider_options()) == again


@EVERY
def test_provider_options_exist_in_the_table_of_eps(kind: Any, tmp_path: Path) -> None:
    options = kind("basic", tmp_path).get_provider_options()
    assert not options or kind.ep_name is not None
    assert not options or set(options) <= set(catalog.BY_NAME[kind.ep_name].options)


@EVERY
def test_the_shape_of_the_result_is_the_same_before_and_after(kind: Any, tmp_path: Path) -> None:
    monitor = kind("basic", tmp_path)
    before = monitor.to_dict()
    assert before["status"] == "not_run"
    assert monitor.result is None
    with monitor:
        monitor.observe(_seen(kind))
    after = monitor.to_dict()
    assert before.keys() == after.keys()
    assert before["metadata"].keys() == after["metadata"].keys()
    for value in (before, after):
        valid_value(value)
    assert before["metadata"]["model"] is None
    assert after["metadata"]["model"] == "m.onnx"
    # Nothing ran, so there is nothing to tell, and a reason for it.
    assert after["status"] == "no_data"
    assert after["error"]


@EVERY
def test_a_second_enter_is_refused(kind: Any, tmp_path: Path) -> None:
    monitor = kind("basic", tmp_path)
    with monitor:
        pass
    with pytest.raises(RuntimeError, match="was already used"):
        monitor.__enter__()


@EVERY
def test_the_callers_exception_goes_on_and_the_working_directory_stays(kind: Any, tmp_path: Path) -> None:
    here, environment = Path.cwd(), dict(os.environ)
    with pytest.raises(KeyError, match="mine"), kind("basic", tmp_path):
        raise KeyError("mine")
    assert Path.cwd() == here
    assert dict(os.environ) == environment


@EVERY
def test_a_folder_that_cannot_be_written_is_an_error_before_anything_runs(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnavailableError, match="traces cannot be written to"):
        kind("basic", tmp_path / "file" / "folder").__enter__()


@EVERY
def test_a_temporary_folder_is_logged_kept_and_removed_on_request(kind: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        monitor = kind("basic")
    assert str(monitor.output_dir) in caplog.text
    with monitor:
        pass
    assert monitor.output_dir.is_dir()
    with pytest.raises(AttributeError):
        monitor.output_dir = Path("elsewhere")
    monitor.cleanup()
    assert not monitor.output_dir.exists()


@EVERY
def test_a_folder_of_the_caller_is_never_removed(kind: Any, tmp_path: Path) -> None:
    monitor = kind("basic", tmp_path / "mine")
    with monitor:
        pass
    monitor.cleanup()
    assert (tmp_path / "mine").is_dir()


@EVERY
def test_asking_for_availability_never_throws(
    kind: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert kind.is_available() in (True, False)

    def broken(cls: type) -> bool:
        raise ZeroDivisionError("driver")

    monkeypatch.setattr(kind, "_available", classmethod(broken))
    assert kind.is_available() is False
    assert "ZeroDivisionError" in caplog.text


@EVERY
def test_the_flag_that_orders_the_teardown_is_a_bool_on_the_class_and_on_instances(kind: Any, tmp_path: Path) -> None:
    assert type(kind.requires_session_teardown) is bool
    with pytest.raises(TypeError, match="must be True or False"):
        type("Shadow", (kind,), {"requires_session_teardown": 1})
    monitor = kind("basic", tmp_path)
    with pytest.raises(TypeError, match="must be True or False"):
        monitor.requires_session_teardown = "yes"
    monitor.requires_session_teardown = True


def test_the_null_monitor_has_the_same_shape_and_no_result() -> None:
    monitor = NullEPMonitor()
    with monitor:
        pass
    assert monitor.result is None
    assert valid_value(monitor.to_dict())["status"] == "not_run"
