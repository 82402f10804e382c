"""The line of progress on a terminal: how it is written over and removed."""

from __future__ import annotations

import os
from typing import TextIO

from winml.modelkit.cli import console
from winml.modelkit.render.progress_line import Frame, bar_for, cells, layout


class LiveLine:
    """The last line of a terminal, which is written over until it is closed; other output goes above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_escapes = console.reads_escapes(stream)
        self._bar = bar_for(stream.encoding)
        self._text = ""
        """What the line says, also while it is erased."""
        self._drawn = ""
        """What the terminal shows of it."""
        self._is_open = True
        console.set_line(self)

    def show(self, frame: Frame | None) -> None:
        """Write a frame over the last one; None leaves the line empty."""
        with console.LOCK:
            self._text = "" if frame is None else layout(frame, terminal_columns(self._stream), self._bar)
            self.draw()

    def draw(self) -> None:
        with console.LOCK:
            if self._is_open and self._text != self._drawn:
                self._write(self._text)

    def erase(self) -> None:
        with console.LOCK:
            if self._is_open and self._drawn:
                self._write("")

    def close(self) -> None:
        """Remove the line for good: nothing is written to it any more."""
        with console.LOCK:
            if self._is_open:
                # Also what a terminal shows by itself, as `^C`, and a frame that Ctrl-C has cut off.
                self._write("")
                self._is_open = False
                console.set_line(None)

    def _write(self, text: str) -> None:
        if self._has_escapes:
            written = f"\r\x1b[K{text}"
        else:
            blank = " " * max(0, cells(self._drawn) - cells(text))
            written = f"\r{text}{blank}" + ("" if text else "\r")
        self._drawn = text
        if not console.write_raw(self._stream, written):
            self._is_open = False  # the terminal is gone, which is no reason to end the command


def terminal_columns(stream: TextIO) -> int:
    """The width of a terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
