"""`folder:PATH`: a feed in a folder, on a disk or a share; versions share identical files."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path

from winml.modelkit.core import patience
from winml.modelkit.core.errors import RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.file_names import unfit_name
from winml.modelkit.core.location import expand
from winml.modelkit.feed.base import (
    FeedRefused,
    Fetched,
    FileMoved,
    Listed,
    NotPublished,
    Published,
    PublishOutcome,
    Stored,
    Verified,
    attempt_publish,
    compare_stored,
)
from winml.modelkit.feed.content import Content, FeedDamaged, FileEntry, Tree, decode, encode
from winml.modelkit.feed.landing import Delivery, find_damaged, land, read_chunks
from winml.modelkit.feed.names import check_package, check_version
from winml.modelkit.store import atomic, digest
from winml.modelkit.store.objects import ObjectMissing, Objects

PREFIX = "folder:"
SCHEMA = "winml/feed-folder/1"
GRACE_S = 3600.0
"""A deletion keeps objects used this recently: another process may be publishing a version that names them."""
_MARKER = "winml_feed.json"


class FolderFeed:
    """`objects/` holds files by digest, `packages/<package>/<version>.json` names them."""

    can_delete = True
    versions_move = False

    def __init__(self, address: str, root: Path) -> None:
        self.address = address
        self.root = root
        self._packages = root / "packages"
        self._objects = Objects(root / "objects")

    @classmethod
    def at(cls, address: str) -> FolderFeed:
        """The feed of an address; a plain path is one."""
        path = address.removeprefix(PREFIX)
        if not path:
            raise RequestError(f"`{address}` names no folder", hint="for example `folder:artifacts`")
        return cls(address, expand(path))

    def check(self) -> None:
        """Turn an empty folder into a feed; raises for a folder with other files."""
        marker = self.root / _MARKER
        # The marker is the first file of a feed, so it is checked after the others.
        if self._holds_files() and not marker.is_file():
            raise RequestError(f"`{self.root}` is not a feed", hint="name a new or an empty folder")
        try:
            if not marker.is_file():
                atomic.write_bytes(marker, json.dumps({"schema": SCHEMA}).encode())
        except (FileNotFoundError, NotADirectoryError, FileExistsError) as error:  # the last is Windows below a file
            raise UnavailableError(f"feed folder `{self.root}` cannot be created: {error.strerror}") from error

    def _holds_files(self) -> bool:
        try:
            # One call: between two, another process may create the folder, whose marker does not exist yet.
            return any(not path.name.startswith(atomic.TEMPORARY) for path in self.root.iterdir())
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            return self.root.exists()  # a file, or below one
        except OSError:
            if self.root.is_file():  # Windows has several answers for a file that is listed
                return True
            raise

    def _ask(self) -> None:
        """Raise when the folder does not exist: a share that is not mounted must not look like an empty feed."""
        if not (self.root / _MARKER).is_file():
            raise UnavailableError(
                f"no feed in folder `{self.root}`", hint="check the path; the first `winml feed push` creates one"
            )

    def _path(self, package: str, version: str) -> Path:
        return self._place(package) / f"{check_version(version)}.json"

    def _place(self, package: str) -> Path:
        """The folder of a package, valid on every system that may share the disk."""
        if why := unfit_name(check_package(package)):
            raise RequestError(f"package `{package}` cannot be stored in a folder: {why}", hint="choose another name")
        return self._packages / package

    def publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        return attempt_publish(lambda: self._publish(package, version, tree, on_event))

    def _publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        self.check()
        there = self.find(package, version)
        if there is not None and there.content.digest != tree.content.digest:
            return compare_stored(there, tree.content)
        sent = sum(self._put(tree, path, entry, on_event) for path, entry in tree.content.blobs().values())
        with self._one_writer(package):
            there = self.find(package, version)
            if there is not None:
                return compare_stored(there, tree.content, sent)
            atomic.write_bytes(self._path(package, version), encode(tree.content))
        there = self.find(package, version)
        if there is None:
            raise RunFailedError(f"version `{version}` was deleted while it was being published")
        return Published(there.content.digest, there.reference, sent)

    def _put(self, tree: Tree, path: str, entry: FileEntry, on_event: OnEvent) -> int:
        """Store a file unless it exists; returns the bytes written."""
        on_event(FileMoved(path, 0, entry.bytes))
        with contextlib.suppress(ObjectMissing):
            self._objects.open_path(entry.digest)
            return 0
        if self._objects.put_file(tree.path(path)) != entry.digest:
            raise FeedRefused(f"`{tree.path(path)}` changed while it was being published")
        return entry.bytes

    @contextlib.contextmanager
    def _one_writer(self, package: str) -> Iterator[None]:
        from filelock import FileLock, Timeout

        folder = self._place(package)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / ".lock", timeout=60):
                yield
        except Timeout as error:
            raise UnavailableError(f"package `{package}` is being written by another process") from error
        except OSError as error:
            raise atomic.write_error(error, folder) from error

    def packages(self) -> tuple[str, ...]:
        self._ask()
        folders = self._packages.iterdir() if self._packages.is_dir() else ()
        return tuple(sorted(folder.name for folder in folders if folder.is_dir()))

    def versions(self, package: str) -> tuple[Listed, ...] | None:
        self._ask()
        folder = self._place(package)
        if not folder.is_dir():
            return None
        return tuple(Listed(path.name.removesuffix(".json")) for path in sorted(folder.glob("*.json")))

    def find(self, package: str, version: str) -> Stored | None:
        self._ask()
        path = self._path(package, version)
        try:
            raw = patience.reading(path.read_bytes)
        except FileNotFoundError:
            return None
        return Stored(package, version, decode(raw, source=f"`{path}`"), digest.of_bytes(raw))

    @contextlib.contextmanager
    def _open(self, path: str, entry: FileEntry, offset: int) -> Iterator[Delivery]:
        try:
            found = self._objects.open_path(entry.digest)
        except ObjectMissing as error:
            raise FeedDamaged(f"`{path}` is missing or damaged in `{self.root}`", hint="push it again") from error
        yield Delivery(offset, read_chunks(found, offset))

    def fetch(self, stored: Stored, into: Path, *, only: Content, overwrite: bool, on_event: OnEvent) -> Fetched:
        return land(only, into, self._open, overwrite=overwrite, on_event=on_event)

    def verify(self, stored: Stored, on_event: OnEvent) -> Verified:
        damaged = find_damaged(stored.content, self._open, on_event)
        for path in damaged:
            self._objects.verify(stored.content.files[path].digest)  # moves it aside, so that pushing again repairs it
        return Verified(len(stored.content.files), stored.content.bytes, damaged)

    def delete(self, package: str, *versions: str) -> None:
        self._ask()
        for version in versions:
            path = self._path(package, version)
            try:
                atomic.patiently(path.unlink)
            except FileNotFoundError as error:
                raise NotPublished(f"`{package}` has no version `{version}` in `{self.address}`") from error
            except OSError as error:
                raise atomic.write_error(error, path) from error
        self._sweep()

    def close(self) -> None:
        """Nothing is held open."""

    def _sweep(self) -> None:
        """Remove objects that no version names."""
        named = {entry.digest for content in self._contents() for entry in content.files.values()}
        for item in self._objects:
            if item.digest not in named and time.time() - item.used_at > GRACE_S:
                self._objects.remove(item.digest)

    def _contents(self) -> Iterator[Content]:
        for path in self._packages.glob("*/*.json"):
            with contextlib.suppress(FileNotFoundError):  # another process has just deleted it
                yield decode(patience.reading(path.read_bytes), source=f"`{path}`")
