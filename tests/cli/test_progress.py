from __future__ import annotations

import logging
import queue
import sys
import threading
from types import SimpleNamespace
from typing import Any

import click
import pytest

from screen import Clock, Terminal
from winml.modelkit.build_matrix.disk import DiskUse
from winml.modelkit.build_matrix.events import CellRecorded, CellsPlanned, CellStarted
from winml.modelkit.build_matrix.progress import Progress
from winml.modelkit.building.events import (
    CompileStep,
    PartStarted,
    StageDone,
    StagesPlanned,
    StageStarted,
    StageStep,
    TargetAnswered,
)
from winml.modelkit.cli import console, live_line, progress
from winml.modelkit.cli.autoconfig_progress import SearchProgress
from winml.modelkit.cli.compare_progress import CompareProgress, most_rounds
from winml.modelkit.cli.perf_progress import PerfProgress
from winml.modelkit.cli.progress import EvalProgress, FeedProgress, LineProgress, MatrixProgress
from winml.modelkit.cli.run import invoke
from winml.modelkit.cli.stage_progress import AnalyzeProgress, CompileProgress, StageProgress
from winml.modelkit.core.events import ExportNeeded
from winml.modelkit.core.target import Target
from winml.modelkit.evaluation.report import ModelOpened, OutputsComparing, RunStarted, SamplesDone
from winml.modelkit.feed.base import FileMoved
from winml.modelkit.measuring.events import (
    CalibrationRoundDone,
    CalibrationStarted,
    CandidateTrying,
    RoundDone,
    RoundsStarted,
)
from winml.modelkit.measuring.perf import PerfStarted
from winml.modelkit.measuring.sessions import PerfProtocol, SessionStarted
from winml.modelkit.session.report import RunsDone, Warm

