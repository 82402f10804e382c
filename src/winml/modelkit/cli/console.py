"""Writing to the terminal: data to stdout, everything for people to stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

from winml.modelkit.core.errors import ModelkitError

_COLOURS = {
    "error": "\x1b[31m",
    "warning": "\x1b[33m",
    "hint": "\x1b[36m",
    "next": "\x1b[36m",
    "note": "\x1b[2m",
}
_RESET = "\x1b[0m"


def is_terminal(stream: TextIO) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())


def use_colour(stream: TextIO) -> bool:
    """Colour only on a terminal, and never against `NO_COLOR` or a dumb terminal."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text + "\n")
    except UnicodeEncodeError:
        # A console with a small character set still gets the sentence.
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()


def data(text: str) -> None:
    """A result, to stdout."""
    _write(sys.stdout, text)


def data_json(value: dict[str, Any]) -> None:
    """The one JSON object of a command; a pipe with a small character set gets escapes, never question marks."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    _write(sys.stdout, json.dumps(value, indent=2, ensure_ascii=plain, allow_nan=False))


def say(kind: str, text: str) -> None:
    """A line for people: `warning: ...`, `hint: ...`, `next: ...`."""
    label = f"{_COLOURS[kind]}{kind}:{_RESET}" if use_colour(sys.stderr) else f"{kind}:"
    _write(sys.stderr, f"{label} {text}")


def quoted(path: str) -> str:
    """A path as it can be pasted into a shell of Linux or Windows."""
    return f'"{path}"' if " " in path else path


def _details(error: ModelkitError) -> None:
    for line in error.details.get("log") or ():
        _write(sys.stderr, f"  log: {line}")


def error_json(command: str, error: ModelkitError) -> dict[str, Any]:
    """The object for a failure: the error, then what is known besides."""
    known = {k: v for k, v in error.details.items() if k not in ("schema", "ok", "error")}
    return {"schema": f"winml/{command}/1", "ok": False, "error": error.to_json(), **known}


def show_error(command: str, error: ModelkitError, *, as_json: bool) -> int:
    """Tell the user and return the exit code."""
    if as_json:
        data_json(error_json(command, error))
    say("error", error.message)
    if error.exit_code == 1:
        _details(error)
    if error.hint:
        say("hint", error.hint)
    return error.exit_code
