"""The line of progress of a call."""

from __future__ import annotations

import io
import sys
import types

import pytest

import winml.modelkit as wk
from winml.modelkit.api.progress import CompareProgress, PerfProgress, StageProgress, is_wanted, show_progress
from winml.modelkit.building.events import Calibrating, StageStarted, StageStep
from winml.modelkit.core.events import ExportNeeded, TargetChosen
from winml.modelkit.core.target import Target
from winml.modelkit.measuring.events import CandidateTrying, RoundDone
from winml.modelkit.measuring.perf import PerfStarted
from winml.modelkit.measuring.sessions import PerfProtocol, SessionStarted
from winml.modelkit.session.report import RunsDone

CPU = Target("cpu", "cpu")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    charset = "utf-8"

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.charset

    def isatty(self) -> bool:
        return True


def _shown(text: str) -> str:
    """What a terminal shows at the end."""
    line = ""
    for part in text.split("\r"):
        line = part + line[len(part) :]
    return line.rstrip()


def test_a_line_is_written_over_and_removed() -> None:
    stream, clock = Terminal(), Clock()
    line = StageProgress(stream, clock)
    line.on_event(StageStarted("optimize"))
    assert _shown(stream.getvalue()) == "optimize  0:00"
    clock.now = 2.0
    line.on_event(StageStep("a pass with a long name", 3, 40))
    assert _shown(stream.getvalue()) == "optimize: a pass with a long name 3 of 40  █░░░░░░░░░░░░░░░░░░░░░░░  0:02"
    clock.now = 3.0
    line.on_event(Calibrating(done=1, total=2))
    assert _shown(stream.getvalue()) == "optimize: calibrating 1 of 2  ████████████░░░░░░░░░░░░  0:03"
    line.close()
    assert _shown(stream.getvalue()) == ""
    assert "\x1b" not in stream.getvalue()
    assert "\n" not in stream.getvalue()


def test_the_time_left_is_estimated_as_the_commands_do() -> None:
    stream, clock = Terminal(), Clock()
    line = StageProgress(stream, clock)
    line.on_event(StageStarted("quantize"))
    for now, done in ((1.0, 0), (2.0, 10), (3.0, 20), (4.0, 30)):
        clock.now = now
        line.on_event(Calibrating(done=done, total=40))
    assert _shown(stream.getvalue()).endswith("0:04, about 1 s left")
    clock.now = 5.0
    line.on_event(Calibrating(done=2, total=400))
    assert _shown(stream.getvalue()).endswith("0:05"), "other samples, of which nothing is known yet"


def test_a_small_character_set_gets_a_bar_of_its_own() -> None:
    stream = Terminal()
    stream.charset = "ascii"
    StageProgress(stream).on_event(StageStep("pass", 1, 2))
    assert "############------------" in stream.getvalue()


def test_events_that_come_at_once_are_one_line() -> None:
    stream, clock = Terminal(), Clock()
    line = StageProgress(stream, clock)
    for number in range(100):
        line.on_event(StageStep("pass", number, 100))
    assert stream.getvalue().count("\r") == 1


def test_a_session_and_its_runs_are_counted() -> None:
    stream, clock = Terminal(), Clock()
    line = PerfProgress(stream, clock)
    line.on_event(PerfStarted(CPU, PerfProtocol(iterations=50, sessions=3)))
    line.on_event(SessionStarted(1, 4711))
    clock.now = 1.0
    line.on_event(RunsDone(done=20))
    assert _shown(stream.getvalue()) == "session 2 of 3: run 20 of 50  █████████░░░░░░░░░░░░░░░  0:01"


def test_shared_events_and_rounds_are_shown() -> None:
    stream, clock = Terminal(), Clock()
    line = CompareProgress(stream, clock)
    for event, text in (
        (TargetChosen(CPU), "target cpu"),
        (ExportNeeded("org/name"), "exporting org/name"),
        (CandidateTrying("int8.onnx", 0, 1), "probing int8.onnx"),
        (RoundDone(2), "int8.onnx: round 2"),
    ):
        clock.now += 1
        line.on_event(event)
        assert _shown(stream.getvalue()) == f"{text}  0:0{clock.now:.0f}"


def test_names_cannot_move_the_cursor_and_long_lines_do_not_wrap() -> None:
    stream = Terminal()
    StageProgress(stream).on_event(ExportNeeded("\x1b[31m\n" + "x" * 200))
    assert "\x1b" not in stream.getvalue()
    assert "\n" not in stream.getvalue()
    assert len(stream.getvalue()) <= 80


def test_progress_is_shown_to_people(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not is_wanted(None)
    assert is_wanted(True)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert is_wanted(None)
    assert not is_wanted(False)
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_wanted(None)
    assert not is_wanted(True)


@pytest.mark.parametrize(("shell", "wanted"), [({"kernel": 1}, True), ({}, False), (None, False)])
def test_a_notebook_is_known_by_its_kernel(
    shell: dict[str, int] | None, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = None if shell is None else types.SimpleNamespace(**shell)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: found))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert is_wanted(None) is wanted


class _Notebook:
    """IPython in a kernel: keeps what each output shows now, and how often it changed."""

    def __init__(self) -> None:
        self.outputs: list[list[str]] = []
        self.display = types.SimpleNamespace(display=self._show)

    def get_ipython(self) -> object:
        return types.SimpleNamespace(kernel=1)

    def _show(self, data: dict[str, str], *, raw: bool, display_id: bool) -> object:
        assert raw
        assert display_id
        states = [data["text/plain"]]
        self.outputs.append(states)
        return types.SimpleNamespace(update=lambda data, raw: states.append(data["text/plain"]))


def test_in_a_notebook_one_output_is_updated_and_ends_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook, stream = _Notebook(), io.StringIO()
    monkeypatch.setitem(sys.modules, "IPython", notebook)  # type: ignore[arg-type]
    monkeypatch.setattr(sys, "stderr", stream)
    with show_progress(None, StageProgress) as line:
        assert line is not None
        line.on_event(StageStarted("optimize"))
    (shown,) = notebook.outputs
    assert [text.partition(" ")[0] for text in shown] == ["optimize", ""]
    assert stream.getvalue() == ""


def test_a_call_shows_its_progress_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    wk.perf(wk.sample.MODEL, target="cpu", iterations=2, warmup=0, sessions=1)
    assert "target cpu" in stream.getvalue()
    assert _shown(stream.getvalue()) == ""


def test_the_line_goes_when_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(LookupError), show_progress(None, StageProgress) as line:
        assert line is not None
        line.on_event(StageStarted("optimize"))
        raise LookupError
    assert "optimize" in stream.getvalue()
    assert _shown(stream.getvalue()) == ""
