"""Reads JSON that others wrote: any problem with it is one error, and a valid value is safe to work with.

The standard reader lets through what ends a program later: nesting that no recursive function survives, numbers that
fit no type, halves of characters that cannot be written, two values under one key of which readers take different ones.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from winml.modelkit.core import patience
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import read_at_most

MAX_BYTES = 64 * 2**20
"""Documents are small; one of this size takes less than 2 GiB once it is read, whatever is in it."""
MAX_DEPTH = 100
_LOW, _HIGH = -(2**63), 2**64 - 1
_BEYOND = 1 << 1023
"""Whole numbers that are larger do not become floats."""


class JSONError(ValueError):
    """The text is not JSON, or not such that a program can rely on it."""


def parse_json(raw: bytes | bytearray | str, *, lenient: bool = False, max_bytes: int = MAX_BYTES) -> Any:
    """The value in a text in any UTF; a JSONError says what is wrong with it.

    `lenient` is for files of other programs, which write what Python's reader takes: NaN, Infinity, numbers beyond 64
    bits, and a key twice, of which the last counts.
    """
    if len(raw) > max_bytes:
        raise JSONError(f"it has {len(raw)} bytes, more than the limit of {max_bytes}")
    strict: dict[str, Any] = {} if lenient else {"object_pairs_hook": _once, "parse_constant": _refuse_constant}
    try:
        value = json.loads(raw, **strict)  # noqa: TID251 - the one place
    except RecursionError as error:
        raise JSONError("it is nested too deeply") from error
    except JSONError:
        raise
    except ValueError as error:
        raise JSONError(str(error)) from error
    check_value(value, lenient=lenient)
    return value


def read_json(path: Path, *, lenient: bool = False, max_bytes: int = MAX_BYTES) -> Any:
    """The value in a file; raises OSError, or a JSONError that does not name the file."""
    with patience.reading(lambda: path.open("rb")) as stream:
        raw = read_at_most(stream, max_bytes + 1)  # a pipe has no size to look at
    if len(raw) > max_bytes:
        raise JSONError(f"it is larger than the limit of {max_bytes} bytes")
    return parse_json(raw, lenient=lenient, max_bytes=max_bytes)


def read_object(path: Path, *, lenient: bool = False) -> dict[str, Any]:
    """The object in a file; a DataError names the file, errors of the system are OSErrors."""
    try:
        value = read_json(path, lenient=lenient)
    except JSONError as error:
        raise DataError(f"`{path}` is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"`{path}` must hold a JSON object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicate keys: of two, readers would take different ones."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise JSONError(f"key {twice!r:.80} is given twice")
    return found


def _refuse_constant(word: str) -> NoReturn:
    raise JSONError(f"{word} is not a JSON number")


def check_value(value: Any, *, lenient: bool = False) -> None:
    """Raise for values that later code cannot handle, level by level: recursion would fail first."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            else:
                _check_plain(item, lenient=lenient)
        if not below:
            return
        level = below
    raise JSONError(f"it is nested more than {MAX_DEPTH} deep")


def _check_plain(item: object, *, lenient: bool) -> None:
    if isinstance(item, str):
        try:
            if not item.isascii():
                item.encode()
        except UnicodeEncodeError as error:
            raise JSONError("it holds half of a character (a lone surrogate)") from error
    elif isinstance(item, float):
        if not lenient and not math.isfinite(item):
            raise JSONError("it holds a number that is too large")
    elif isinstance(item, int) and not (-_BEYOND < item < _BEYOND if lenient else _LOW <= item <= _HIGH):
        raise JSONError("it holds a number that is too large")
