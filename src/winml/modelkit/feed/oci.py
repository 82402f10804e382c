"""`oci://HOST[:PORT]/REPOSITORY`: a feed in an OCI registry. A package is a repository below it, a version is a tag.

A registry lets anybody move a tag, so a tag is an alias here: what was published is its manifest's digest, and the tag
is read back before it counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import DataError, RequestError, UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.location import cache_root
from winml.modelkit.feed.base import (
    Conflict,
    FeedRefused,
    Fetched,
    FileMoved,
    Listed,
    NamingVersion,
    NotPublished,
    Published,
    PublishOutcome,
    Stored,
    Verified,
    VersionNamed,
    attempt_publish,
    cannot_delete,
    compare_stored,
)
from winml.modelkit.feed.content import Content, FeedDamaged, FileEntry, Tree, entry
from winml.modelkit.feed.credentials import credentials_for
from winml.modelkit.feed.landing import Delivery, Source, find_damaged, land, read_chunks
from winml.modelkit.feed.names import check_package, check_version
from winml.modelkit.feed.registry import MANIFEST_TYPE, Body, Registry, is_loopback
from winml.modelkit.store import atomic, digest

PREFIX = "oci://"
PLAIN_PREFIX = "oci+http://"
"""Without encryption; a registry on this machine needs none and is reached that way by `oci://` too."""

ARTIFACT_TYPE = "application/vnd.winml.package.v1"
_TITLE = "org.opencontainers.image.title"
_VERSION = "org.opencontainers.image.version"
_EMPTY = b"{}"
_EMPTY_TYPE = "application/vnd.oci.empty.v1+json"
_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9.\-]+|\[[0-9A-Fa-f:]+\])(?P<port>:\d{1,5})?/(?P<repository>.+)")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")


def manifest_of(content: Content, version: str) -> bytes:
    """The manifest of a version: the same bytes, and so the same digest, for every publisher at any time.

    It names its version, because a registry deletes manifests together with every tag that points to them.
    """
    layers = [
        {
            "mediaType": "application/octet-stream",
            "digest": item.digest,
            "size": item.bytes,
            "annotations": {_TITLE: path},
        }
        for path, item in sorted(content.files.items())
    ]
    config = {"mediaType": _EMPTY_TYPE, "digest": digest.of_bytes(_EMPTY), "size": len(_EMPTY)}
    return digest.canonical(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "artifactType": ARTIFACT_TYPE,
            "config": config,
            "layers": layers,
            "annotations": {_VERSION: version},
        }
    )


def content_of(raw: bytes, *, source: str) -> Content:
    """The files that a manifest names; raises when it cannot be used, for example for unsafe paths."""
    try:
        layers: list[dict[str, Any]] = parse_json(raw)["layers"]
        files = {str(item["annotations"][_TITLE]): entry(item["digest"], item["size"]) for item in layers}
        if len(files) != len(layers):
            raise ValueError("two files have the same name")
        return Content(files)
    except (ValueError, KeyError, TypeError, DataError) as error:
        raise FeedDamaged(f"the manifest of {source} cannot be used: {error}") from error


class SeenBlobs:
    """The repositories of a registry where blobs were seen, kept in the cache; only a hint for mounting."""

    def __init__(self, host: str) -> None:
        self._folder = cache_root() / "feeds" / hashlib.sha256(host.encode()).hexdigest()[:16]

    def _path(self, name: str) -> Path:
        return self._folder / digest.check(name).removeprefix(digest.PREFIX)

    def where(self, name: str, *, other_than: str) -> str | None:
        try:
            found = self._path(name).read_text("ascii")
        except (OSError, UnicodeDecodeError):
            return None
        return found if found != other_than and _REPOSITORY.fullmatch(found) else None

    def remember(self, name: str, repository: str) -> None:
        with contextlib.suppress(
            UnavailableError, OSError
        ):  # a hint that cannot be stored costs bytes, not the publish
            atomic.write_bytes(self._path(name), repository.encode("ascii"))

    def __contains__(self, name: str) -> bool:
        return self._path(name).exists()


class OCIFeed:
    """A part of a registry: all repositories below one name."""

    can_delete = True
    versions_move = True

    def __init__(self, address: str, base: str, host: str, repository: str) -> None:
        self.address = address
        self._base = base
        self._host = host
        self._repository = repository
        self._seen = SeenBlobs(host)

    @classmethod
    def at(cls, address: str) -> OCIFeed:
        """The feed of an address."""
        plain = address.startswith(PLAIN_PREFIX)
        found = _ADDRESS.fullmatch(address.removeprefix(PLAIN_PREFIX).removeprefix(PREFIX).rstrip("/"))
        if found is None or not _REPOSITORY.fullmatch(found["repository"]):
            raise RequestError(
                # A password must not be part of an address, and an address with one must not be part of a message.
                f"not an address of an OCI feed: `{address.rpartition('@')[2]}`",
                hint="write `oci://HOST[:PORT]/REPOSITORY` in lower case, without user name and password",
            )
        host = found["host"] + (found["port"] or "")
        scheme = "http" if plain or is_loopback(host) else "https"
        return cls(address, f"{scheme}://{host}", host, found["repository"])

    @cached_property
    def _registry(self) -> Registry:
        """The registry, after checking that it is one: a 404 of any other server would read as "not published"."""
        registry = Registry(self._base, credentials_for(self._host))
        try:
            registry.ping()
        except BaseException:
            registry.close()
            raise
        return registry

    def _of(self, package: str) -> str:
        return f"{self._repository}/{check_package(package)}"

    def check(self) -> None:
        self._registry.ping()

    def publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        return attempt_publish(lambda: self._publish(package, check_version(version), tree, on_event))

    def _publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        there = self.find(package, version)
        if there is not None and there.content.digest != tree.content.digest:
            return compare_stored(there, tree.content)
        sent = self._send_all(self._of(package), tree, on_event)
        on_event(NamingVersion(version))
        there = self.find(package, version)
        if there is not None:
            return compare_stored(there, tree.content, sent)
        raw = manifest_of(tree.content, version)
        self._registry.put_manifest(self._of(package), version, raw)
        on_event(VersionNamed(version))
        return self._read_back(package, version, raw, sent)

    def _send_all(self, repository: str, tree: Tree, on_event: OnEvent) -> int:
        """Put all files into a repository, and the empty config that every manifest names; returns the bytes sent."""
        config = FileEntry(digest.of_bytes(_EMPTY), len(_EMPTY))
        sent = sum(
            self._send(repository, item, self._body(tree, path, item, on_event))
            for path, item in tree.content.blobs().values()
        )
        return sent + self._send(repository, config, lambda: iter([_EMPTY]))

    def _send(self, repository: str, item: FileEntry, body: Body) -> int:
        sent = 0
        if not self._registry.has_blob(repository, item.digest):
            mount_from = self._seen.where(item.digest, other_than=repository)
            sent = self._registry.put_blob(repository, item, body, mount_from=mount_from)
        if sent or item.digest not in self._seen:
            self._seen.remember(item.digest, repository)
        return sent

    @staticmethod
    def _body(tree: Tree, path: str, item: FileEntry, on_event: OnEvent) -> Body:
        """A file as a stream that has the size it had when it was read; its digest is the registry's to check."""

        def chunks() -> Iterator[bytes]:
            count = 0
            for chunk in read_chunks(tree.path(path)):
                count += len(chunk)
                if count > item.bytes:
                    break
                yield chunk
                on_event(FileMoved(path, count, item.bytes))
            if count != item.bytes:
                raise FeedRefused(f"`{tree.path(path)}` changed while it was being published")

        return chunks

    def _read_back(self, package: str, version: str, raw: bytes, sent: int) -> PublishOutcome:
        """What the tag leads to now: writers may have overtaken each other, and the registry lets the last one win."""
        found = self.find(package, version)
        if found is None:
            raise FeedRefused(f"version `{version}` was deleted while it was being published")
        if found.reference != digest.of_bytes(raw):
            return Conflict(found.content.digest, f"version `{version}` was moved by another writer")
        return Published(found.content.digest, found.reference, sent)

    def packages(self) -> tuple[str, ...]:
        start = f"{self._repository}/"
        return tuple(name.removeprefix(start) for name in self._registry.repositories() if name.startswith(start))

    def versions(self, package: str) -> tuple[Listed, ...] | None:
        tags = self._registry.tags(self._of(package))
        return None if tags is None else tuple(Listed(tag) for tag in tags)

    def find(self, package: str, version: str) -> Stored | None:
        found = self._registry.manifest(self._of(package), version)
        if found is None:
            return None
        name, raw = found
        content = content_of(raw, source=f"`{self._of(package)}:{version}`")
        return Stored(package, version, content, name)

    def _source(self, stored: Stored) -> Source:
        repository = self._of(stored.package)

        @contextlib.contextmanager
        def open_file(path: str, item: FileEntry, offset: int) -> Iterator[Delivery]:
            with self._registry.blob(repository, item.digest, offset) as delivery:
                if delivery is None:
                    raise FeedDamaged(f"`{path}` is missing in `{repository}`", hint="push it again")
                yield delivery

        return open_file

    def fetch(self, stored: Stored, into: Path, *, only: Content, overwrite: bool, on_event: OnEvent) -> Fetched:
        source = self._source(stored)
        # What arrived before the connection broke is in the folder; every attempt resumes from there.
        return self._registry.persist(lambda: land(only, into, source, overwrite=overwrite, on_event=on_event))

    def verify(self, stored: Stored, on_event: OnEvent) -> Verified:
        damaged = find_damaged(stored.content, self._source(stored), on_event)
        return Verified(len(stored.content.files), stored.content.bytes, damaged)

    def delete(self, package: str, *versions: str) -> None:
        for version in versions:
            self._delete(package, version)

    def _delete(self, package: str, version: str) -> None:
        found = self.find(package, version)
        if found is None:
            raise NotPublished(f"`{package}` has no version `{version}` in `{self.address}`")
        try:
            status = self._registry.delete_manifest(self._of(package), found.reference)
        except FeedRefused as error:
            raise cannot_delete(self.address) from error
        if status != 202:
            raise UnavailableError(f"`{self.address}` answered the deletion of `{version}` with {status}")

    def close(self) -> None:
        if "_registry" in vars(self):
            self._registry.close()
