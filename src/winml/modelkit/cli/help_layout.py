"""Lays out help for the width of the terminal.

It imports nothing but `os` and `sys`: `winml --help` uses it, and `textwrap` alone costs as much as all of that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

_DEFAULT_COLUMNS = 80
_FEWEST_COLUMNS = 40
_MOST_COLUMNS = 120
"""Longer lines are hard to read."""
_CONTINUED = " `" if sys.platform == "win32" else " \\"
"""Ends a line of a command that is continued in the next one, in the usual shell: PowerShell, or a POSIX shell."""

Rows = Iterable[tuple[str, str]]


def terminal_width() -> int:
    """Characters per line: `$COLUMNS`, or the width of the terminal.

    The last column stays empty: the classic Windows console starts another line after it.
    """
    given = os.environ.get("COLUMNS", "")
    columns = int(given) if given.isdecimal() else 0
    if not columns:
        try:
            columns = os.get_terminal_size(sys.__stdout__.fileno() if sys.__stdout__ else 1).columns
        except (OSError, ValueError):
            columns = 0  # a pipe, or a stream without a file
    return min(max(columns or _DEFAULT_COLUMNS, _FEWEST_COLUMNS), _MOST_COLUMNS) - 1


def wrap(text: str, width: int) -> list[str]:
    """Lines of whole words; a word that is longer than the width has a line of its own."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def paragraph(text: str, width: int, *, indent: str = "  ") -> str:
    """Wrapped text, indented."""
    return "".join(f"{indent}{line}\n" for line in wrap(text, width - len(indent)))


def column_width(terms: Iterable[str], width: int) -> int:
    """Width of the column of terms, so that their descriptions have most of the line."""
    most = min(28, width * 2 // 5)
    return max((len(term) for term in terms if len(term) <= most), default=0)


def definitions(rows: Rows, column: int, width: int) -> str:
    """Terms with their descriptions beside them, or below a term that is longer than the column."""
    text = ""
    for term, description in rows:
        lines = wrap(description, width - column - 4)
        if len(term) > column:
            text += f"  {term}\n"
            term = ""
        for line in lines:
            text += f"  {term.ljust(column)}  {line}\n"
            term = ""
    return text


def section(heading: str, rows: Rows, column: int, width: int) -> str:
    """A heading above definitions."""
    return f"{heading}:\n{definitions(rows, column, width)}"


def usage(program: str, words: Iterable[str], width: int) -> str:
    """The `Usage:` line; what does not fit is continued below the first argument."""
    start = f"Usage: {program} "
    lines = wrap(" ".join(words), width - len(start))
    return start + ("\n" + " " * len(start)).join(lines) + "\n"


def examples(commands: Iterable[str], width: int) -> str:
    """Commands that can be pasted; one that does not fit is continued before an option where possible."""
    text = "Examples:\n"
    for command in commands:
        mark = ""
        for line in _break_command(command, width - len("    ") - len(_CONTINUED)):
            text += f"{mark}  {'  ' if mark else ''}{line}"
            mark = f"{_CONTINUED}\n"
        text += "\n"
    return text


def _break_command(command: str, width: int) -> list[str]:
    if len(command) <= width + len("  ") + len(_CONTINUED):
        return [command]
    parts: list[str] = []
    for word in command.split(" "):
        # An option and its value stay in one line.
        if parts and not word.startswith("-") and parts[-1].startswith("-") and " " not in parts[-1]:
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) > width:
            lines.append(part)
        else:
            lines[-1] += f" {part}"
    return lines
