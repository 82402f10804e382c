"""What a text is made for: a file without limits, or a terminal with its width, its characters and its colours."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Iterator
from contextvars import ContextVar

from winml.modelkit.core.dataclass import dataclass

# Noncharacters, which Unicode keeps for the inside of programs. `core.plain_text` escapes them in names, so that a name
# cannot bring one in; `cli.console` turns those that are left into escape sequences after it made the text safe.
STYLES = {
    "good": "\ufdd1",
    "bad": "\ufdd2",
    "unsure": "\ufdd3",
    "quiet": "\ufdd4",
    "head": "\ufdd5",
    "bar": "\ufdd6",
}
"""Style -> the character that starts it."""
END = "\ufdd0"
JOINT = "\ufdd7"
"""A space at which no line is broken."""
_STARTS = frozenset(STYLES.values())


@dataclass(frozen=True)
class Screen:
    """What the reader of a text can see."""

    width: int | None = None
    """Columns of a line; none: lines have no limit."""
    decorated: bool = False
    """Whether glyphs, colours and bars are shown."""
    unicode: bool = True
    """Whether characters outside of ASCII are shown."""


_FILE = Screen()
_SCREEN = ContextVar("screen", default=_FILE)


def current_screen() -> Screen:
    return _SCREEN.get()


@contextlib.contextmanager
def made_for(screen: Screen) -> Iterator[None]:
    """Make texts for this screen."""
    token = _SCREEN.set(screen)
    try:
        yield
    finally:
        _SCREEN.reset(token)


def paint(style: str, text: str) -> str:
    """Text in a style; unchanged where nothing is decorated."""
    return f"{STYLES[style]}{text}{END}" if text and current_screen().decorated else text


def columns_of(text: str) -> int:
    """How many columns a text takes on a terminal; starts and ends of styles take none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of_character(character) for character in text)


def _columns_of_character(character: str) -> int:
    if character < "\u0300":
        return 1
    if character == END or character in _STARTS or unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def carry_styles(lines: list[str]) -> list[str]:
    """Lines of one text in which a style that is open at the end of a line is ended there and started again."""
    carried, style = [], ""
    for line in lines:
        whole = style + line
        for character in line:
            if character == END:
                style = ""
            elif character in _STARTS:
                style = character
        carried.append(whole + END if style else whole)
    return carried
