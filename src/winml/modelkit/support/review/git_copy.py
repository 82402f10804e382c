"""A copy of a git repository that holds objects and names alone, so that nothing in it makes git run or fetch anything.

Configs, hooks, attributes, alternates, replacements, grafts, modules and caches of the repository are never copied, and
the repository is located by our own code: git is not started in a folder from other people.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from winml.modelkit.core.dataclass import dataclass

LARGEST_BYTES = 8 * 2**30
"""Objects of more than this are not copied."""
_LARGEST_TEXT_BYTES = 64 * 2**20
_CHUNK = 1 << 20
_HEX = r"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_OBJECT = re.compile(_HEX)
_PACK = re.compile(rf"pack-{_HEX}\.(?:pack|idx)")
_PACKED = re.compile(rf"({_HEX}) (refs/\S+)")
_NAME = re.compile(r"refs(?:/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+(?<!\.)(?<!\.lock))+")
_DEEPEST = 5


class NotAsked(ValueError):
    """Git could not be queried; the message is the reason."""


@dataclass(frozen=True)
class GitFolder:
    """The folders of a repository to copy from."""

    top: Path
    """The working tree."""
    own: Path
    """Holds HEAD."""
    common: Path
    """Holds objects and names; another folder than `own` for one of several working trees."""


def find_repository(place: Path) -> GitFolder:
    """The repository that contains a folder, found by the name `.git` only: bare repositories do not count."""
    if not place.is_dir():
        raise NotAsked(f"folder not found: `{place}`")
    place = place.resolve()
    for top in (place, *place.parents):
        found = top / ".git"
        try:
            mode = found.lstat().st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise NotAsked(f"`{found}` cannot be read: {error.strerror}") from error
        if stat.S_ISDIR(mode):
            return GitFolder(top, found, found)
        if stat.S_ISREG(mode):
            return _working_tree(top, found)
        raise NotAsked(f"`{found}` is neither a folder nor a file, and is not followed")
    raise NotAsked(f"`{place}` is not in a git repository")


def _working_tree(top: Path, link: Path) -> GitFolder:
    """One of several working trees of a repository, which has to list it: any file can name a folder."""
    said = _read_text(link)
    if not said.startswith("gitdir:"):
        raise NotAsked(f"`{link}` names no repository")
    own = top / said.removeprefix("gitdir:").strip()
    wrong = NotAsked(f"`{link}` points to `{own}`, which does not point back to it")
    try:
        back = (own / _read_text(own / "gitdir").strip()).resolve()
        common = _read_text(own / "commondir").strip()
    except NotAsked as error:
        raise wrong from error
    if back != link or common != "../.." or own.parent.name != "worktrees":
        raise wrong
    return GitFolder(top, own, own.parent.parent)


def copy_repository(git: GitFolder, folder: Path) -> None:
    """Write a bare repository with the objects, names and head of another into an empty folder."""
    try:
        names = _names(git)
        head = _head(git, names)
        if (git.common / "objects" / "info" / "alternates").exists():
            raise NotAsked(f"`{git.common}` borrows objects from another repository, which is not followed")
        _copy_objects(git.common / "objects", folder / "objects", len(head))
        _write_names(folder, names, head)
        shallow = git.common / "shallow"
        if shallow.exists():
            cut = [line for line in _read_text(shallow).splitlines() if _OBJECT.fullmatch(line)]
            (folder / "shallow").write_text("".join(f"{line}\n" for line in cut), encoding="ascii", newline="\n")
    except OSError as error:
        raise NotAsked(f"`{git.common}` cannot be read: {error}") from error


def _write_names(folder: Path, names: dict[str, str], head: str) -> None:
    (folder / "refs").mkdir()
    lines = ["# pack-refs with: sorted", *(f"{names[name]} {name}" for name in sorted(names, key=encode_name))]
    (folder / "packed-refs").write_bytes(b"".join(encode_name(line) + b"\n" for line in lines))
    (folder / "HEAD").write_text(f"{head}\n", encoding="ascii", newline="\n")
    hashed = "sha256" if len(head) == 64 else "sha1"
    (folder / "config").write_text(
        f"[core]\n\trepositoryformatversion = {int(hashed != 'sha1')}\n\tbare = true\n"
        + (f"[extensions]\n\tobjectFormat = {hashed}\n" if hashed != "sha1" else ""),
        encoding="ascii",
        newline="\n",
    )


def _head(git: GitFolder, names: dict[str, str]) -> str:
    said = _read_text(git.own / "HEAD").strip()
    head = names.get(said.removeprefix("ref:").strip()) if said.startswith("ref:") else said
    if head is None or not _OBJECT.fullmatch(head):
        raise NotAsked(f"`{git.own}` has no commit at HEAD")
    return head


def _names(git: GitFolder) -> dict[str, str]:
    """Objects by the names of branches and tags; replacements of objects are excluded."""
    found: dict[str, str] = {}
    packed = git.common / "packed-refs"
    if packed.exists():
        for line in _read_text(packed).split("\n"):
            entry = _PACKED.fullmatch(line)
            if entry:
                found[entry[2]] = entry[1]
    symbolic = {}
    for name, path in _loose(git.common / "refs", "refs"):
        said = _read_text(path).strip()
        if said.startswith("ref:"):
            symbolic[name] = said.removeprefix("ref:").strip()
        elif _OBJECT.fullmatch(said):
            found[name] = said
    for name, other in symbolic.items():
        for _ in range(_DEEPEST):
            other = symbolic.get(other, other)
        if other in found:
            found[name] = found[other]
    fits = {n: o for n, o in found.items() if _NAME.fullmatch(n) and ".." not in n and "@{" not in n}
    return {n: o for n, o in fits.items() if not n.startswith("refs/replace/")}


def _loose(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """Files below a folder that are not links, with their names."""
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _loose(Path(entry.path), f"{name}/{entry.name}")
        elif entry.is_file(follow_symlinks=False):
            yield f"{name}/{entry.name}", Path(entry.path)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """The entries of a folder; a link to a folder is not followed."""
    if not folder.is_dir() or folder.is_symlink():
        raise NotAsked(f"`{folder}` is not a folder")
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _copy_objects(source: Path, target: Path, length: int) -> None:
    """Copy loose objects and packs, and nothing else."""
    left = LARGEST_BYTES
    (target / "pack").mkdir(parents=True)
    for entry in _entries(source):
        if not entry.is_dir(follow_symlinks=False):
            continue
        loose = len(entry.name) == 2
        if not loose and entry.name != "pack":
            continue
        for file in _entries(Path(entry.path)):
            fits = _OBJECT.fullmatch(entry.name + file.name) if loose else _PACK.fullmatch(file.name)
            if fits and (not loose or len(entry.name + file.name) == length):
                (target / entry.name).mkdir(exist_ok=True)
                left -= _copy_file(Path(file.path), target / entry.name / file.name, left)


def _copy_file(source: Path, target: Path, limit: int) -> int:
    """Copy a file up to its current size; returns the number of bytes."""
    with _open(source) as stream, target.open("xb") as out:
        size = left = os.fstat(stream.fileno()).st_size
        if size > limit:
            raise NotAsked(f"its objects take more than {LARGEST_BYTES / 2**30:.0f} GiB")
        while left > 0 and (chunk := stream.read(min(left, _CHUNK))):
            out.write(chunk)
            left -= len(chunk)
    return size


def decode_name(raw: bytes) -> str:
    """A name as git keeps it, of any bytes; `os.fsdecode` raises on Windows where they are not UTF-8."""
    return raw.decode("utf-8", "surrogateescape")


def encode_name(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _read_text(path: Path) -> str:
    with _open(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > _LARGEST_TEXT_BYTES:
            raise NotAsked(f"`{path}` is larger than any that git writes")
        return decode_name(stream.read(size))


def _open(path: Path) -> BinaryIO:
    """Open a file that is not a link, pipe or device: reading one of those leads elsewhere, or never ends."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise NotAsked(f"`{path}` is not a file")
        return os.fdopen(os.open(path, flags), "rb")
    except OSError as error:
        raise NotAsked(f"`{path}` cannot be read: {error.strerror}") from error
