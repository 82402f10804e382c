"""How much data of others is read into memory: claimed sizes are checked before anything is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from winml.modelkit.core.errors import DataError

VARIABLE = "WINML_MAX_SAMPLE"
"""Bytes; a variable, because workers read data too. Only the command line and the user's environment set it."""
DEFAULT_SAMPLE_BYTES = 512 * 2**20
HINT = "if the data is right, raise the limit with `--max-sample SIZE`"

_CHUNK = 1 << 20


def sample_bytes() -> int:
    """How many bytes the inputs of one run may take when they come from a file."""
    given = os.environ.get(VARIABLE, "")
    return int(given) if given.isdecimal() else DEFAULT_SAMPLE_BYTES


def text_bytes() -> int:
    """How long a line of text may be; what is made of a line takes about eight times as much."""
    return max(1, sample_bytes() // 8)


def check_sample(count: int, what: str) -> None:
    """Raise when something would take more than a sample may."""
    if count > sample_bytes():
        raise DataError(f"{what} would take {_size(count)}, more than {_size(sample_bytes())}", hint=HINT)


def read_at_most(stream: BinaryIO, count: int) -> bytes:
    """Up to this many bytes: `read` of all at once has the memory for them reserved, which takes Windows 0.2 s."""
    chunks: list[bytes] = []
    while count and (chunk := stream.read(min(count, _CHUNK))):
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)


def read_sample(path: Path, where: str) -> bytes:
    """The content of a file that is one sample, read no further than a sample may be long."""
    most = sample_bytes()
    with path.open("rb") as stream:
        content = read_at_most(stream, most + 1)
    if len(content) > most:
        raise DataError(f"{where} is larger than {_size(most)}", hint=HINT)
    return content


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
