"""Output to the terminal: data to stdout, messages to stderr."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TextIO, TypeVar

from winml.modelkit.core import plain_text
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.values import to_json
from winml.modelkit.render.screen import END, JOINT, STYLES, Screen, columns_of, made_for
from winml.modelkit.render.wrap import fit, wrap_line

T = TypeVar("T")
_COLOURS = {
    "error": "\x1b[31m",
    "warning": "\x1b[33m",
    "hint": "\x1b[36m",
    "next": "\x1b[36m",
    "report": "\x1b[36m",
    "wrote": "\x1b[32m",
    "note": "\x1b[2m",
}
_RESET = "\x1b[0m"
_ESCAPES = {
    STYLES["good"]: "\x1b[32m",
    STYLES["bad"]: "\x1b[31m",
    STYLES["unsure"]: "\x1b[33m",
    STYLES["quiet"]: "\x1b[2m",
    STYLES["head"]: "\x1b[1m",
    STYLES["bar"]: "\x1b[36m",
    END: _RESET,
    JOINT: " ",
}
_STYLE = re.compile(f"([{''.join(_ESCAPES)}])")
_VIRTUAL_TERMINAL = 0x4  # ENABLE_VIRTUAL_TERMINAL_PROCESSING
_UNASKED = ("note", "next", "report", "wrote")
"""What `--quiet` hides."""
_quiet = False


def set_quiet(value: bool) -> None:
    """Hide progress, notes and next commands (`--quiet`), or show them again."""
    global _quiet
    _quiet = value


def shows_progress(stream: TextIO) -> bool:
    """Whether progress is shown: on a terminal, unless `--quiet`."""
    return is_terminal(stream) and not _quiet


def is_terminal(stream: TextIO) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())


def use_colour(stream: TextIO) -> bool:
    """Colour only on a terminal that supports it, unless `NO_COLOR` is set."""
    wanted = is_terminal(stream) and not os.environ.get("NO_COLOR") and not is_dumb()
    return wanted and reads_escapes(stream)


def is_dumb() -> bool:
    """Whether the terminal says that it can only append."""
    return os.environ.get("TERM") == "dumb"


def reads_escapes(stream: TextIO) -> bool:
    """Whether a terminal reads escape sequences; the classic Windows console prints them until this is enabled."""
    if sys.platform != "win32":
        return True
    import ctypes
    import msvcrt
    from ctypes import wintypes

    kernel = ctypes.WinDLL("kernel32")
    try:
        handle = wintypes.HANDLE(msvcrt.get_osfhandle(stream.fileno()))
    except (OSError, ValueError):
        return False
    mode = wintypes.DWORD()
    if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
        return True  # a terminal that is no console: mintty and its like
    if mode.value & _VIRTUAL_TERMINAL:
        return True
    return bool(kernel.SetConsoleMode(handle, wintypes.DWORD(mode.value | _VIRTUAL_TERMINAL)))


LOCK = threading.RLock()
"""Held by whoever writes, so that lines of a result, messages and progress never mix."""


class Line(Protocol):
    """A line of progress at the bottom of the terminal."""

    def erase(self) -> None: ...
    def draw(self) -> None: ...


_line: Line | None = None


def set_line(line: Line | None) -> None:
    """Set the line of progress that other output goes above; None where there is none."""
    global _line
    _line = line


@contextlib.contextmanager
def above_progress() -> Iterator[None]:
    """Write in here without a line of progress in the way; it is drawn again afterwards."""
    with LOCK:
        line = _line
        if line is not None:
            line.erase()
        try:
            yield
        finally:
            if line is not None:
                line.draw()


def columns(stream: TextIO) -> int | None:
    """The width of a terminal; None for a file, a pipe, and a terminal that does not know it."""
    if not is_terminal(stream):
        return None
    try:
        width = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return None
    # The classic Windows console starts a line by itself after its last column.
    return (width - 1 if sys.platform == "win32" else width) or None


def screen_of(stream: TextIO) -> Screen:
    """What a stream can show."""
    try:
        "✓▏█▁…".encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return Screen(columns(stream), use_colour(stream), unicode=False)
    return Screen(columns(stream), use_colour(stream))


def _write(stream: TextIO, text: str) -> None:
    """Write a line; when the reader is gone the command continues silently, so that its files are still written."""
    try:
        with above_progress():
            _encode(stream, text + "\n")
            stream.flush()
    except OSError as error:
        _give_up(stream)
        if not has_no_reader(error):
            raise


def write_raw(stream: TextIO, text: str) -> bool:
    """Write text as it is to a terminal, which may be gone; whether it was written."""
    try:
        _encode(stream, text)
        stream.flush()
    except OSError:
        return False
    return True


def _encode(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:
        # A console with a small character set gets the text with replacements.
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))


def has_no_reader(error: OSError) -> bool:
    """Whether the other end of a pipe is closed; Windows calls that an invalid argument, too."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


