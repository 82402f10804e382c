"""Progress of long work, on a terminal only."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

from winml.modelkit.cli.announcements import announce, announce_export
from winml.modelkit.cli.console import say, shows_progress
from winml.modelkit.core import plain_text
from winml.modelkit.core.events import Event, ExportNeeded, TargetChosen
from winml.modelkit.feed.base import FileMoved, NamingVersion, VersionNamed
from winml.modelkit.render.units import size


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 80


class LineProgress(ABC):
    """One line on a terminal that is overwritten and removed at the end."""

    def __enter__(self) -> Self:
        self._live = shows_progress(sys.stderr)
        return self

    def on_event(self, event: Any) -> None:
        """Show the events that all commands share; the others go to `show`."""
        if isinstance(event, TargetChosen):
            announce(event.target)
        elif isinstance(event, ExportNeeded):
            announce_export(event.model)
        else:
            self.show(event)

    @abstractmethod
    def show(self, event: Any) -> None:
        """Show an event of this command."""

    def write(self, text: str) -> None:
        """Overwrite the line; text that ends with a line break stays, and may wrap."""
        if not self._live:
            return
        shown = plain_text.one_line(text.removesuffix("\n"))
        if text.endswith("\n"):
            shown += "\n"
        elif len(shown) >= (columns := _columns()):  # a wrapped line could not be overwritten
            shown = f"{shown[: max(0, columns - 2)]}…"
        sys.stderr.write(f"\r\x1b[K{shown}")
        sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            sys.stderr.write("\r\x1b[K")


class EvalProgress(LineProgress):
    """The running model and its number of finished samples."""

    _role = ""

    def show(self, event: Any) -> None:
        from winml.modelkit.evaluation import report

        match event:
            case report.RunStarted():
                self._role = event.role
                self.write(f"opening the {self._role}")
            case report.ModelOpened():
                self.write(f"{self._role}: sample 0 of {event.total}")
            case report.SamplesDone():
                self.write(f"{self._role}: sample {event.done} of {event.total}")


class FeedProgress(LineProgress):
    """The file being transferred and how much of it is done."""

    def show(self, event: Any) -> None:
        match event:
            case FileMoved():
                self.write(f"{event.name}: {size(event.done)} of {size(event.total)}")
            case NamingVersion():
                self.write(f"publishing version {event.name}")
            case VersionNamed():
                self.write(f"published version {event.name}")


class MatrixProgress(LineProgress):
    """Finished cells as lines, and one line with the current cell, the progress of the run and what is left."""

    _standing = ""

    def show(self, event: Any) -> None:
        from winml.modelkit.build_matrix import events
        from winml.modelkit.render.matrix import summary

        match event:
            case events.CellStarted():
                self.write(f"building {event.cell.model.name} {event.cell.label}{self._standing}")
            case events.CellPublishing():
                self.write(f"publishing {event.cell.model.name} {event.cell.label}{self._standing}")
            case events.CellRecorded():
                row = event.row
                self._standing = f" · {summary(event.progress, event.disk)}"
                self.write("")
                build = "not built" if row.build_status is None else f"build {row.build_status}"
                upload = "" if row.upload_status == "n/a" else f", {row.upload_status}"
                error = f": {row.error}" if row.error else ""
                say("note", f"{row.hf_id} {row.combo}: {build}{upload}{error}")


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
