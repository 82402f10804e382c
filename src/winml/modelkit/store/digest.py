"""Content digests, written `sha256:<hex>`; the digest of several files covers all of them and their names."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from winml.modelkit.core.errors import DataError

PREFIX = "sha256:"
_CHUNK = 1 << 20
_FORM = re.compile(r"sha256:[0-9a-f]{64}")


def check(digest: str) -> str:
    """Return the digest; raises when it is not one, so that no other text ever becomes a path."""
    if not _FORM.fullmatch(digest):
        raise DataError(f"invalid digest: `{digest}`")
    return digest


def of_bytes(content: bytes) -> str:
    return PREFIX + hashlib.sha256(content).hexdigest()


def of_file(path: str | os.PathLike[str]) -> str:
    with Path(path).open("rb") as stream:
        return PREFIX + hashlib.file_digest(stream, "sha256").hexdigest()


def of_json(value: Any) -> str:
    """The digest of a value's canonical JSON."""
    return of_bytes(canonical(value))


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def of_files(files: Mapping[str, str]) -> str:
    """The digest of named files from their own digests; a single file has its own.

    The names of external data are part of a model, so names count.
    """
    if len(files) == 1:
        return check(next(iter(files.values())))
    return of_json({name: check(digest) for name, digest in files.items()})


def copy(source: BinaryIO, destination: BinaryIO) -> tuple[str, int]:
    """Copy a stream; returns the digest and number of the bytes written."""
    hasher = hashlib.sha256()
    count = 0
    while chunk := source.read(_CHUNK):
        hasher.update(chunk)
        destination.write(chunk)
        count += len(chunk)
    return PREFIX + hasher.hexdigest(), count
