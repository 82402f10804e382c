"""The build folder: made beside its place and renamed into it, so that it is complete or absent."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from winml.modelkit.building.manifest import load_manifest
from winml.modelkit.building.result import FilesBy
from winml.modelkit.core.build_folder import MANIFEST
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError, RunFailedError
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import to_json
from winml.modelkit.store import atomic
from winml.modelkit.store.objects import Objects


@dataclass(frozen=True)
class Existing:
    """The build that a folder holds already."""

    identity: str
    """The identity of the build, from its manifest."""
    given_up: tuple[str, ...] = ()
    """The identity of the requested build, where another precision replaced it."""


def place(output: str) -> Path:
    """The real path of a folder that a user named: behind a link, which a folder renamed into place would replace."""
    path = Path(output)
    return path.resolve() if path.is_symlink() or ".." in path.parts else path.absolute()


def look(folder: Path) -> Existing | None:
    """The build in a folder, None when the folder is free; raises when it holds anything else than a build."""
    if not folder.exists():
        if not folder.parent.is_dir():
            raise RequestError(f"output folder's parent not found: `{folder.parent}`", hint=near_path(folder.parent))
        return None
    if not folder.is_dir():
        raise RequestError(f"output `{folder}` is a file", hint="name a folder")
    _refuse_mount_point(folder)
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if not present:
        return None
    try:
        manifest = load_manifest(folder / MANIFEST)
    except DataError:  # which of the files are ours is unknown
        manifest = None
    foreign = sorted(present if manifest is None else present - {MANIFEST, *manifest.folder})
    if foreign:
        listed = ", ".join(f"`{name}`" for name in foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise RequestError(
            f"output folder `{folder}` holds files that do not belong to a build: {listed}",
            hint="name a new folder, or move them away",
        )
    assert manifest is not None
    return Existing(manifest.identity, tuple(str(fallback.identity) for fallback in manifest.fallbacks))


def _refuse_mount_point(folder: Path) -> None:
    """A mount point cannot be renamed, so that a build could not take its place as a whole."""
    if os.path.ismount(folder):  # Path.is_mount came to Windows with Python 3.12
        raise RequestError(
            f"output folder `{folder}` is a mount point", hint=f"name a folder inside it: `{folder / 'build'}`"
        )


def check(folder: Path, identity: str, *, overwrite: bool) -> None:
    """Raise when a build may not go into `folder`: another build is there and may not be overwritten."""
    there = look(folder)
    same = there is None or identity in (there.identity, *there.given_up)
    if not same and not overwrite:
        raise RequestError(f"output folder holds another build: `{folder}`", hint="add `--overwrite` to replace it")


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """A new folder that takes the place of `folder` when the block ends well, and is removed when it does not."""
    staged = atomic.temporary_name(folder.parent)
    try:
        try:
            staged.mkdir(parents=True)
            yield staged
            _swap(staged, folder)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise RunFailedError(f"another process filled `{folder}` meanwhile", hint="run it again") from error
            raise atomic.write_error(error, folder) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _swap(staged: Path, folder: Path) -> None:
    look(folder)  # files may have been added since the work began
    old = atomic.temporary_name(folder.parent)
    try:
        if folder.exists():
            atomic.move(folder, old)
        atomic.move(staged, folder)
    finally:  # also after Ctrl-C between the two
        if old.exists() and not folder.exists():
            atomic.move(old, folder)
        shutil.rmtree(old, ignore_errors=True)


def link_files(objects: Objects, files: Mapping[str, str], folder: Path) -> FilesBy:
    """Make objects appear in a folder; `link`, or `copy` when any of them had to be copied."""
    ways = {objects.link_out(digest, folder / name) for name, digest in files.items()}
    return "copy" if "copy" in ways else "link"


def write_json(path: Path, value: object) -> None:
    """Write a value, or a mapping of them."""
    text = json.dumps(to_json(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    atomic.write_bytes(path, text.encode())
