"""Progress of long work, on a terminal only."""

from __future__ import annotations

import math
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from winml.modelkit.cli import console
from winml.modelkit.cli.announcements import announce, announce_export, announce_hub
from winml.modelkit.cli.console import say
from winml.modelkit.cli.live_line import LiveLine
from winml.modelkit.core import plain_text
from winml.modelkit.core.events import Event, ExportNeeded, HubWaiting, TargetChosen
from winml.modelkit.render.progress_line import ABOUT, AT_MOST, Frame
from winml.modelkit.render.time_left import Count, TimeLeft
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.build_matrix.plan import Cell
    from winml.modelkit.build_matrix.progress import Progress

LATE_S = 0.01
"""How long after a full second the line is drawn, so that it shows that second."""
_BETWEEN_S = 0.1
"""Events that come faster than this share a line."""
_SILENT_S = 1.0
"""Work without a name is shown only when it takes this long."""


class LineProgress(ABC):
    """One line on a terminal: what is being done, for how long, and how much longer; removed at the end."""

    times_whole = False
    """Whether the times are those of the whole command, not of each piece of its work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._is_terminal = False
        self._line: LiveLine | None = None
        self._ended, self._has_news = threading.Event(), threading.Event()
        self._ticker: threading.Thread | None = None
        self._doing, self._detail = "", ""
        self._since, self._drawn_at = 0.0, -math.inf
        self._count: Count | None = None
        self._at_most = False
        self._awaited = ""
        self._whole, self._whole_form = TimeLeft(), ABOUT

    def __enter__(self) -> Self:
        self._is_terminal = console.shows_progress(sys.stderr)
        self._since = self._clock()
        if self._is_terminal and not console.is_dumb():
            self._line = LiveLine(sys.stderr)
            self._ticker = threading.Thread(target=self._tick_on, name="progress", daemon=True)
            self._ticker.start()
        return self

    def _tick_on(self) -> None:
        """Draw the line every second, whatever happens or does not; a measurement does not notice that."""
        while not self._ended.is_set():
            if self._has_news.wait(self.next_tick_s()):
                self._has_news.clear()
                self._ended.wait(_BETWEEN_S)
            self.tick()

    def next_tick_s(self) -> float:
        """How long it takes until the seconds that are shown change."""
        return 1.0 - self.elapsed_s % 1.0 + LATE_S

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._has_news.set()
        if self._line is not None:
            self._line.close()
        if self._ticker is not None:
            self._ticker.join()

    def on_event(self, event: Any) -> None:
        """Show the events that all commands share, then what this command makes of them and of others."""
        if isinstance(event, TargetChosen):
            announce(event.target)
        elif isinstance(event, HubWaiting):
            self._show_hub(event)
            return
        elif isinstance(event, ExportNeeded):
            announce_export(event.model)
            self.begin("exporting the model")
        self.show(event)

    def _show_hub(self, event: HubWaiting) -> None:
        """Say once what is awaited of the hub, also where no line can be drawn: nothing else tells of the silence."""
        if event.words != self._awaited:
            self._awaited = event.words
            announce_hub(event.words)
            self.begin(event.words, total=event.total_bytes)
        self.step(event.words, done=event.done_bytes, total=event.total_bytes)

    @abstractmethod
    def show(self, event: Any) -> None:
        """Show an event of this command."""

    def begin(self, doing: str, detail: str = "", *, total: float | None = None, at_most: bool = False) -> None:
        """Show that work begins; its time counts from now on."""
        with console.LOCK:
            if not self.times_whole:
                self._since = self._clock()
            self._count, self._drawn_at = None, -math.inf
            self.step(doing, detail, done=None if total is None else 0, total=total, at_most=at_most)

    def step(
        self,
        doing: str,
        detail: str = "",
        *,
        done: float | None = None,
        total: float | None = None,
        at_most: bool = False,
    ) -> None:
        """Show how far the work is; the parts that are counted should be about as long as one another.

        With `at_most` the work may end before `total` is reached.
        """
        with console.LOCK:
            now = self._clock()
            self._doing, self._detail = doing, detail
            self._at_most = at_most
            if done is None or total is None:
                self._count = None
            elif self._count is None or done < self._count.done:
                self._count = Count(done, total, now)
            else:
                self._count.advance(done, total, now)
            if now - self._drawn_at >= _BETWEEN_S:
                self.tick()
            else:
                self._has_news.set()

    def expect(self, seconds: float | None, form: str = ABOUT) -> None:
        """Take the time left of the whole command from the command itself; None where it does not know."""
        with console.LOCK:
            self._whole.correct(seconds, self._clock())
            self._whole_form = form

    @property
    def elapsed_s(self) -> float:
        """How long the work goes on that is shown."""
        return self._clock() - self._since

    def rest(self) -> None:
        """Show nothing until there is something to name."""
        self.begin("")

    def keep(self, text: str) -> None:
        """A line that stays, on a terminal only."""
        if self._is_terminal:
            self.rest()
            console.write_lines(plain_text.one_line(text))

    def tick(self) -> None:
        """Draw the line as it is now."""
        with console.LOCK:
            if self._line is None:
                return
            now = self._drawn_at = self._clock()
            elapsed_s = now - self._since
            if not self._doing and elapsed_s < _SILENT_S:
                self._line.show(None)
                return
            count, left_s, form = self._count, self._whole.left_s(now), self._whole_form
            share = None if left_s is None else elapsed_s / (elapsed_s + left_s)
            if count is not None:
                share = count.done / count.total if count.total else None
                if not self.times_whole:
                    left_s, form = count.left_s(now), AT_MOST if self._at_most else ABOUT
            self._line.show(Frame(self._doing or "working", elapsed_s, self._detail, share, left_s, form))


class EvalProgress(LineProgress):
    """The running model and its number of finished samples."""

    _role = ""

    def show(self, event: Any) -> None:
        from winml.modelkit.evaluation import report

        match event:
            case report.RunStarted():
                self._role = event.role if event.runs == 1 else f"{event.role} ({event.number} of {event.runs})"
                self.begin(f"{self._role}: opening")
            case report.ModelOpened():
                self.begin(f"{self._role}: sample 0 of {event.total}", total=event.total)
            case report.SamplesDone():
                doing = f"{self._role}: sample {event.done} of {event.total}"
                self.step(doing, done=event.done, total=event.total)
            case report.SamplesScoring():
                self.begin(f"{self._role}: scoring with {event.function}")
            case report.OutputsComparing():
                self.begin("comparing the outputs of both")


class AnswerProgress(LineProgress):
    """A model that is being opened; what it generates is written as it comes."""

    def __init__(self, *, streams: bool) -> None:
        super().__init__()
        self._streams = streams
        self.streamed = False
        """Whether text was written."""

    def show(self, event: Any) -> None:
        from winml.modelkit.serving.prediction import TextPiece

        if isinstance(event, TargetChosen):
            self.begin("opening and running the model")
        elif isinstance(event, TextPiece) and self._streams:
            if self._line is not None and not self.streamed:
                self._line.close()  # text that grows takes its place
            self.streamed = True
            console.data_piece(event.text)


class DebugProgress(LineProgress):
    """The step of a search for layers that lose accuracy."""

    def show(self, event: Any) -> None:
        from winml.modelkit.accuracy.events import DebugStep, MendAttempt, SensitivityStep

        if isinstance(event, MendAttempt):
            layers = f"{event.kept} layers" if event.kept != 1 else "1 layer"
            self.begin(f"attempt {event.number}: {layers} {'with 16 bits' if event.raised else 'in float'}")
        elif isinstance(event, SensitivityStep):
            if event.done == 0:
                self.begin(event.label, total=event.total)
            self.step(f"{event.label} ({event.done + 1} of {event.total})", done=event.done, total=event.total)
        elif isinstance(event, DebugStep):
            self.begin(event.what, total=event.total)
            self.step(event.what, done=event.done, total=event.total)


class FeedProgress(LineProgress):
    """The file being transferred and how much of it is done."""

    _name: str | None = None

    def show(self, event: Any) -> None:
        from winml.modelkit.feed.base import FileMoved, NamingVersion, VersionNamed

        match event:
            case FileMoved():
                moved = f"{size(event.done)} of {size(event.total)}"
                if event.name != self._name:
                    self._name = event.name
                    self.begin(moved, event.name, total=event.total)
                self.step(moved, event.name, done=event.done, total=event.total)
            case NamingVersion():
                self.begin(f"publishing version {event.name}")
            case VersionNamed():
                self.begin(f"published version {event.name}")


class MatrixProgress(LineProgress):
    """Finished cells as lines, and one line with the current cell, the progress of the run and what is left."""

    times_whole = True
    _progress: Progress | None = None
    _disk = ""

    def show(self, event: Any) -> None:
        from winml.modelkit.build_matrix import events

        match event:
            case events.CellsPlanned():
                self._take(event.progress)
            case events.CellStarted():
                self._show_cell("building", event.cell)
            case events.CellPublishing():
                self._show_cell("publishing", event.cell)
            case events.CellRecorded():
                row = event.row
                self._take(event.progress)
                self._disk = f" · {size(event.disk.in_use_bytes)} in use"
                build = "not built" if row.build_status is None else f"build {row.build_status}"
                upload = "" if row.upload_status == "n/a" else f", {row.upload_status}"
                error = f": {row.error}" if row.error else ""
                say("note", f"{row.hf_id} {row.combo}: {build}{upload}{error}")

    def _take(self, progress: Progress) -> None:
        self._progress = progress
        self.expect(progress.seconds_left)

    def _show_cell(self, what: str, cell: Cell) -> None:
        name = f"{cell.model.name} {cell.label}{self._disk}"
        counts = self._progress
        if counts is None:
            self.step(what, name)
            return
        failed = f", {counts.failed} failed" if counts.failed else ""
        ended = counts.done + counts.failed
        self.step(f"{what} · {counts.done} of {counts.total} cells done{failed}", name, done=ended, total=counts.total)


class NodeProgress:
    """What happens to a node or a scheduler, line by line."""

    def on_event(self, event: Event) -> None:
        from winml.modelkit.dispatch import events

        match event:
            case events.SchedulerListens():
                say("note", f"listening at {event.cluster}; press Ctrl-C to stop")
            case events.NodeJoined():
                say("note", f"joined {event.cluster} as {event.node}; press Ctrl-C to leave")
            case events.SchedulerAway():
                say("note", f"lost the scheduler at {event.cluster}; joining again when it is back")
            case events.JobStarted():
                say("note", f"{event.job}: running")
            case events.JobEnded():
                say("note", f"{event.job}: {event.status} after {event.seconds:.1f} s")


class QuietProgress(LineProgress):
    """For commands that are done at once, unless they wait for the hub."""

    def show(self, event: Any) -> None:
        """Nothing: there is no work of their own to show."""
