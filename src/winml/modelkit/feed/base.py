"""What every feed can do, and the closed set of ways publishing can end.

`publish` returns an outcome whatever the feed does, and raises only for invalid names. Every other method
returns a value or raises: `UnavailableError` when the feed could not be queried, `FeedDamaged` when its answer does not
match what was published.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.events import Event, OnEvent
from winml.modelkit.feed.content import Content, Tree


@dataclass(frozen=True)
class FileMoved(Event):
    """A part of a file was sent, received or read."""

    name: str
    done: int
    total: int


@dataclass(frozen=True)
class NamingVersion(Event):
    """All files were sent; the version is about to be named."""

    name: str


@dataclass(frozen=True)
class VersionNamed(Event):
    name: str


State = Literal["live", "reserved"]
"""`reserved`: it was deleted, and the same version can never be published again."""


@dataclass(frozen=True)
class Published:
    """Everything was published and read back: `digest` is what the feed returned."""

    digest: str
    reference: str
    """The feed's own permanent name for it."""
    sent_bytes: int | None
    """Bytes that had to be sent, because the rest was there; None when the feed does not report it."""
    name: ClassVar[str] = "published"


@dataclass(frozen=True)
class AlreadyThere:
    """The version already exists with the same content."""

    digest: str
    reference: str
    sent_bytes: int = 0
    """Bytes of files that the feed had lost."""
    name: ClassVar[str] = "already-there"


@dataclass(frozen=True)
class Conflict:
    """The version exists with different content; `digest` is None when it was not published by us and has none."""

    digest: str | None
    reason: str
    name: ClassVar[str] = "conflict"


@dataclass(frozen=True)
class Rejected:
    """The feed works but did not accept this version; others may succeed."""

    reason: str
    timed_out: bool = False
    name: ClassVar[str] = "rejected"


@dataclass(frozen=True)
class Unavailable:
    """The feed cannot be used now: not reachable, no login, no permission, no space. Other versions fail too."""

    reason: str
    hint: str | None = None
    name: ClassVar[str] = "unavailable"


PublishOutcome = Published | AlreadyThere | Conflict | Rejected | Unavailable


@dataclass(frozen=True)
class Listed:
    """A version in a listing."""

    version: str
    state: State = "live"


@dataclass(frozen=True)
class Stored:
    """A version that a feed has."""

    package: str
    version: str
    content: Content
    reference: str


@dataclass(frozen=True)
class Fetched:
    """The result of a fetch: bytes received, and bytes that were already here."""

    files: tuple[str, ...]
    received_bytes: int
    kept_bytes: int


@dataclass(frozen=True)
class Verified:
    """The files of a version after reading and hashing all of them; `damaged` ones are missing or differ."""

    files: int
    bytes: int
    damaged: tuple[str, ...]


class NotPublished(RequestError):
    """A requested version is not in the feed."""

    code = "not-published"


class FeedRefused(RunFailedError):
    """The feed refused a request."""

    code = "feed-refused"


class Feed(Protocol):
    """A place that holds packages, which have versions, which hold files."""

    address: str
    can_delete: bool
    versions_move: bool
    """Whether others can make a version point to other content."""

    def check(self) -> None:
        """Raise `UnavailableError` when publishing cannot work: no login, not reachable, not one of our folders."""

    def publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        """Make the files of a folder a version; a version is never replaced."""

    def packages(self) -> tuple[str, ...]:
        """The names of all packages, sorted."""

    def versions(self, package: str) -> tuple[Listed, ...] | None:
        """All versions of a package, sorted; None when there is no such package."""

    def find(self, package: str, version: str) -> Stored | None:
        """A live version and its files; None when it does not exist."""

    def fetch(self, stored: Stored, into: Path, *, only: Content, overwrite: bool, on_event: OnEvent) -> Fetched:
        """Download some or all files of a version into a folder: all requested ones, verified, or none."""

    def verify(self, stored: Stored, on_event: OnEvent) -> Verified:
        """Read and hash every file that the feed stores."""

    def delete(self, package: str, *versions: str) -> None:
        """Delete versions; feeds that do not support it have `can_delete` false."""

    def close(self) -> None:
        """Close connections."""


def is_proven(outcome: PublishOutcome, digest: str) -> bool:
    """Whether a feed was seen to hold exactly this content: the only reason to delete files that were published."""
    return isinstance(outcome, Published | AlreadyThere) and outcome.digest == digest


def compare_stored(found: Stored, content: Content, sent_bytes: int = 0) -> AlreadyThere | Conflict:
    """The outcome of publishing content under a version that already exists."""
    if found.content.digest == content.digest:
        return AlreadyThere(found.content.digest, found.reference, sent_bytes)
    return Conflict(found.content.digest, f"version `{found.version}` already exists with different content")


def attempt_publish(publish: Callable[[], PublishOutcome]) -> PublishOutcome:
    """The outcome of an attempt to publish; a feed that refuses or cannot be queried is an outcome as well."""
    try:
        return publish()
    except UnavailableError as error:
        return Unavailable(error.message, error.hint)
    except RunFailedError as error:
        return Rejected(error.message)


def cannot_delete(address: str) -> UnavailableError:
    return UnavailableError(f"`{address}` does not allow versions to be deleted")
