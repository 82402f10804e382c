"""Progress of `winml perf`, on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from winml.modelkit.cli.announcements import announce, announce_export
from winml.modelkit.cli.console import shows_progress
from winml.modelkit.core import plain_text
from winml.modelkit.core.events import Event, ExportNeeded
from winml.modelkit.measuring.perf import PerfStarted
from winml.modelkit.measuring.sessions import CoolingDown, MachineSampled, PerfProtocol, SessionStarted
from winml.modelkit.render.perf import utilization_words
from winml.modelkit.session.report import Opened, ReadingTrace, RunsDone

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class PerfProgress:
    """A bar over all runs of all sessions; silent where stderr is not a terminal."""

    def __init__(self) -> None:
        self._protocol = PerfProtocol()
        self._done = 0
        self._machine = ""
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> PerfProgress:
        return self

    def _start(self) -> None:
        if not shows_progress(sys.stderr):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        total = None if self._protocol.duration_s else self._protocol.sessions * self._protocol.iterations
        self._task = self._progress.add_task("opening", total=total)
        self._progress.start()

    def on_event(self, event: Event) -> None:
        if isinstance(event, PerfStarted):
            announce(event.target)
            self._protocol = event.protocol
            self._start()
        elif isinstance(event, ExportNeeded):
            announce_export(event.model)
        elif self._progress is not None and self._task is not None:
            self._show(event, self._progress, self._task)

    def _show(self, event: Event, bar: Progress, task: TaskID) -> None:
        match event:
            case SessionStarted() | CoolingDown():
                self._done = event.session * self._protocol.iterations
                doing = "cooling down" if isinstance(event, CoolingDown) else "opening"
                text = f"session {event.session + 1} of {self._protocol.sessions}: {doing}"
                bar.update(task, description=text, completed=self._done)
            case Opened():
                bar.update(task, description="warming up")
            case RunsDone():
                bar.update(task, description=f"running{self._machine}", completed=self._done + event.done)
            case MachineSampled():
                self._machine = f" · {plain_text.one_line(utilization_words(event.latest))}"
                bar.update(task, description=f"running{self._machine}")
            case ReadingTrace():
                bar.update(task, description="reading the trace")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
