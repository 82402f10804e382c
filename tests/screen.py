"""A terminal for tests of progress: what is written to it, frame by frame, and what a person would see."""

from __future__ import annotations

import io
from collections.abc import Callable

ERASE = "\x1b[K"


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class Terminal(io.StringIO):
    """A stream that says it is a terminal; `on_write` hears of every write."""

    encoding = "utf-8"

    def __init__(self, encoding: str = "utf-8", on_write: Callable[[str], object] = lambda text: None) -> None:
        super().__init__()
        self.encoding = encoding
        self.on_write = on_write

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        text.encode(self.encoding)
        self.on_write(text)
        return super().write(text)

    @property
    def frames(self) -> list[str]:
        """What the line of progress said, one text for each time that it was written over."""
        return frames(self.getvalue())

    @property
    def screen(self) -> list[str]:
        return screen(self.getvalue())


def frames(written: str) -> list[str]:
    """The texts that were written over one another; lines that stay are none of them."""
    return [part for part in written.split(f"\r{ERASE}")[1:] if "\n" not in part]


def screen(written: str) -> list[str]:
    """The lines that a terminal shows in the end; `\\r` goes back, ERASE removes the rest of a line."""
    lines, column = [""], 0
    rest = written.replace("\r\n", "\n")
    while rest:
        if rest.startswith(ERASE):
            lines[-1] = lines[-1][:column]
            rest = rest[len(ERASE) :]
            continue
        character, rest = rest[0], rest[1:]
        if character == "\r":
            column = 0
        elif character == "\n":
            lines.append("")
            column = 0
        else:
            lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]
