"""Measuring in several processes, with processes made by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from tests.measured import PLACEMENT, environment, session_report

from winml.modelkit.core.errors import Interrupted, ModelkitError, UnavailableError, WorkerCrashed, WorkerTimeout
from winml.modelkit.core.events import Event
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring.sessions import (
    OPERATION,
    CoolingDown,
    PartialPerf,
    PerfProtocol,
    PerfRun,
    SessionStarted,
    measure_sessions,
)
from winml.modelkit.session.arm import ArmArguments, MeasureArguments
from winml.modelkit.session.report import Opened, RunsDone, SessionEvent, SessionReport

SECTION = SessionSection(threads=2, ep_options={"soc_model": "60"})
ARM = Arm(artifact="/models/resnet.onnx", target=Target("qnn", "npu", simulated=True), session=SECTION)

T = TypeVar("T")


def report(*wall_ns: int, stopped: bool = False, cores: int = 4) -> SessionReport:
    return session_report(*wall_ns, stopped=stopped, environment=environment(cores=cores))


class FakeProcess:
    """A process that sends its events, then answers or raises what it was given."""

    def __init__(
        self,
        answer: SessionReport | BaseException,
        *,
        pid: int = 1,
        events: tuple[Event, ...] = (),
        on_stop: SessionReport | BaseException | None = None,
    ) -> None:
        self.pid = pid
        self.calls: list[dict[str, Any]] = []
        self.stopped_after_s: list[float] = []
        self.closed = 0
        self._answer = answer
        self._events = events
        self._on_stop = on_stop

    def ask(
        self,
        form: type[T],
        op: str,
        args: object,
        *,
        timeout_s: float | None,
        events: Any,
        on_event: Callable[[Event], None] | None,
        what: str | None,
    ) -> T:
        assert not self.closed
        assert events == SessionEvent
        self.calls.append({"op": op, "args": args, "timeout_s": timeout_s, "what": what})
        for event in self._events:
            assert on_event is not None
            on_event(event)
        answer = self._said(self._answer)
        assert isinstance(answer, form)
        return answer

    def stop(self, *, timeout_s: float) -> Any:
        assert not self.closed
        self.stopped_after_s.append(timeout_s)
        assert self._on_stop is not None
        return to_json(self._said(self._on_stop))

    def close(self) -> None:
        self.closed += 1

    @staticmethod
    def _said(answer: SessionReport | BaseException) -> SessionReport:
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Bench:
    """Runs `measure_sessions` over prepared processes and keeps what happened."""

    def __init__(self, *processes: FakeProcess, **protocol: Any) -> None:
        self.processes = processes
        self.protocol = PerfProtocol(**{"sessions": len(processes), **protocol})
        self.events: list[Event] = []
        self.started: list[FakeProcess] = []
        self._waiting: Iterator[FakeProcess] = iter(processes)

    def start(self) -> FakeProcess:
        assert all(p.closed for p in self.started), "one process runs at a time"
        self.started.append(next(self._waiting))
        return self.started[-1]

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def run(self) -> PerfRun:
        return measure_sessions(
            ARM,
            self.protocol,
            inputs=InputSettings(seed=7),
            strict_ep=True,
            distribution="onnxruntime-qnn",
            start=self.start,
            on_event=self.on_event,
        )

    def fails(self, kind: type[ModelkitError]) -> ModelkitError:
        with pytest.raises(kind) as caught:
            self.run()
        return caught.value


def walls(error: ModelkitError) -> list[tuple[int, ...]]:
    """The rounds that an error carries."""
    assert isinstance(error.result, PartialPerf)
    return [r.wall_ns for r in error.result.measurement.rounds]


# Sessions that go well


def test_every_session_is_a_round_of_its_own_process() -> None:
    first, second = report(10, 20, cores=2), report(30, 40, cores=99)
    run = Bench(FakeProcess(first, pid=11), FakeProcess(second, pid=12)).run()
    assert run.stopped is False
    assert run.reports == (first, second)
    assert [(r.arm, r.process, r.order, r.wall_ns, r.cpu_ns) for r in run.measurement.rounds] == [
        (0, 11, 0, (10, 20), (5, 10)),
        (0, 12, 1, (30, 40), (15, 20)),
    ]
    assert [(r.load_before, r.load_after) for r in run.measurement.rounds] == [(0.5, 0.75)] * 2


def test_the_measurement_carries_the_arm_the_protocol_and_the_first_environment() -> None:
    bench = Bench(FakeProcess(report(1, cores=2)), FakeProcess(report(1, cores=99)), warmup=4)
    measurement = bench.run().measurement
    assert measurement.arms == (ARM,)
    assert measurement.protocol == bench.protocol.describe()
    assert measurement.environment == environment(cores=2)


def test_the_process_is_asked_for_exactly_what_the_user_decided() -> None:
    process = FakeProcess(report(1))
    Bench(process, iterations=50, warmup=3, duration_s=1.5, timeout_s=60.0).run()
    assert process.calls == [
        {
            "op": OPERATION,
            "timeout_s": 60.0,
            "what": "running `resnet.onnx` on qnn/npu",
            "args": MeasureArguments(
                arm=ArmArguments(
                    model="/models/resnet.onnx",
                    ep="qnn",
                    device="npu",
                    simulated=True,
                    session=SECTION,
                    inputs=InputSettings(seed=7),
                    strict_ep=True,
                    distribution="onnxruntime-qnn",
                ),
                warmup=3,
                iterations=50,
                duration_s=1.5,
                tracing=None,
            ),
        }
    ]


def test_every_session_asks_the_same() -> None:
    processes = [FakeProcess(report(1)) for _ in range(3)]
    Bench(*processes).run()
    assert processes[0].calls == processes[1].calls == processes[2].calls


def test_every_process_is_closed_once_before_the_next_one_starts() -> None:
    bench = Bench(*[FakeProcess(report(1)) for _ in range(3)])
    bench.run()
    assert [p.closed for p in bench.started] == [1, 1, 1]


def test_events_of_the_processes_are_passed_on_between_our_own() -> None:
    opened, progress = Opened(placement=PLACEMENT), RunsDone(done=5)
    first = FakeProcess(report(1), events=(opened, progress), pid=11)
    bench = Bench(first, FakeProcess(report(1), events=(opened,), pid=12))
    bench.run()
    assert bench.events == [
        SessionStarted(0, 11),
        opened,
        progress,
        SessionStarted(1, 12),
        opened,
    ]


def test_a_session_without_samples_is_left_out() -> None:
    run = Bench(FakeProcess(report(), pid=11), FakeProcess(report(7), pid=12)).run()
    assert [(r.process, r.order) for r in run.measurement.rounds] == [(12, 0)]
    assert run.reports == (report(7),)


# Cool-down


def test_the_machine_cools_down_between_sessions_only() -> None:
    bench = Bench(*[FakeProcess(report(1)) for _ in range(3)], cool_down_s=0.02)
    before = time.monotonic()
    bench.run()
    assert time.monotonic() - before >= 0.03
    assert bench.events == [
        SessionStarted(0, 1),
        CoolingDown(1),
        SessionStarted(1, 1),
        CoolingDown(2),
        SessionStarted(2, 1),
    ]


def test_without_a_cool_down_nobody_waits() -> None:
    bench = Bench(FakeProcess(report(1)), FakeProcess(report(1)), cool_down_s=0.0)
    bench.run()
    assert bench.events == [SessionStarted(0, 1), SessionStarted(1, 1)]


# Errors


@pytest.mark.parametrize("kind", [WorkerCrashed, WorkerTimeout])
def test_an_error_carries_what_was_measured_before_it(kind: type[ModelkitError]) -> None:
    error = kind("the process died", details={"log": ["last line"]})
    bench = Bench(FakeProcess(report(10), pid=11), FakeProcess(report(20), pid=12), FakeProcess(error))
    raised = bench.fails(kind)
    assert raised is error
    assert walls(raised) == [(10,), (20,)]
    assert raised.details["log"] == ["last line"]


def test_an_error_of_the_first_session_carries_no_rounds() -> None:
    raised = Bench(FakeProcess(WorkerCrashed("the process died")), FakeProcess(report(1))).fails(WorkerCrashed)
    written = to_json(raised.result)["measurement"]
    assert (written["rounds"], written["environment"]) == ([], {})
    assert isinstance(raised.result, PartialPerf)
    assert not raised.result.has_samples


def test_no_further_process_is_started_after_an_error() -> None:
    bench = Bench(FakeProcess(report(1)), FakeProcess(WorkerCrashed("died")), FakeProcess(report(1)))
    bench.fails(WorkerCrashed)
    assert bench.started == list(bench.processes[:2])


@pytest.mark.parametrize("error", [WorkerCrashed("died"), RuntimeError("a bug"), OSError("disk full")])
def test_every_process_is_closed_when_one_fails(error: Exception) -> None:
    bench = Bench(FakeProcess(report(1)), FakeProcess(error))
    with pytest.raises(type(error)):
        bench.run()
    assert [p.closed for p in bench.started] == [1, 1]


def test_the_process_is_closed_when_showing_progress_fails() -> None:
    class Broken(Bench):
        def on_event(self, event: Event) -> None:
            raise RuntimeError("the terminal is gone")

    bench = Broken(FakeProcess(report(1)))
    with pytest.raises(RuntimeError, match="the terminal is gone"):
        bench.run()
    assert [p.closed for p in bench.started] == [1]


def test_a_process_that_cannot_be_started_does_not_lose_what_was_measured() -> None:
    class Full(Bench):
        def start(self) -> FakeProcess:
            if self.started:
                raise UnavailableError("no space left on device")
            return super().start()

    raised = Full(FakeProcess(report(10)), FakeProcess(report(20))).fails(UnavailableError)
    assert walls(raised) == [(10,)]


# Ctrl-C


def test_after_ctrl_c_the_samples_so_far_are_kept() -> None:
    interrupted = FakeProcess(KeyboardInterrupt(), pid=12, on_stop=report(20, 21))
    bench = Bench(FakeProcess(report(10), pid=11), interrupted, FakeProcess(report(30)))
    run = bench.run()
    assert run.stopped is True
    assert [(r.process, r.wall_ns) for r in run.measurement.rounds] == [(11, (10,)), (12, (20, 21))]
    assert run.reports[-1].stopped is True
    assert bench.started == list(bench.processes[:2])
    assert [p.closed for p in bench.started] == [1, 1]


def test_after_ctrl_c_the_process_gets_a_moment_to_answer() -> None:
    process = FakeProcess(KeyboardInterrupt(), on_stop=report(1))
    Bench(process).run()
    assert process.stopped_after_s == [pytest.approx(2.0)]


def test_after_ctrl_c_before_the_first_sample_the_session_is_left_out() -> None:
    run = Bench(FakeProcess(report(10)), FakeProcess(KeyboardInterrupt(), on_stop=report())).run()
    assert run.stopped is True
    assert [r.wall_ns for r in run.measurement.rounds] == [(10,)]
    assert len(run.reports) == 1


def test_a_process_that_does_not_answer_after_ctrl_c_is_interrupted_with_what_was_measured_before() -> None:
    silent = WorkerTimeout("timed out after 2 s", details={"log": ["last line"]})
    bench = Bench(FakeProcess(report(10)), FakeProcess(KeyboardInterrupt(), on_stop=silent))
    raised = bench.fails(Interrupted)
    assert raised.exit_code == 130
    assert raised.__cause__ is silent
    assert walls(raised) == [(10,)]
    assert raised.details["log"] == ["last line"]
    assert [p.closed for p in bench.started] == [1, 1]


def test_a_second_ctrl_c_still_closes_the_process() -> None:
    bench = Bench(FakeProcess(KeyboardInterrupt(), on_stop=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert [p.closed for p in bench.started] == [1]


def test_a_second_ctrl_c_keeps_the_sessions_that_are_done() -> None:
    bench = Bench(FakeProcess(report(10)), FakeProcess(KeyboardInterrupt(), on_stop=KeyboardInterrupt()))
    try:
        run = bench.run()
    except KeyboardInterrupt:
        pytest.fail("what was measured is lost")  # a bare KeyboardInterrupt would end pytest itself
    assert run.stopped is True
    assert [r.wall_ns for r in run.measurement.rounds] == [(10,)]
    assert [p.closed for p in bench.started] == [1, 1]


def test_a_process_that_stopped_by_itself_ends_the_measurement() -> None:
    bench = Bench(FakeProcess(report(10, stopped=True)), FakeProcess(report(20)))
    assert bench.run().stopped is True
    assert len(bench.started) == 1


def test_ctrl_c_while_cooling_down_keeps_the_sessions_that_are_done() -> None:
    class Impatient(Bench):
        def on_event(self, event: Event) -> None:
            if isinstance(event, CoolingDown):
                raise KeyboardInterrupt

    bench = Impatient(FakeProcess(report(10)), FakeProcess(report(20)), cool_down_s=0.01)
    try:
        run = bench.run()
    except KeyboardInterrupt:
        pytest.fail("what was measured is lost")  # a bare KeyboardInterrupt would end pytest itself
    assert run.stopped is True
    assert [r.wall_ns for r in run.measurement.rounds] == [(10,)]


# The protocol


def test_the_protocol_is_written_with_its_units() -> None:
    protocol = PerfProtocol(iterations=50, warmup=3, sessions=5, cool_down_s=1.5, timeout_s=60.0)
    assert to_json(protocol.describe()) == {
        "name": "sessions",
        "iterations": 50,
        "duration_s": None,
        "warmup": 3,
        "sessions": 5,
        "cool_down_s": 1.5,
        "timeout_s": 60.0,
    }


def test_a_protocol_by_duration_has_no_count_of_iterations() -> None:
    written = PerfProtocol(iterations=50, duration_s=2.0).describe()
    assert (written.iterations, written.duration_s) == (None, 2.0)


def test_three_sessions_are_the_default_of_the_contract() -> None:
    assert PerfProtocol().sessions == 3
