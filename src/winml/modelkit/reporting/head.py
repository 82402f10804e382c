"""The first keys of a JSON file, without the rest of it: results begin with what they are about and end in samples."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

SHORT, LONG = 4 * 2**10, 64 * 2**10
"""Bytes that are read first, and again where they did not suffice."""
_DEEPEST = 6
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")


class _Cut(Exception):
    """The text ends before the value does."""


def parse_head(raw: bytes) -> dict[str, Any]:
    """The leading keys of the object that a file begins with; none for anything else."""
    return leading_keys(raw.decode("utf-8", "replace").lstrip("\ufeff"))


def leading_keys(text: str) -> dict[str, Any]:
    """The keys of an object whose text may end anywhere; of a value that is cut off, what it begins with."""
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return {}
    found: dict[str, Any] = {}
    _read_members(text, at + 1, _DEEPEST, found)
    return found


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None  # it matches nothing, too
    return match.end()


def _read_value(text: str, at: int, depth: int) -> tuple[Any, int | None]:
    """A value and where it ends, None for one that is cut off."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        pass  # cut off, or no JSON: what it begins with is all that can be known
    if depth and text.startswith("{", at):
        members: dict[str, Any] = {}
        _read_members(text, at + 1, depth - 1, members)
        return members, None
    if depth and text.startswith("[", at):
        items: list[Any] = []
        _read_items(text, at + 1, depth - 1, items)
        return items, None
    raise _Cut


def _read_members(text: str, at: int, depth: int, into: dict[str, Any]) -> None:
    """Add the members that are there, up to the end of the text or of the object."""
    with contextlib.suppress(ValueError, RecursionError, _Cut):
        while True:
            name, end = _DECODER.raw_decode(text, _skip(text, at))
            at = _skip(text, end)
            if not isinstance(name, str) or not text.startswith(":", at):
                return
            into[name], after = _read_value(text, _skip(text, at + 1), depth)
            if after is None or not text.startswith(",", at := _skip(text, after)):
                return
            at += 1


def _read_items(text: str, at: int, depth: int, into: list[Any]) -> None:
    with contextlib.suppress(_Cut):
        while True:
            item, after = _read_value(text, _skip(text, at), depth)
            into.append(item)
            if after is None or not text.startswith(",", at := _skip(text, after)):
                return
            at += 1
