"""WinMLSession.perf(): what happens in which order, and what is left when something fails."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import numpy as np
import pytest

from winml.modelkit.core.errors import RequestError, SessionError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.op_trace import OpTraceResult
from winml.modelkit.core.target import Target
from winml.modelkit.session.monitor.ep_monitor import EPMonitor, Observation
from winml.modelkit.session.monitor.null import NullEPMonitor
from winml.modelkit.session.monitor.ort_monitor import ORTMonitor
from winml.modelkit.session.monitor.qnn_monitor import QNNMonitor
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.session.stats import PerfStats

CPU = Target("cpu", "cpu")
FEED = {"x": np.ones((1, 4), np.float32)}


class Recorder(EPMonitor):
    """Writes down what is done to it; brings a harmless session option."""

    requires_session_teardown: ClassVar[bool] = True

    def __init__(self, events: list[str], *, fails: str | None = None) -> None:
        super().__init__()
        self.events = events
        self.fails = fails
        self.seen: Observation | None = None

    def _note(self, event: str) -> None:
        self.events.append(event)
        if self.fails == event:
            raise OSError(event)

    def get_session_options(self) -> dict[str, str]:
        return {"session.intra_op.allow_spinning": "0"}

    def __enter__(self) -> Recorder:
        self._note("enter")
        return self

    def observe(self, observation: Observation) -> None:
        self.seen = observation

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._note("exit")

    def _collect(self) -> OpTraceResult | None:
        return None


@pytest.fixture
def session(zoo: Path) -> WinMLSession:
    return WinMLSession(zoo / "relu.onnx", target=CPU)


def _usable(session: WinMLSession) -> None:
    """A session as good as new: no options of a monitor, no block open."""
    assert session._overlay.session == {}
    with session.perf() as perf:
        session.run(FEED)
    assert len(perf.stats.wall_ns) == 1


def test_ends_in_the_order_in_which_an_ep_writes(session: WinMLSession, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    reset, collect, laid_over = session.reset, gc.collect, session._overlay

    def recorded_reset() -> None:
        events.append(f"reset with options {bool(session._overlay.session)}")
        reset()

    def recorded_collect() -> int:
        events.append(f"gc with open session {session.is_open}")
        return collect()

    monkeypatch.setattr(session, "reset", recorded_reset)
    monkeypatch.setattr(gc, "collect", recorded_collect)
    monitor = Recorder(events)
    with session.perf(warmup=1, monitor=monitor):
        session.run(FEED)
        session.run(FEED)
    events.append(f"restored {session._overlay == laid_over}")
    assert events == [
        "reset with options False",
        "enter",
        "reset with options True",
        "gc with open session False",
        "exit",
        "restored True",
    ]
    assert monitor.seen is not None
    assert (monitor.seen.warmup_runs, len(monitor.seen.wall_ns)) == (1, 1)
    assert monitor.seen.model == str(session.path)


def test_resetting_a_compiled_session_is_said_in_the_log(
    session: WinMLSession, caplog: pytest.LogCaptureFixture
) -> None:
    with session.perf(monitor=Recorder([])):
        pass
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    wanted = "auto-resetting compiled session to apply monitor session/provider options (monitor=Recorder)"
    assert wanted in record.getMessage()


def test_a_session_that_was_never_open_needs_no_reset(zoo: Path, caplog: pytest.LogCaptureFixture) -> None:
    session = WinMLSession(zoo / "relu.onnx", target=CPU, lazy=True)
    assert not session.is_open
    with session.perf(monitor=Recorder([])):
        session.run(FEED)
    assert not caplog.records


def test_without_a_monitor_nothing_is_reset_and_the_null_monitor_stands_in(session: WinMLSession) -> None:
    inside = session._session
    with session.perf() as perf:
        session.run(FEED)
    assert session._session is inside
    assert isinstance(perf.monitor, NullEPMonitor)
    assert perf.monitor.result is None


def test_blocks_cannot_be_nested_and_the_outer_one_goes_on(session: WinMLSession) -> None:
    with session.perf() as perf:
        with pytest.raises(RuntimeError, match="nested"), session.perf():
            pass
        session.run(FEED)
    assert len(perf.stats.wall_ns) == 1


def test_a_failing_enter_leaves_the_session_usable(session: WinMLSession) -> None:
    events: list[str] = []
    with pytest.raises(OSError, match="enter"), session.perf(monitor=Recorder(events, fails="enter")):
        pass
    assert events == ["enter"]
    _usable(session)


def test_the_exception_of_the_block_is_the_one_the_caller_sees(session: WinMLSession) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, session.perf(monitor=Recorder([])):
        raise error
    assert caught.value is error
    _usable(session)


def test_a_failing_exit_does_not_hide_the_exception_of_the_block(
    session: WinMLSession, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyError, match="mine"), session.perf(monitor=Recorder([], fails="exit")):
        raise KeyError("mine")
    assert "Recorder failed after the observed block had failed" in caplog.text
    _usable(session)


def test_a_failing_exit_alone_is_raised(session: WinMLSession) -> None:
    with pytest.raises(OSError, match="exit"), session.perf(monitor=Recorder([], fails="exit")):
        session.run(FEED)
    _usable(session)


def test_a_crash_of_the_model_is_still_the_callers_and_the_trace_tells_what_there_is(zoo: Path) -> None:
    session = WinMLSession(zoo / "embedding.onnx", target=CPU)
    monitor = ORTMonitor()
    with pytest.raises(RequestError, match="out of bounds"), session.perf(monitor=monitor):
        session.run({"ids": np.array([[1]], np.int64)})
        session.run({"ids": np.array([[99]], np.int64)})
    assert monitor.result is not None
    assert monitor.result.metadata.num_samples >= 1
    monitor.cleanup()


def test_the_first_runs_are_warm_up_and_a_run_that_fails_is_none(session: WinMLSession) -> None:
    with session.perf(warmup=2) as perf:
        run, _ = session.bind_run(FEED)
        for _ in range(5):
            run()
        with pytest.raises(SessionError):
            session.run({"x": np.ones((1, 9), np.float32)})
    stats = perf.stats
    assert (len(stats.warmup_ns), len(stats.wall_ns), len(stats.cpu_ns), stats.runs) == (2, 3, 3, 5)
    assert stats.mean_ms is not None
    assert stats.p50_ms is not None
    assert stats.p90_ms is not None
    assert min(stats.wall_ns) > 0


def test_statistics_of_nothing_are_none_and_negative_warm_up_is_refused() -> None:
    assert PerfStats(3).mean_ms is None
    with pytest.raises(ValueError, match="at least 0 but got -1"):
        PerfStats(-1)


def test_a_run_bound_before_a_reset_says_so(session: WinMLSession) -> None:
    run, _ = session.bind_run(FEED)
    session.reset()
    with pytest.raises(SessionError, match="reset after this run was bound"):
        run()


def test_a_reset_session_opens_again_when_it_is_used(session: WinMLSession) -> None:
    session.reset()
    assert session.placement.total == 1
    assert not session.is_open
    np.testing.assert_array_equal(session.run(FEED)["y"], FEED["x"])


class Provider(EPMonitor):
    """Brings provider options for whatever the session is on."""

    def get_provider_options(self) -> dict[str, str]:
        return {"profiling_level": "basic"}

    def _collect(self) -> OpTraceResult | None:
        return None


def test_provider_options_that_would_reach_nobody_are_an_error(session: WinMLSession) -> None:
    with pytest.raises(RequestError, match="have no effect"), session.perf(monitor=Provider()):
        pass
    _usable(session)


def test_a_monitor_of_another_ep_is_refused(session: WinMLSession, tmp_path: Path) -> None:
    monitor = QNNMonitor(output_dir=tmp_path)
    with pytest.raises(RequestError, match="observes `qnn`, but the session is on"), session.perf(monitor=monitor):
        pass
    _usable(session)


@pytest.mark.qnn
def test_the_ep_of_a_monitor_is_pinned_for_the_duration(zoo: Path, tmp_path: Path) -> None:
    session = WinMLSession(zoo / "conv.onnx")
    assert str(session.target) == "cpu"
    with session.perf(monitor=QNNMonitor(output_dir=tmp_path)):
        session.run({"x": np.ones((1, 3, 16, 16), np.float32)})
        assert str(session.target) == "qnn/npu"
        assert session.placement.requested == "QNNExecutionProvider"
        inside: Any = session._session.get_provider_options()["QNNExecutionProvider"]
        assert inside["profiling_level"] == "detailed"
    assert str(session.target) == "cpu"
    session.compile()
    assert session.placement.requested == "CPUExecutionProvider"


@pytest.mark.qnn
def test_what_a_monitor_sets_instead_of_the_user_is_said(
    zoo: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    section = SessionSection(ep_options={"profiling_level": "basic", "profiling_file_path": str(tmp_path / "mine.csv")})
    target = Target("qnn", "npu", simulated=True)
    session = WinMLSession(zoo / "conv.onnx", target=target, section=section, lazy=True)
    with session.perf(monitor=QNNMonitor(output_dir=tmp_path / "trace")):
        session.run({"x": np.ones((1, 3, 16, 16), np.float32)})
    assert "QNNMonitor overrides the session's own profiling_level, profiling_file_path" in caplog.text
    assert session.provider_options["profiling_level"] == "detailed"