def abandon_stdout() -> int:
    """Discard stdout after a help text whose reader is gone; returns the exit code."""
    _give_up(sys.stdout)
    return 0


def _give_up(stream: TextIO) -> None:
    """Discard this and all later output, including what the interpreter flushes at exit."""
    with contextlib.suppress(OSError, ValueError):  # a stream in a test has no file
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def data(text: str) -> None:
    """Lines of a result, to stdout; values in them must not contain line breaks (see `show`)."""
    _write(sys.stdout, plain_text.lines(text))


def data_piece(text: str) -> None:
    """A piece of text that grows, to stdout; control characters in it are escaped."""
    try:
        with above_progress():
            _encode(sys.stdout, plain_text.lines(text))
            sys.stdout.flush()
    except OSError as error:
        _give_up(sys.stdout)
        if not has_no_reader(error):
            raise


def end_pieces() -> None:
    """End the line that pieces were written to."""
    _write(sys.stdout, "")


def show(render: Callable[..., str], result: object, *how: Any, end: str = "", **options: Any) -> None:
    """A result as text, to stdout, that fits the terminal; control characters in its names are escaped."""
    with made_for(screen_of(sys.stdout)):
        text = fit(render(plain_text.values(result), *how, **options) + end)
    # Names hold no style, and what lies between styles is made safe: no other escape sequence than ours is written.
    parts = _STYLE.split(text)
    _write(sys.stdout, "".join(_ESCAPES.get(part) or plain_text.lines(part) for part in parts))


def data_json(value: object) -> None:
    """The one JSON object of a command; a pipe with a small character set gets escapes, never question marks."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    _write(sys.stdout, plain_text.json_text(json.dumps(to_json(value), indent=2, ensure_ascii=plain, allow_nan=False)))


def show_result(render: Callable[[T], str], result: T, *, as_json: bool) -> None:
    """A command's result, as its JSON or as its text."""
    if as_json:
        data_json(result)
    else:
        show(render, result)


def say(kind: str, text: str) -> None:
    """A line for people: `warning: ...`, `hint: ...`, `next: ...`, `wrote FILE`."""
    if _quiet and kind in _UNASKED:
        return
    label = kind if kind == "wrote" else f"{kind}:"
    # A line break in a name must not start a line that looks like one of winml's.
    message = f"{label} " + plain_text.lines(text).replace("\n", "\n  ")
    width = columns(sys.stderr)
    if width is not None:
        message = "\n".join(part for line in message.split("\n") for part in _wrap_message(kind, line, width))
    if use_colour(sys.stderr):
        message = f"{_COLOURS[kind]}{label}{_RESET}{message.removeprefix(label)}"
    _write(sys.stderr, message)


def say_report(path: str) -> None:
    """The command that shows what was written as a page."""
    say("report", f"winml report {quote(path)} --open")


_SHELL_WORD = re.compile(r"""(?:\$?'[^']*'|"[^"]*"|[^\s'"])+""")


def _wrap_message(kind: str, line: str, width: int) -> list[str]:
    """The lines of a message; a command that is too long for one can still be pasted."""
    if kind not in ("next", "report") or columns_of(line) <= width:
        return wrap_line(line, width)
    if sys.platform == "win32":
        return [line]  # its two shells continue a line in different ways
    lines: list[str] = []
    for word in _SHELL_WORD.findall(line):  # a word of the shell is never broken: it would be two
        if lines and columns_of(f"{lines[-1]} {word} \\") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"  {word}" if lines else word)
    return [f"{part} \\" for part in lines[:-1]] + lines[-1:]


def write_lines(text: str) -> None:
    """Lines that are not winml's own, such as a traceback, to stderr."""
    _write(sys.stderr, plain_text.lines(text).rstrip("\n"))


def quote(path: str) -> str:
    """A path quoted for the shell of this system."""
    return plain_text.shell_word(path)


def error_json(command: str, error: ModelkitError) -> dict[str, Any]:
    """The JSON object of a failure: the error, then its details."""
    found = {**error.details, **(to_json(error.result) if error.result is not None else {})}
    known = {k: v for k, v in found.items() if k not in ("schema", "ok", "error")}
    return {"schema": f"winml/{command}/1", "ok": False, "error": error.to_json(), **known}


def show_error(command: str, error: ModelkitError, *, as_json: bool) -> int:
    """Report an error and return its exit code."""
    if as_json:
        with contextlib.suppress(OSError):  # the error may be that stdout cannot be written
            data_json(error_json(command, error))
    say("error", error.message)
    if error.exit_code == 1:
        for line in error.details.get("log") or ():
            _write(sys.stderr, f"  log: {plain_text.one_line(line)}")
    if error.hint:
        say("hint", error.hint)
    return error.exit_code
