"""The content of a version: files by relative path, with digest and size; and which paths are safe to write."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError, RunFailedError
from winml.modelkit.core.file_names import unfit_name
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.suggest import near_path
from winml.modelkit.store import digest
from winml.modelkit.store.atomic import TEMPORARY

SCHEMA = "winml/feed-content/1"
PULLING = ".winml-pull"
"""Folder inside a destination that holds files until all of them have arrived."""
_PATH_LIMIT = 400


class FeedDamaged(RunFailedError):
    """A feed returned something other than what was published."""

    code = "feed-damaged"


@dataclass(frozen=True)
class FileEntry:
    """A file of a version."""

    digest: str
    bytes: int

    def to_json(self) -> dict[str, Any]:
        return {"digest": self.digest, "bytes": self.bytes}


@dataclass(frozen=True)
class Content:
    """The files of a version by relative path."""

    files: Mapping[str, FileEntry]

    def __post_init__(self) -> None:
        check_paths(self.files)

    @cached_property
    def digest(self) -> str:
        """Covers names and contents of all files; the same in every feed."""
        return digest.of_json({path: entry.digest for path, entry in self.files.items()})

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.files.values())

    def blobs(self) -> dict[str, tuple[str, FileEntry]]:
        """Every distinct file once: its first path, by digest."""
        found: dict[str, tuple[str, FileEntry]] = {}
        for path, entry in sorted(self.files.items()):
            found.setdefault(entry.digest, (path, entry))
        return found

    def select(self, pattern: str, *, below: str = "") -> Content:
        """The files whose path matches a pattern, as if all of them were below a folder."""
        fits = pattern_expression(pattern)
        start = f"{below}/" if below else ""
        return Content({path: entry for path, entry in self.files.items() if fits.fullmatch(start + path)})

    def to_json(self) -> dict[str, Any]:
        listed = {path: entry.to_json() for path, entry in sorted(self.files.items())}
        return {"schema": SCHEMA, "digest": self.digest, "files": listed}


def encode(content: Content) -> bytes:
    """The content as a feed stores it."""
    return json.dumps(content.to_json(), indent=1, ensure_ascii=True).encode()


def decode(raw: bytes, *, source: str) -> Content:
    """The content of a version as a feed stored it; one that contradicts itself is damaged."""
    try:
        value = parse_json(raw)
        if value["schema"] != SCHEMA:
            raise ValueError(f"its schema is {value['schema']!r}")
        content = Content({str(p): entry(e["digest"], e["bytes"]) for p, e in value["files"].items()})
        if content.digest != value["digest"]:
            raise ValueError("its digest does not match its files")
    except (ValueError, KeyError, TypeError, AttributeError, DataError) as error:
        raise FeedDamaged(f"the list of files of {source} cannot be read: {error}") from error
    return content


def entry(name: str, count: object) -> FileEntry:
    """A file as a feed describes it, validated."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError(f"the size of a file must be a number of bytes but got {count!r}")
    return FileEntry(digest.check(name), count)


def unsafe(path: str) -> str | None:
    """Why a path is unsafe to write below a folder on some system; None when it is safe."""
    if not path or len(path) > _PATH_LIMIT:
        return f"a path must have 1 to {_PATH_LIMIT} characters"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "it leads outside its folder"
        if reason := unfit_name(part):
            return reason
        if part == PULLING:
            return f"`{PULLING}` is a reserved name"
    return None


def check_paths(paths: Iterable[str]) -> None:
    """Raise when a path leads elsewhere, or two paths collide on a system that ignores case."""
    seen: dict[str, str] = {}
    for path in sorted(paths):
        reason = unsafe(path)
        if reason:
            raise DataError(f"path `{path[:120]}` cannot be published: {reason}")
        other = seen.setdefault(path.casefold(), path)
        if other != path:
            raise DataError(f"`{other}` and `{path}` differ only in case", hint="rename one of them")
    for path in seen:
        for parent in map(str, PurePosixPath(path).parents):
            if parent in seen:
                raise DataError(f"`{seen[parent]}` would be both a file and a folder")


def pattern_expression(pattern: str) -> re.Pattern[str]:
    """A pattern over paths: `*` and `?` match within one folder, `**` crosses folders, the rest is literal."""
    pieces = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    words = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(pieces.get(word) or re.escape(word) for word in words), re.DOTALL)


@dataclass(frozen=True)
class Tree:
    """A folder on this machine and its content when it was read."""

    root: Path
    content: Content

    def path(self, name: str) -> Path:
        return self.root / name


def _names(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        where = Path(folder)
        folders[:] = sorted(f for f in folders if f != PULLING and not f.startswith(TEMPORARY))
        for name in folders:
            if (where / name).is_symlink():
                raise RequestError(f"`{where / name}` is a link to a folder", hint="copy what it points to, or move it")
        for name in sorted(files):
            if name.startswith(TEMPORARY):
                continue
            if not (where / name).is_file():
                raise RequestError(f"`{where / name}` is not a readable file")
            if (where / name).is_symlink() and not (where / name).resolve().is_relative_to(root.resolve()):
                raise RequestError(
                    f"`{where / name}` is a link to a file outside the folder",
                    hint="copy what it points to, or move it",
                )
            yield (where / name).relative_to(root).as_posix()


def scan(root: Path) -> Tree:
    """Read a folder: every file with its digest, without leftovers of interrupted work."""
    if not root.is_dir():
        raise RequestError(f"folder not found: `{root}`", hint=near_path(root))
    files = {name: FileEntry(digest.of_file(root / name), (root / name).stat().st_size) for name in _names(root)}
    if not files:
        raise RequestError(f"folder `{root}` contains no files")
    return Tree(root, Content(files))
