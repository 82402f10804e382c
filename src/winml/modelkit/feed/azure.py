"""`azure:ORG/PROJECT/FEED`: Universal Packages in Azure Artifacts, through `az`.

There is no other way to their contents, and `az` reports neither digests nor files. So every version contains a list of
its files with their digests; that list is what a version is compared and verified with.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.feed.az import Az, Done, Failure, unavailable
from winml.modelkit.feed.base import (
    Conflict,
    FeedRefused,
    Fetched,
    Listed,
    NamingVersion,
    Published,
    PublishOutcome,
    Rejected,
    Stored,
    Verified,
    attempt_publish,
    cannot_delete,
    compare_stored,
)
from winml.modelkit.feed.content import Content, FeedDamaged, FileEntry, Tree, decode, encode, scan
from winml.modelkit.feed.landing import Delivery, Source, find_damaged, is_here, land, read_chunks
from winml.modelkit.feed.names import check_package, check_version
from winml.modelkit.store import atomic
from winml.modelkit.worker.scratch import ScratchFolder

PREFIX = "azure:"
CONTENT = "winml_content.json"
"""The list of files inside every version."""
PAGE = 1000
_TRANSFER_TIMEOUT_S = 3600.0
_ASK_TIMEOUT_S = 120.0
_RESOURCE = "499b84ac-1321-427f-aa17-267ca6975798"
"""Azure DevOps, as Entra ID knows it."""
_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]*[A-Za-z0-9_-])?")
_FEW = 4
_SPECIAL = re.compile(r"[^A-Za-z0-9 ._/-]")
"""What a filter of `az`, or the shell of Windows that runs it, may interpret as something other than itself."""


class AzureFeed:
    """One feed of a project; versions can never be replaced, and a deleted one stays reserved."""

    can_delete = False
    versions_move = False

    def __init__(
        self,
        address: str,
        organization: str,
        project: str,
        feed: str,
        *,
        transfer_timeout_s: float = _TRANSFER_TIMEOUT_S,
        ask_timeout_s: float = _ASK_TIMEOUT_S,
    ) -> None:
        self.address = address
        self._organization = organization
        self._project = project
        self._feed = feed
        self.install_extension = False
        """Whether `check` may install the extension of `az` that is missing."""
        self._transfer_timeout_s = transfer_timeout_s
        self._ask_timeout_s = ask_timeout_s

    @classmethod
    def at(cls, address: str) -> AzureFeed:
        """The feed of an address."""
        parts = address.removeprefix(PREFIX).split("/")
        if len(parts) != 3 or not all(_PART.fullmatch(part) for part in parts):
            raise RequestError(f"not an address of an Azure feed: `{address}`", hint="write `azure:ORG/PROJECT/FEED`")
        return cls(address, *parts)

    @cached_property
    def _az(self) -> Az:
        return Az.here()

    def check(self) -> None:
        """Raise unless `az` is installed, has its extension, is logged in and reaches the feed."""
        self._az.ask("the Azure login", "account", "show", timeout_s=self._ask_timeout_s)
        extension = self._az.call("extension", "show", "--name", "azure-devops", timeout_s=self._ask_timeout_s)
        if isinstance(extension, Failure):
            if not self.install_extension:
                raise UnavailableError(
                    f"`az` has no extension `azure-devops`: {extension.message}",
                    hint="add `--install-extension`, or install it with `az extension add --name azure-devops`",
                )
            self._install_extension()
        self._rest("packages", {"$top": "1", "protocolType": "UPack"})

    def _install_extension(self) -> None:
        """Install the extension, because the user agreed to it: it is a program that `az` downloads."""
        add = ("extension", "add", "--name", "azure-devops", "--yes")
        done = self._az.call(*add, timeout_s=self._transfer_timeout_s)
        if isinstance(done, Failure):
            raise unavailable(done, "installing the extension `azure-devops`")

    # Queries

    def _rest(self, path: str, query: dict[str, str]) -> list[dict[str, Any]]:
        """The items of one page. Parameters are passed one by one: a `&` would end the command in a Windows shell."""
        base = f"https://feeds.dev.azure.com/{self._organization}/{self._project}/_apis/packaging/Feeds/{self._feed}"
        parameters = [f"{name}={value}" for name, value in {**query, "api-version": "7.1"}.items()]
        address = f"{base}/{path}".replace(" ", "%20")
        value = self._az.ask(
            f"querying `{self.address}`",
            *("rest", "--method", "get", "--resource", _RESOURCE, "--uri", address, "--uri-parameters", *parameters),
            timeout_s=self._ask_timeout_s,
        )
        try:
            return list(value["value"])
        except (KeyError, TypeError) as error:
            raise UnavailableError(f"querying `{self.address}`: the answer contains no list") from error

    def _pages(self, path: str, query: dict[str, str], key: str) -> dict[str, dict[str, Any]]:
        """All items of a listing by one of their fields; a page may be shorter than requested and not be the last."""
        found: dict[str, dict[str, Any]] = {}
        seen = 0
        while True:
            page = self._rest(path, {"$top": str(PAGE), "$skip": str(seen), **query})
            try:
                fresh = {str(item[key]): item for item in page if str(item[key]) not in found}
            except (KeyError, TypeError) as error:
                raise UnavailableError(f"querying `{self.address}`: an item of the answer has no `{key}`") from error
            if not fresh:
                return found
            found |= fresh
            seen += len(page)

    def packages(self) -> tuple[str, ...]:
        return tuple(sorted(self._pages("packages", {"protocolType": "UPack"}, "normalizedName")))

    def versions(self, package: str) -> tuple[Listed, ...] | None:
        query = {"protocolType": "UPack", "normalizedPackageName": check_package(package)}
        found = self._pages("packages", query, "normalizedName").get(package)
        if found is None:
            return None
        items = self._pages(f"packages/{found.get('id')}/versions", {}, "version")
        deleted = {name for name, item in items.items() if item.get("isDeleted") or item.get("deletedDate")}
        return tuple(Listed(name, "reserved" if name in deleted else "live") for name in sorted(items))

    def _state(self, package: str, version: str) -> str:
        """`live`, `reserved` or `absent`."""
        listed = {item.version: item.state for item in self.versions(package) or ()}
        return listed.get(version, "absent")

    def find(self, package: str, version: str) -> Stored | None:
        if self._state(check_package(package), check_version(version)) != "live":
            return None
        return self._read(package, version)

    def _read(self, package: str, version: str) -> Stored:
        """An existing version, by its list of files."""
        with ScratchFolder("winml-feed-") as folder:
            self._download(package, version, folder, CONTENT)
            try:
                raw = (folder / CONTENT).read_bytes()
            except FileNotFoundError as error:
                raise FeedDamaged(f"`{package}` {version} has no `{CONTENT}`: it was not published by winml") from error
        return Stored(package, version, decode(raw, source=f"`{package}` {version}"), f"{package}@{version}")

    # Transfers

    def _universal(self, action: str, package: str, version: str, path: Path, *more: str) -> Done | Failure:
        return self._az.call(
            *("artifacts", "universal", action),
            *("--organization", f"https://dev.azure.com/{self._organization}"),
            *("--project", self._project, "--scope", "project", "--feed", self._feed),
            *("--name", package, "--version", version, "--path", str(path), *more),
            timeout_s=self._transfer_timeout_s,
        )

    def _download(self, package: str, version: str, into: Path, pattern: str | None) -> None:
        wanted = () if pattern is None else ("--file-filter", pattern)
        done = self._universal("download", package, version, into, *wanted)
        if isinstance(done, Failure) and done.problem == "tool":
            raise FeedRefused(f"`{package}` {version} could not be downloaded: {done.message}")
        if isinstance(done, Failure):
            raise unavailable(done, f"downloading `{package}` {version}")

    def publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        return attempt_publish(lambda: self._publish(check_package(package), check_version(version), tree, on_event))

    def _publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        on_event(NamingVersion(version))
        with _stage(tree) as folder:
            done = self._universal("publish", package, version, folder)
        if isinstance(done, Done):
            return self._read_back(package, version, tree.content)
        if done.problem == "exists":
            return self._compare_existing(package, version, tree.content)
        if done.problem == "timeout":
            # It may still have succeeded: ask the feed.
            if self._state(package, version) == "live":
                return self._read_back(package, version, tree.content)
            return Rejected(f"`az` took longer than {self._transfer_timeout_s:g} s and was stopped", timed_out=True)
        if done.problem in ("login", "no-feed", "usage"):
            raise unavailable(done, f"publishing to `{self.address}`")
        return Rejected(done.message)

    def _read_back(self, package: str, version: str, content: Content) -> PublishOutcome:
        """Read the list of files back from the feed, as proof that the version holds what was sent."""
        found = self._read(package, version)
        if found.content.digest != content.digest:
            return Conflict(found.content.digest, f"version `{version}` has different content than was sent")
        return Published(found.content.digest, found.reference, None)

    def _compare_existing(self, package: str, version: str, content: Content) -> PublishOutcome:
        """The version exists: with the same content, with different content, or as a deleted version."""
        if self._state(package, version) == "reserved":
            return Rejected(f"version `{version}` was deleted and stays reserved; publish with another run stamp")
        try:
            return compare_stored(self._read(package, version), content)
        except FeedDamaged as error:
            return Conflict(None, error.message)

    def fetch(self, stored: Stored, into: Path, *, only: Content, overwrite: bool, on_event: OnEvent) -> Fetched:
        missing = Content({path: item for path, item in only.files.items() if not is_here(into / path, item)})
        if not missing.files:
            return Fetched(tuple(sorted(only.files)), 0, only.bytes)
        with self._download_files(stored, missing) as source:
            return land(only, into, source, overwrite=overwrite, on_event=on_event)

    def verify(self, stored: Stored, on_event: OnEvent) -> Verified:
        with self._download_files(stored, stored.content) as source:
            damaged = find_damaged(stored.content, source, on_event)
        return Verified(len(stored.content.files), stored.content.bytes, damaged)

    @contextlib.contextmanager
    def _download_files(self, stored: Stored, wanted: Content) -> Iterator[Source]:
        """Files of a version in a temporary folder; `az` cannot resume a download.

        A few files are downloaded by name, one call each; for more, the whole version is cheaper.
        """
        paths = tuple(wanted.files)
        few = len(paths) <= _FEW and paths != tuple(stored.content.files) and not any(map(_SPECIAL.search, paths))
        with ScratchFolder("winml-feed-") as folder:
            for path in paths if few else (None,):
                self._download(stored.package, stored.version, folder, path)

            @contextlib.contextmanager
            def open_file(path: str, item: FileEntry, offset: int) -> Iterator[Delivery]:
                if not (folder / path).is_file():
                    raise FeedDamaged(f"`{path}` was not in the download of `{stored.package}` {stored.version}")
                yield Delivery(offset, read_chunks(folder / path, offset))

            yield open_file

    def delete(self, package: str, *versions: str) -> None:
        raise cannot_delete(self.address)

    def close(self) -> None:
        """Nothing is held open."""


@contextlib.contextmanager
def _stage(tree: Tree) -> Iterator[Path]:
    """A folder with links to the files and their list, because `az` takes whole folders; raises if a file changed."""
    if CONTENT in tree.content.files:
        raise FeedRefused(f"a file named `{CONTENT}` cannot be published: the feed uses that name for its own list")
    staged = atomic.temporary_name(tree.root.absolute().parent)
    try:
        for path in tree.content.files:
            _link(tree.path(path), staged / path)
        if scan(staged).content.digest != tree.content.digest:
            raise FeedRefused(f"`{tree.root}` changed while it was being published")
        atomic.write_bytes(staged / CONTENT, encode(tree.content))
        yield staged
    except OSError as error:
        raise atomic.write_error(error, staged) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _link(source: Path, destination: Path) -> None:
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source.resolve(), destination)
    except OSError:
        shutil.copyfile(source, destination)  # other volume, or no links here
