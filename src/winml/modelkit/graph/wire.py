"""The wire format of protobuf: fields of a message by number and place, without their content."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""How the bytes of a field are written."""

Field = tuple[int, int, int]
"""Field number, begin and end of its bytes."""


def varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    """A number, and where the next byte is."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number longer than 64 bits")


def fields_of(data: mmap.mmap, begin: int, end: int) -> Iterator[Field]:
    """The fields of the message between two places."""
    at = begin
    while at < end:
        key, at = varint(data, at)
        kind, start = key & 7, at
        if kind == VARINT:
            _, at = varint(data, at)
        elif kind == BYTES:
            length, start = varint(data, at)
            at = start + length
        elif kind in (FIXED64, FIXED32):
            at += 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind}")
        if at > end:
            raise ValueError("a field that ends after its message")
        yield key >> 3, start, at


def text_of(data: mmap.mmap, begin: int, end: int) -> str:
    """The text between two places."""
    return data[begin:end].decode("utf-8", "replace")