KINDS = [
    AnalyzeProgress, CompareProgress, CompileProgress, EvalProgress, FeedProgress, MatrixProgress, PerfProgress,
    SearchProgress, StageProgress,
]  # fmt: skip


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Stderr as a terminal of 80 columns that shows no colours; nothing ticks unless a test says so."""
    made = Terminal()
    # Not that of `sys` itself, which pytest sets again when a test begins.
    for module in (console, progress):
        monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=made, stdout=sys.stdout, platform=sys.platform))
    monkeypatch.setattr(console, "reads_escapes", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.setattr(LineProgress, "next_tick_s", lambda self: 1e6)
    monkeypatch.setattr(progress, "_BETWEEN_S", 0.0)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_has_to_export_its_model_first_says_so(
    kind: type[LineProgress], capsys: pytest.CaptureFixture[str]
) -> None:
    with kind() as shown:
        shown.on_event(ExportNeeded("./bert"))
    assert capsys.readouterr().err == "note: exporting ./bert, which is not in the cache\n"


# The line moves


def test_the_line_moves_every_second_without_any_event(terminal: Terminal, clock: Clock) -> None:
    with StageProgress(clock) as shown:
        shown.on_event(StageStarted("export"))
        for _ in range(3):
            clock.advance(1.0)
            shown.tick()
    assert terminal.frames == ["export  0:00", "export  0:01", "export  0:02", "export  0:03", ""]


def test_a_time_left_runs_down_without_any_event_until_it_is_unknown(terminal: Terminal, clock: Clock) -> None:
    with EvalProgress(clock) as shown:
        shown.on_event(RunStarted(role="candidate"))
        shown.on_event(ModelOpened(total=10))
        clock.advance(6.0)
        shown.on_event(SamplesDone(done=7, total=10))
        for _ in range(3):
            clock.advance(1.0)
            shown.tick()
    times = [frame.rpartition("  ")[2] for frame in terminal.frames[2:-1]]
    assert times == ["0:06, about 3 s left", "0:07, about 2 s left", "0:08, about 1 s left", "0:09"]


@pytest.mark.parametrize(("elapsed_s", "wait_s"), [(0.0, 1.01), (0.3, 0.71), (1.0, 1.01), (59.98, 0.03)])
def test_the_ticker_wakes_when_the_next_second_is_due(clock: Clock, elapsed_s: float, wait_s: float) -> None:
    shown = StageProgress(clock)
    shown.begin("export")
    clock.advance(elapsed_s)
    assert shown.next_tick_s() == pytest.approx(wait_s)


def test_a_thread_draws_the_line_and_ends_with_it(
    terminal: Terminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: queue.SimpleQueue[str] = queue.SimpleQueue()
    terminal.on_write = written.put
    monkeypatch.setattr(LineProgress, "next_tick_s", lambda self: 0.0)
    with StageProgress(clock) as shown:
        shown.begin("export")
        for second in (1, 2):
            clock.advance(1.0)
            while f"0:0{second}" not in written.get(timeout=60):
                pass
    assert not any(thread.name == "progress" for thread in threading.enumerate())
    before = terminal.getvalue()
    shown.begin("compile")
    shown.tick()
    assert terminal.getvalue() == before
    assert terminal.screen == [""]


def test_events_that_come_at_once_are_drawn_once_and_the_last_is_not_lost(
    terminal: Terminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_BETWEEN_S", 0.001)
    written: queue.SimpleQueue[str] = queue.SimpleQueue()
    with StageProgress(clock) as shown:
        shown.begin("quantize")
        terminal.on_write = written.put
        for done in range(1, 101):
            shown.on_event(StageStep("calibrating", done, 100))
        while "calibrating 100 of 100" not in written.get(timeout=60):
            pass
    assert len(terminal.frames) < 100


def test_work_without_a_name_is_shown_when_it_takes_long(terminal: Terminal, clock: Clock) -> None:
    with StageProgress(clock) as shown:
        for _ in range(3):
            shown.tick()
            clock.advance(0.5)
        shown.tick()
    assert terminal.frames == ["working  0:01", ""]


# It does not mix with other output


def test_notes_warnings_and_logs_go_above_the_line_whatever_draws_it(
    terminal: Terminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LineProgress, "next_tick_s", lambda self: 0.0)
    expected = []
    with StageProgress(clock) as shown:
        shown.begin("quantize")
        for number in range(100):
            clock.advance(1.0)
            console.say("warning", f"number {number}")
            expected.append(f"warning: number {number}")
    assert terminal.screen == [*expected, ""]


def test_the_line_is_there_again_after_a_message(terminal: Terminal, clock: Clock) -> None:
    with StageProgress(clock) as shown:
        shown.begin("quantize")
        console.say("warning", "careful")
        assert terminal.screen == ["warning: careful", "quantize  0:00"]


def test_a_library_that_logs_does_not_write_into_the_line(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(sys, "stderr", terminal)

    @click.command()
    def logs() -> None:
        with StageProgress() as shown:
            shown.begin("quantize")
            logging.getLogger("a.library").warning("disk\x1b[2J is slow")

    assert invoke(logs, "winml logs", "logs", []) == 0
    assert terminal.screen == ["WARNING a.library: disk\\x1b[2J is slow", ""]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, RuntimeError])
def test_an_error_and_ctrl_c_leave_a_clean_line(terminal: Terminal, clock: Clock, error: type[BaseException]) -> None:
    def work() -> None:
        with StageProgress(clock) as shown:
            shown.begin("quantize")
            terminal.write("^C")  # what a terminal shows by itself
            raise error

    with pytest.raises(error):
        work()
    console.say("error", "interrupted")
    assert terminal.screen == ["error: interrupted", ""]


# Where there is none


@pytest.mark.parametrize("kind", KINDS)
def test_a_pipe_gets_no_progress_and_no_thread(kind: type[LineProgress], capsys: pytest.CaptureFixture[str]) -> None:
    with kind() as shown:
        shown.begin("quantize")
        shown.keep("quantize: 1.0 s")
        shown.tick()
        assert not any(thread.name == "progress" for thread in threading.enumerate())
    assert capsys.readouterr().err == ""


def test_a_terminal_that_can_only_append_gets_the_lines_that_stay(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with StageProgress() as shown:
        shown.on_event(StageStarted("quantize"))
        shown.on_event(StageDone("quantize", False, 1.0))
    assert terminal.getvalue() == "quantize: 1.0 s\n"


def test_a_quiet_command_has_warnings_and_errors_alone(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_quiet", False)  # which also puts it back
    console.set_quiet(True)
    with StageProgress() as shown:
        shown.on_event(ExportNeeded("./bert"))
        shown.on_event(StageStarted("quantize"))
        shown.on_event(StageDone("quantize", False, 1.0))
        for kind in ("note", "next", "warning", "hint", "error"):
            console.say(kind, "text")
    assert terminal.getvalue() == "warning: text\nhint: text\nerror: text\n"
    console.set_quiet(False)
    console.say("note", "text")
    assert terminal.getvalue().endswith("note: text\n")


# What the commands say


def shown_by(terminal: Terminal, clock: Clock, shown: LineProgress, *events: Any) -> list[str]:
    """The frames of some events, a second apart each."""
    with shown:
        for event in events:
            clock.advance(1.0)
            shown.on_event(event)
    return [frame for frame in terminal.frames if frame]


def test_a_build_shows_its_stages_and_how_far_each_is(terminal: Terminal, clock: Clock) -> None:
    frames = shown_by(
        terminal,
        clock,
        StageProgress(clock),
        PartStarted("encoder", 1, 2),
        StagesPlanned(("optimize", "quantize")),
        StageStarted("optimize"),
        StageDone("optimize", True, 3.0),
        StageStarted("quantize"),
        StageStep("calibrating", 1, 4),
        StageStep("calibrating", 2, 4),
        StageStep("comparing"),
    )
    assert frames == [
        "encoder (1 of 2) · optimize (1 of 2)  0:00",
        "encoder (1 of 2) · quantize (2 of 2)  0:00",
        f"encoder (1 of 2) · quantize (2 of 2): calibrating 1 of 4  {'█' * 3}{'░' * 12}  0:01",
        "encoder (1 of 2) · quantize (2 of 2): calibrating 2 of 4  0:02, about 2 s left",
        "encoder (1 of 2) · quantize (2 of 2): comparing  0:03",
    ]
    assert terminal.screen == ["optimize: from the cache", ""]


def test_an_evaluation_counts_models_and_samples(terminal: Terminal, clock: Clock) -> None:
    frames = shown_by(
        terminal,
        clock,
        EvalProgress(clock),
        RunStarted(role="candidate", number=1, runs=2),
        ModelOpened(total=4),
        SamplesDone(done=1, total=4),
        RunStarted(role="reference", number=2, runs=2),
        OutputsComparing(),
    )
    assert frames == [
        "candidate (1 of 2): opening  0:00",
        f"candidate (1 of 2): sample 0 of 4  {'░' * 24}  0:00",
        f"candidate (1 of 2): sample 1 of 4  {'█' * 5}{'░' * 17}  0:01, about 3 s left",
        "reference (2 of 2): opening  0:00",
        "comparing the outputs of both  0:00",
    ]


def test_a_comparison_shows_the_range_of_its_rounds(terminal: Terminal, clock: Clock) -> None:
    frames = shown_by(
        terminal,
        clock,
        CompareProgress(clock),
        CandidateTrying("b.onnx", 0, 2),
        CalibrationStarted(2),
        CalibrationRoundDone(1),
        RoundsStarted(least=2, most=16, seconds=60.0),
        RoundDone(1),
        RoundDone(2),
    )
    assert frames == [
        "candidate 1 of 2: probing · b.onnx  0:00",
        f"measuring noise of the base: A/A round 1 of 2  {'░' * 24}  0:00",
        f"measuring noise of the base: A/A round 2 of 2  {'█' * 5}{'░' * 5}  0:01, about 1 s left",
        f"candidate 1 of 2: round 1 of 2 to 16 · b.onnx  {'░' * 10}  0:00",
        f"candidate 1 of 2: round 2 of 2 to 16  {'░' * 10}  0:01, at most 15 s left",
        f"candidate 1 of 2: round 3 of at most 16  {'█'}{'░' * 9}  0:02, at most 14 s left",
    ]


@pytest.mark.parametrize(
    ("done", "elapsed_s", "most"),
    [(1, 1.0, 16), (1, 10.0, 6), (4, 50.0, 5), (6, 61.0, 6), (1, 0.0, 16)],
    ids=["quick", "slow", "almost", "over", "no time"],
)
def test_rounds_end_by_their_number_or_their_time(done: int, elapsed_s: float, most: int) -> None:
    assert most_rounds(done, elapsed_s, RoundsStarted(3, 16, 60.0)) == most


@pytest.mark.parametrize("duration_s", [None, 2.0], ids=["runs", "seconds"])
def test_perf_counts_the_runs_or_the_seconds_of_all_sessions(
    duration_s: float | None, terminal: Terminal, clock: Clock
) -> None:
    protocol = PerfProtocol(iterations=20, sessions=2, duration_s=duration_s)
    frames = shown_by(
        terminal,
        clock,
        PerfProgress(clock),
        PerfStarted(Target("cpu", "cpu"), protocol),
        SessionStarted(0, 1),
        Warm(),
        RunsDone(done=10),
        SessionStarted(1, 2),
    )
    assert terminal.screen == ["note: target cpu", ""]
    assert frames == [
        "opening  0:00",
        "session 1 of 2: opening  0:01",
        f"session 1 of 2: running  {'░' * 24}  0:02",
        f"session 1 of 2: running  {'█' * 6}{'░' * 18}  0:03, about 3 s left",
        f"session 2 of 2: opening  {'█' * 6}{'░' * 18}  0:04, about 2 s left",
    ]


def test_several_models_are_compiled_with_a_time_left(terminal: Terminal, clock: Clock) -> None:
    frames = shown_by(
        terminal,
        clock,
        CompileProgress(clock),
        CompileStep("compiling", "a.onnx", 0, 4),
        CompileStep("validating", "a.onnx", 0, 4),
        CompileStep("compiling", "b.onnx", 1, 4),
        CompileStep("compiling", "a.onnx", 2, 4, together=True),
    )
    assert frames[0] == f"compiling · 0 of 4 done · a.onnx  {'░' * 10}  0:00"
    assert frames[2] == f"compiling · 1 of 4 done · b.onnx  ██{'░' * 8}  0:02, about 6 s left"
    assert frames[3].startswith("compiling together with the others · 2 of 4 done")


def test_one_model_is_compiled_for_an_unknown_time(terminal: Terminal, clock: Clock) -> None:
    frames = shown_by(terminal, clock, CompileProgress(clock), CompileStep("compiling", "a.onnx"))
    assert frames == ["compiling a.onnx  0:00"]


def test_a_transfer_shows_bytes_and_the_time_left(terminal: Terminal, clock: Clock) -> None:
    moved = [FileMoved("model.onnx", done * 2**20, 4 * 2**20) for done in (0, 1, 2)]
    frames = shown_by(terminal, clock, FeedProgress(clock), *moved)
    assert frames[0] == f"0 B of 4.0 MiB · model.onnx  {'░' * 10}  0:00"
    assert frames[2] == f"2.0 MiB of 4.0 MiB · model.onnx  {'█' * 5}{'░' * 5}  0:02, about 2 s left"


def test_an_analysis_keeps_the_answers_of_targets(terminal: Terminal, clock: Clock) -> None:
    shown_by(terminal, clock, AnalyzeProgress(clock), TargetAnswered("qnn/npu", "supported"))
    assert terminal.screen == ["qnn/npu: supported", ""]


def test_a_matrix_shows_cells_and_the_time_left_of_the_run(
    terminal: Terminal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell: Any = SimpleNamespace(model=SimpleNamespace(name="bert"), label="cpu fp32")
    row: Any = SimpleNamespace(hf_id="bert", combo="cpu", build_status="ok", upload_status="n/a", error=None)
    monkeypatch.setattr(live_line, "terminal_columns", lambda stream: 100)
    frames = shown_by(
        terminal,
        clock,
        MatrixProgress(clock),
        CellsPlanned(Progress(4, 0, 0, 4, None)),
        CellStarted(cell),
        CellRecorded(row, Progress(4, 1, 1, 2, 20.0), DiskUse(in_use_bytes=2**20, limit_bytes=None)),
        CellStarted(cell),
    )
    assert frames[0] == f"building · 0 of 4 cells done · bert cpu fp32  {'░' * 10}  0:02"
    assert frames[-1] == (
        f"building · 1 of 4 cells done, 1 failed · bert cpu fp32 · 1.0 Mi…  {'█' * 5}{'░' * 5}  0:04, about 19 s left"
    )
    assert terminal.screen == ["note: bert cpu: build ok", ""]
