"""Progress of long work, on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from winml.modelkit.cli.console import is_terminal, say
from winml.modelkit.render.perf import utilization_words

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from winml.modelkit.bench.sessions import PerfProtocol


class PerfProgress:
    """A bar over all runs of all sessions; silent where stderr is not a terminal."""

    def __init__(self, protocol: PerfProtocol) -> None:
        self._protocol = protocol
        self._done = 0
        self._machine = ""
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> PerfProgress:
        return self

    def _start(self) -> None:
        if not is_terminal(sys.stderr):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        total = None if self._protocol.duration_s else self._protocol.sessions * self._protocol.iterations
        self._task = self._progress.add_task("opening", total=total)
        self._progress.start()

    def on_event(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "target":
            self._announce(event["target"])
            self._start()
        elif self._progress is not None and self._task is not None:
            self._show(kind, event)

    def _announce(self, target: Any) -> None:
        say("note", f"target {target}{' (simulated)' if target.simulated else ''}")

    def _show(self, kind: str, event: dict[str, Any]) -> None:
        assert self._progress is not None
        assert self._task is not None
        if kind in ("session", "cool-down"):
            self._done = event["session"] * self._protocol.iterations
            word = f"session {event['session'] + 1} of {self._protocol.sessions}"
            text = f"{word}: cooling down" if kind == "cool-down" else f"{word}: opening"
            self._progress.update(self._task, description=text, completed=self._done)
        elif kind == "opened":
            self._progress.update(self._task, description="warming up")
        elif kind == "progress":
            self._progress.update(
                self._task, description=f"running{self._machine}", completed=self._done + event["done"]
            )
        elif kind == "utilization":
            self._machine = f" · {utilization_words(event)}"
            self._progress.update(self._task, description=f"running{self._machine}")
        elif kind == "tracing":
            self._progress.update(self._task, description="reading the trace")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()


class CompareProgress:
    """One line that is written over: what is being done, and how many rounds it has had."""

    def __enter__(self) -> CompareProgress:
        self._live = is_terminal(sys.stderr)
        return self

    def on_event(self, event: dict[str, Any]) -> None:
        text = self._text(event)
        if self._live:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    @staticmethod
    def _text(event: dict[str, Any]) -> str:
        kind = event["event"]
        if kind == "calibration":
            return f"measuring how much the base varies: A/A round {event['number']}"
        if kind == "round":
            return f"round {event['number']}"
        words = {"probe": "trying the base", "candidate": "trying", "confirmation": "confirming"}
        return f"{words[kind]} {event['label']}"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")
