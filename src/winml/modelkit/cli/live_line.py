"""The line of progress on a terminal: how it is laid out, and how it is written over and removed."""

from __future__ import annotations

import os
import unicodedata
from typing import TextIO

from winml.modelkit.cli import console
from winml.modelkit.core import plain_text
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.times import clock, duration

ABOUT = "about {} left"
AT_MOST = "at most {} left"
OF_BUDGET = "{} of the budget left"

_BAR = "█░"
_ASCII_BAR = "#-"
_SHORTEST_BAR, _LONGEST_BAR = 10, 24
_SHORTEST_DETAIL = 8


@dataclass(frozen=True)
class Frame:
    """What a line of progress says at one moment."""

    doing: str
    elapsed_s: float
    detail: str = ""
    """What is cut off first where the terminal is narrow."""
    share: float | None = None
    """How much is done, from 0 to 1; None where that is unknown."""
    left_s: float | None = None
    left_form: str = ABOUT


def layout(frame: Frame, columns: int, bar: str = _BAR) -> str:
    """A frame as text that fits a terminal: details go first, then the bar, the time left, and the end of the text."""
    width = max(1, columns - 1)  # a terminal may wrap when its last column is written
    doing = plain_text.one_line(frame.doing)
    times = next((t for t in _times(frame) if _cells(doing) + 2 + _cells(t) <= width), clock(frame.elapsed_s))
    doing = _cut(doing, max(1, width - 2 - _cells(times)))
    room = width - _cells(doing) - 2 - _cells(times)
    drawn = ""
    if frame.share is not None and room >= _SHORTEST_BAR + 2:
        size = _SHORTEST_BAR if frame.detail else min(_LONGEST_BAR, room - 2)
        full = int(size * min(1.0, max(0.0, frame.share)))
        drawn = f"  {bar[0] * full}{bar[1] * (size - full)}"
        room -= len(drawn)
    detail = plain_text.one_line(frame.detail)
    if detail and room >= 3 + min(_cells(detail), _SHORTEST_DETAIL):
        doing = f"{doing} · {_cut(detail, room - 3)}"
    return _cut(f"{doing}{drawn}  {times}", width)


def _times(frame: Frame) -> tuple[str, ...]:
    """The times of a frame, the longest text first."""
    elapsed = clock(frame.elapsed_s)
    if frame.left_s is None:
        return (elapsed,)
    left = duration(max(1.0, frame.left_s))
    return f"{elapsed}, {frame.left_form.format(left)}", f"{elapsed}, {left} left", elapsed


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int) -> str:
    if _cells(text) <= width:
        return text
    while text and _cells(text) > width - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


class LiveLine:
    """The last line of a terminal, which is written over until it is closed; other output goes above it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_escapes = console.reads_escapes(stream)
        self._bar = _BAR if console.can_show(stream, _BAR) else _ASCII_BAR
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
            blank = " " * max(0, _cells(self._drawn) - _cells(text))
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
