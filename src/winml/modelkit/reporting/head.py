"""The first keys of a JSON file, without the rest of it: results begin with what they are about and end in samples."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

SHORT, LONG = 2**10, 64 * 2**10
"""Bytes that are read first, and again where they did not suffice."""
_DEEPEST = 6
_DECODER = json.JSONDecoder()
_OPEN = re.compile(r"[ \t\r\n]*\{")
_NAME = re.compile(r'[ \t\r\n]*"([^"\\]*)"[ \t\r\n]*:[ \t\r\n]*')
"""A key without escapes, which our writers do not need: an object with others is known up to them."""
_COMMA = re.compile(r"[ \t\r\n]*,")
_SPACE = re.compile(r"[ \t\r\n]*")


class _Cut(Exception):
    """The text ends before the value does."""


def parse_head(raw: bytes) -> dict[str, Any]:
    """The leading keys of the object that a file begins with; none for anything else."""
    return leading_keys(raw.decode("utf-8", "replace").lstrip("\ufeff"))


def leading_keys(text: str) -> dict[str, Any]:
    """The keys of an object whose text may end anywhere; of a value that is cut off, what it begins with."""
    found: dict[str, Any] = {}
    start = _OPEN.match(text)
    if start is not None:
        _read_members(text, start.end(), _DEEPEST, found)
    return found


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
    with contextlib.suppress(_Cut):
        while (name := _NAME.match(text, at)) is not None:
            into[name[1]], after = _read_value(text, name.end(), depth)
            comma = None if after is None else _COMMA.match(text, after)
            if comma is None:
                return
            at = comma.end()


def _read_items(text: str, at: int, depth: int, into: list[Any]) -> None:
    with contextlib.suppress(_Cut):
        while (space := _SPACE.match(text, at)) is not None:
            item, after = _read_value(text, space.end(), depth)
            into.append(item)
            comma = None if after is None else _COMMA.match(text, after)
            if comma is None:
                return
            at = comma.end()
