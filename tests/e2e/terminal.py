"""Runs the program inside this process with a pseudo-terminal as its stdout and stderr."""

from __future__ import annotations

import os
import re
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from e2e.program import _as_started, _environment, _inside, _stream
from winml.modelkit.cli import announcements, console, main, progress, results
from winml.modelkit.core import plain_text
from winml.modelkit.render.screen import END, JOINT, STYLES, Screen, columns_of, made_for


@dataclass
class Transcript:
    """What a command showed."""

    command: str
    code: int = -1
    written: str = ""
    """Everything that was written, with its escape sequences."""
    plain: list[str] = field(default_factory=list)
    """The texts and messages as they are written where lines have no limit."""
    calls: list[Callable[[], None]] = field(default_factory=list)
    """What shows the same texts and messages again."""

    columns: int = 80

    @property
    def lines(self) -> list[str]:
        """What stands on the terminal at the end; a line that was too long for it is broken, as there."""
        return _draw(self.written, self.columns)[0]

    @property
    def too_long(self) -> list[str]:
        """Every line, also one that was overwritten, that did not fit into the width."""
        return _draw(self.written, self.columns)[1]


_STYLE = re.compile(f"[{END}{''.join(STYLES.values())}]")
_MOVES = re.compile(r"\x1b\[([\d;]*)([A-Za-z])|\x1b\[\?\d+[hl]")


def _draw(written: str, columns: int) -> tuple[list[str], list[str]]:
    """The lines that a terminal shows, and those that it had to break."""
    lines, broken, row, column, at = [""], [], 0, 0, 0
    while at < len(written):
        if move := _MOVES.match(written, at):
            at = move.end()
            if move[2] == "A":
                row = max(row - int(move[1] or 1), 0)
            elif move[2] == "K":
                lines[row] = "" if move[1] == "2" else lines[row][:column]
            continue
        character = written[at]
        at += 1
        if character == "\r":
            column = 0
        elif character == "\n":
            row += 1
            lines += [""] * (row - len(lines) + 1)
        else:
            if column + columns_of(character) > columns:
                broken.append(lines[row])
                row, column = row + 1, 0
                lines.insert(row, "")
            lines[row] = lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines], broken


def run_on_terminal(words: list[str], *, columns: int, cwd: Path, env: Mapping[str, str]) -> Transcript:
    """Run a command on a terminal of a width; workers are real, and inherit the terminal."""
    transcript = Transcript(" ".join(words), columns=columns)
    with ExitStack() as stack:
        for context in (_inside(cwd), _environment(env), _as_started(words), pytest.MonkeyPatch.context()):
            entered = stack.enter_context(context)
        assert isinstance(entered, pytest.MonkeyPatch)
        _keep(entered, transcript)
        stack.enter_context(_terminal(columns, transcript))
        transcript.code = main.run(words)
    return transcript


def show_again(done: Transcript, *, columns: int, env: Mapping[str, str]) -> Transcript:
    """What a command showed, on a terminal of another width."""
    transcript = Transcript(done.command, done.code, plain=done.plain, columns=columns)
    with _environment(env), _terminal(columns, transcript):
        for call in done.calls:
            call()
    return transcript


@contextmanager
def _terminal(columns: int, transcript: Transcript) -> Iterator[None]:
    """Have a terminal as stdout and stderr, and keep what is written to it."""
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    read = threading.Thread(target=_drain, args=(ours, transcript))
    read.start()
    try:
        with open(theirs, "wb", buffering=0) as terminal, _stream("stdout", terminal), _stream("stderr", terminal):
            yield
    finally:
        read.join(timeout=60)
        os.close(ours)
    assert not read.is_alive(), "the terminal is still open"


def _drain(terminal: int, transcript: Transcript) -> None:
    read = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when the last writer is gone
            part = b""
        if not part:
            transcript.written = read.decode("utf-8")
            return
        read += part


def _keep(patch: pytest.MonkeyPatch, transcript: Transcript) -> None:
    """Also keep every text and message as it is written to a file, and how it is shown."""
    show, say = console.show, console.say

    def keep_text(render: Callable[..., str], result: object, *how: Any, end: str = "", **options: Any) -> None:
        with made_for(Screen(decorated=True)):
            text = render(plain_text.values(result), *how, **options)
        transcript.plain.append(_STYLE.sub("", text).replace(JOINT, " "))
        transcript.calls.append(partial(show, render, result, *how, end=end, **options))
        transcript.calls[-1]()

    def keep_message(kind: str, text: str) -> None:
        transcript.plain.append(f"{kind}: {text} {kind}")
        transcript.calls.append(partial(say, kind, text))
        transcript.calls[-1]()

    patch.setattr(console, "show", keep_text)
    for module in (console, announcements, results, progress):
        patch.setattr(module, "say", keep_message)
