"""Progress of a call: one line that is written over and removed, in a terminal or below the cell of a notebook.

It is laid out as that of the commands is. Only `\r` and blanks are used on stderr, which every terminal and the classic
Windows console understand. A notebook would keep each of those lines in its file, so there the line is an output that
is updated.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event, ExportNeeded, HubWaiting, TargetChosen
from winml.modelkit.render.progress_line import Frame, bar_for, cells, layout
from winml.modelkit.render.time_left import Count

_BETWEEN_S = 0.1
"""Lines that come faster than this are not shown: nobody could read them."""


def is_wanted(progress: bool | None) -> bool:
    """Whether to show progress: as the caller says, otherwise where a person watches."""
    if progress is not None:
        return progress and sys.stderr is not None
    is_terminal = getattr(sys.stderr, "isatty", None)
    return is_notebook() or (is_terminal is not None and bool(is_terminal()))


def is_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class NotebookLine(io.TextIOBase):
    """A stream for one line in a notebook: what is written replaces what was shown."""

    def __init__(self) -> None:
        self._handle: Any = None

    def write(self, text: str) -> int:
        display = sys.modules["IPython"].display.display
        shown = {"text/plain": text.strip("\r ")}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
        return len(text)


def _columns(stream: TextIO | io.TextIOBase) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80  # a notebook


@dataclass(frozen=True)
class Step:
    """What an event says of the work; a bar and the time left follow from the numbers."""

    work: str
    done: int | None = None
    total: int | None = None
    """None where nobody knows how much there is."""

    @property
    def text(self) -> str:
        if self.done is None:
            return self.work
        return f"{self.work} {self.done}" if self.total is None else f"{self.work} {self.done} of {self.total}"


class Progress(ABC):
    """The line of one kind of work."""

    def __init__(self, stream: TextIO | io.TextIOBase, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._bar = bar_for(getattr(stream, "encoding", None))
        self._clock = clock
        self._lock = threading.Lock()
        self._started = clock()
        self._written_at = -_BETWEEN_S
        self._shown = ""
        self._work = ""
        self._count: Count | None = None

    def on_event(self, event: Event) -> None:
        """Show an event, unless it says nothing new or the last one is only just shown."""
        step = self._step(event)
        with self._lock:
            now = self._clock() - self._started
            if step is None:
                return
            self._take(step, now)
            if now - self._written_at < _BETWEEN_S:
                return
            self._written_at = now
            count = self._count
            share = None if count is None or not count.total else count.done / count.total
            left_s = None if count is None else count.left_s(now)
            frame = Frame(step.text, now, share=share, left_s=left_s)
            self._write(layout(frame, _columns(self._stream), self._bar))

    def _take(self, step: Step, now: float) -> None:
        """Go on counting, or begin anew when the work is another one."""
        if step.done is None or step.total is None:
            self._count = None
        elif self._count is None or step.work != self._work or step.done < self._count.done:
            self._count = Count(step.done, step.total, now)
        else:
            self._count.advance(step.done, step.total, now)
        self._work = step.work

    def _step(self, event: Event) -> Step | None:
        if isinstance(event, HubWaiting):
            return Step(event.words)
        if isinstance(event, ExportNeeded):
            return Step(f"exporting {event.model}")
        said = self.say(event)
        return Step(f"target {event.target}") if said is None and isinstance(event, TargetChosen) else said

    @abstractmethod
    def say(self, event: Event) -> Step | None:
        """What an event says of the work; None for nothing."""

    def close(self) -> None:
        """Remove the line."""
        with self._lock:
            self._write("")

    def _write(self, text: str) -> None:
        padding = " " * (cells(self._shown) - cells(text))
        with contextlib.suppress(OSError, ValueError):  # a closed stream is no reason to end the work
            self._stream.write(f"\r{text}{padding}" + ("" if text else "\r"))
            self._stream.flush()
        self._shown = text


@contextlib.contextmanager
def show_progress(progress: bool | None, line: type[Progress]) -> Iterator[Progress | None]:
    """A line of this kind until the block ends; None where nobody wants it."""
    if not is_wanted(progress):
        yield None
        return
    shown = line(NotebookLine() if is_notebook() else sys.stderr)
    try:
        yield shown
    finally:
        shown.close()


class StageProgress(Progress):
    """The stage that runs, the target that is asked, the model that is compiled."""

    _stage = ""

    def say(self, event: Event) -> Step | None:
        from winml.modelkit.building import events

        match event:
            case events.StageStarted():
                self._stage = event.stage
                return Step(event.stage)
            case events.StageStep():
                return Step(f"{self._stage}: {event.name}", event.done, event.total)
            case events.AskingTarget():
                return Step(f"asking {event.target} {event.done + 1} of {event.total}")
            case events.CompileStep():
                return Step(f"{event.action} {event.model}")
            case events.WorkerEvent():
                return Step(f"{self._stage}: {event.step.name}", event.step.done, event.step.total)
        return None


class PerfProgress(Progress):
    """The session and how many of its runs are done."""

    _session, _sessions, _runs = 1, 1, 0

    def say(self, event: Event) -> Step | None:
        from winml.modelkit.measuring.perf import PerfStarted
        from winml.modelkit.measuring.sessions import SessionStarted
        from winml.modelkit.session.report import Opened, RunsDone

        where = f"session {self._session} of {self._sessions}"
        match event:
            case PerfStarted():
                self._sessions, self._runs = event.protocol.sessions, event.protocol.iterations
                return Step(f"target {event.target}")
            case SessionStarted():
                self._session = event.session + 1
                return Step(f"session {self._session} of {self._sessions}: opening")
            case Opened():
                return Step(f"{where}: warming up")
            case RunsDone():
                return Step(f"{where}: run", event.done, self._runs if event.done <= self._runs else None)
        return None


class CompareProgress(StageProgress):
    """The candidate and its rounds."""

    _doing = ""

    def say(self, event: Event) -> Step | None:
        from winml.modelkit.measuring import events

        match event:
            case events.ArmBuilding():
                return Step(f"building {event.label}")
            case events.BaseProbing():
                return Step(f"probing the base {event.label}")
            case events.CandidateTrying():
                self._doing = event.label
                return Step(f"probing {event.label}")
            case events.CandidateConfirming():
                self._doing = f"confirming {event.label}"
                return Step(self._doing)
            case events.RoundDone():
                return Step(f"{self._doing}: round {event.number}")
            case events.CalibrationRoundDone():
                return Step(f"measuring noise of the base: A/A round {event.number}")
        return super().say(event)


class EvaluateProgress(StageProgress):
    """The model that runs, and its samples."""

    _role = "model"

    def say(self, event: Event) -> Step | None:
        from winml.modelkit.evaluation import report

        match event:
            case report.RunStarted():
                self._role = "model" if event.role == "candidate" else event.role
                return Step(f"opening the {self._role}")
            case report.SamplesDone():
                return Step(f"{self._role}: sample", event.done, event.total)
            case report.SamplesScoring():
                return Step(f"{self._role}: scoring with {event.function}")
        return super().say(event)


class DebugProgress(StageProgress):
    """The step of a search for layers that lose accuracy."""

    def say(self, event: Event) -> Step | None:
        from winml.modelkit.accuracy.events import DebugStep, MendAttempt

        if isinstance(event, MendAttempt):
            return Step(f"attempt {event.number}, layers in float: {event.kept}")
        if isinstance(event, DebugStep):
            return Step(event.what, event.done, event.total)
        return super().say(event)


class SearchProgress(CompareProgress):
    """The trial that runs."""

    def say(self, event: Event) -> Step | None:
        from winml.modelkit.search import events
        from winml.modelkit.search.space import label

        match event:
            case events.TrialStarted():
                self._doing = f"{event.id} {label(event.choice)}"
                return Step(self._doing)
            case events.RoundStarted():
                self._doing = f"{event.id} another round"
                return Step(self._doing)
            case events.ConfirmationStarted():
                self._doing = f"confirming {event.id}"
                return Step(self._doing)
            case events.DeliveryStarted():
                return Step(f"building the champion {event.id}")
        return super().say(event)


class MatrixProgress(Progress):
    """The cell that is built, and how many are done."""

    _done = ""

    def say(self, event: Event) -> Step | None:
        from winml.modelkit.build_matrix import events

        match event:
            case events.CellStarted():
                return Step(f"building {event.cell.model.name} {event.cell.label}{self._done}")
            case events.CellPublishing():
                return Step(f"publishing {event.cell.model.name} {event.cell.label}{self._done}")
            case events.CellRecorded():
                self._done = f" · {event.progress.done} of {event.progress.total} cells done"
        return None
