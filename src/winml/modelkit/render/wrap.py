"""Breaks lines between words."""

from __future__ import annotations

import re

from winml.modelkit.render.screen import carry_styles, columns_of, current_screen

_UNITS = "%|ms|µs|s|min|h|B|KiB|MiB|GiB|TiB|dB|MHz|points|cycles|nodes?"
# A number stays with its unit, an interval is whole, and a dot that divides a line ends one rather than starting it.
_WORD = re.compile(rf"(\s*)((?:\([^\s()]+ … [^()]{{1,24}}\)\S*|\S*\d (?:{_UNITS})(?!\w)\S*|\S+)(?: ·(?=\s|$))?)")
_AFTER_SEPARATOR = re.compile(r"(?<=[/\\])(?=[^/\\])")


def words(text: str) -> list[str]:
    """The parts of a text that are not broken."""
    return [found[2] for found in _WORD.finditer(text)]


def pieces(word: str) -> list[str]:
    """The parts of a path, each with its separator; a word without separators is one."""
    return _AFTER_SEPARATOR.split(word)


def _cut(word: str, width: int) -> list[str]:
    """A word that is wider than a line, as lines: after separators where it has them, anywhere otherwise."""
    lines = [""]
    for piece in pieces(word):
        if lines[-1] and columns_of(lines[-1] + piece) > width:
            lines.append("")
        for character in piece:
            if lines[-1] and columns_of(lines[-1] + character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def wrap(text: str, width: int, *, first: int | None = None) -> list[str]:
    """A text as lines of at most `width` columns, the first of at most `first`.

    A word is cut only when it is wider than a line.
    """
    room = width if first is None else first
    lines = [""]
    for found in _WORD.finditer(text):
        space, word = found[1], found[2]
        if columns_of(lines[-1] + space + word) <= room:
            lines[-1] += space + word
            continue
        if lines[-1]:
            room = width
            lines.append("")
        start, *others = _cut(word, room)
        lines[-1] = start
        if others:
            room = width
            lines += _cut("".join(others), width)
    return carry_styles(lines)


def wrap_line(line: str, width: int, *, indent: int = 2) -> list[str]:
    """A line as lines of at most `width` columns; those that follow are indented further than the first."""
    if columns_of(line) <= width:
        return [line]
    text = line.lstrip(" ")
    start = min(len(line) - len(text), width // 3)
    hanging = start + indent
    first, *others = wrap(text, width - hanging, first=width - start)
    return [" " * start + first, *(" " * hanging + one for one in others)]


def fit(text: str) -> str:
    """Text whose lines fit on the screen."""
    width = current_screen().width
    if width is None:
        return text
    return "\n".join(one for line in text.split("\n") for one in wrap_line(line, width))
