"""Files of weights that are not all there: pointers instead of content, files cut short, shards that are missing."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.core.json_text import MAX_BYTES, parse_json

LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})(?P<suffix>\.\w+)")
_SHOWN = 3
_START = struct.Struct("<Q")
"""What a safetensors file begins with: the length of its header."""


def is_pointer(path: Path) -> bool:
    """Whether a file is what Git leaves in place of one that it stores elsewhere."""
    with path.open("rb") as stream:
        return stream.read(len(LFS_POINTER)) == LFS_POINTER


def pointer_error(path: Path) -> ModelFileError:
    return ModelFileError(
        f"`{path}` is a Git LFS pointer, not the file itself",
        hint="run `git lfs pull` in the folder of the model, or fetch the model again",
    )


def check_files(files: Sequence[Path], indexed: Iterable[str]) -> None:
    """Raise when a file is only a pointer, cut short, or missing among those that an index or their numbers name."""
    for path in files:
        if is_pointer(path):
            raise pointer_error(path)
        if path.suffix == ".safetensors":
            _check_length(path)
    folder, present = files[0].parent, {path.name for path in files}
    missing = sorted({*indexed, *_list_shards(present)} - present)
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing[:_SHOWN]) + (" and more" if len(missing) > _SHOWN else "")
        raise ModelFileError(
            f"`{folder}` has {len(present)} of {len(present) + len(missing)} files of weights; missing: {listed}",
            hint="fetch the whole model again; `hf download` resumes where it stopped",
        )


def _list_shards(present: Iterable[str]) -> set[str]:
    """The names of all shards, by the numbers in the names of those that are there."""
    found = [match for name in present if (match := _NUMBERED.fullmatch(name))]
    return {
        f"{match['stem']}-{number:05}-of-{match['total']}{match['suffix']}"
        for match in found
        if int(match["total"]) <= 10_000
        for number in range(1, int(match["total"]) + 1)
    }


def _check_length(path: Path) -> None:
    """Raise when a safetensors file is shorter than its header says; a damaged header is reported where it is read."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(_START.size)
        length = _START.unpack(start)[0] if len(start) == _START.size else size
        if _START.size + length > size:
            raise ModelFileError(
                f"`{path}` is not a safetensors file: it has {size:,} bytes, fewer than its header",
                hint="fetch it again; the download may not have finished",
            )
        raw = stream.read(length) if length <= MAX_BYTES else b"{}"
    try:
        header = parse_json(raw, lenient=True)
        ends = [int(tensor["data_offsets"][1]) for name, tensor in header.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        ends = []
    expected = _START.size + length + max(ends, default=0)
    if size < expected:
        raise ModelFileError(
            f"`{path}` is cut short: it has {size:,} of {expected:,} bytes",
            hint="fetch it again; the download did not finish",
        )
