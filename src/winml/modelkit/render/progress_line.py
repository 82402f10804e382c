"""One line of progress as text that fits a width: for a terminal (`cli`) and for a notebook (`api`)."""

from __future__ import annotations

import unicodedata

from winml.modelkit.core import plain_text
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.times import clock, duration

ABOUT = "about {} left"
AT_MOST = "at most {} left"
OF_BUDGET = "{} of the budget left"

BAR = "█░"
ASCII_BAR = "#-"
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


def layout(frame: Frame, columns: int, bar: str = BAR) -> str:
    """A frame as text that fits a terminal: details go first, then the bar, the time left, and the end of the text."""
    width = max(1, columns - 1)  # a terminal may wrap when its last column is written
    doing = plain_text.one_line(frame.doing)
    times = next((t for t in _times(frame) if cells(doing) + 2 + cells(t) <= width), clock(frame.elapsed_s))
    doing = _cut(doing, max(1, width - 2 - cells(times)))
    room = width - cells(doing) - 2 - cells(times)
    drawn = ""
    if frame.share is not None and room >= _SHORTEST_BAR + 2:
        size = _SHORTEST_BAR if frame.detail else min(_LONGEST_BAR, room - 2)
        full = int(size * min(1.0, max(0.0, frame.share)))
        drawn = f"  {bar[0] * full}{bar[1] * (size - full)}"
        room -= len(drawn)
    detail = plain_text.one_line(frame.detail)
    if detail and room >= 3 + min(cells(detail), _SHORTEST_DETAIL):
        doing = f"{doing} · {_cut(detail, room - 3)}"
    return _cut(f"{doing}{drawn}  {times}", width)


def _times(frame: Frame) -> tuple[str, ...]:
    """The times of a frame, the longest text first."""
    elapsed = clock(frame.elapsed_s)
    if frame.left_s is None:
        return (elapsed,)
    left = duration(max(1.0, frame.left_s))
    return f"{elapsed}, {frame.left_form.format(left)}", f"{elapsed}, {left} left", elapsed


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _cut(text: str, width: int) -> str:
    if cells(text) <= width:
        return text
    while text and cells(text) > width - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


def bar_for(encoding: str | None) -> str:
    """The characters of a bar that a stream of this encoding can show."""
    try:
        BAR.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII_BAR
    return BAR
