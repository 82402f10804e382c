"""What every feed can do, and the closed set of ways publishing can end.

`publish` returns an outcome whatever the feed does, and raises only for names that no feed takes. Every other question
returns a value or raises: `UnavailableError` when the feed could not be asked, `FeedDamaged` when its answer does not
fit what was published.
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
    """All files are there; the version gets its name now."""

    name: str


@dataclass(frozen=True)
class VersionNamed(Event):
    name: str


State = Literal["live", "reserved"]
"""`reserved`: it was deleted, and its version can never be published again."""


@dataclass(frozen=True)
class Published:
    """Everything is there, and the feed was asked for it: `digest` is what it answered."""

    digest: str
    reference: str
    """How the feed itself names it for ever."""
    sent_bytes: int | None
    """Bytes that had to be sent, for the rest was there; None when the feed does not tell."""
    name: ClassVar[str] = "published"


@dataclass(frozen=True)
class AlreadyThere:
    """The version was there with the same content."""

    digest: str
    reference: str
    sent_bytes: int = 0
    """Bytes of files that the feed had lost."""
    name: ClassVar[str] = "already-there"


@dataclass(frozen=True)
class Conflict:
    """The version is there with other content; None when what it holds was not published by us and has no digest."""

    digest: str | None
    reason: str
    name: ClassVar[str] = "conflict"


@dataclass(frozen=True)
class Rejected:
    """The feed works but did not take this version; others may fare better."""

    reason: str
    timed_out: bool = False
    name: ClassVar[str] = "rejected"


@dataclass(frozen=True)
class Unavailable:
    """The feed cannot be used now: not reachable, no login, no permission, no space. Others would fare no better."""

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
    """What a fetch brought: bytes that had to be moved, and those that were here."""

    files: tuple[str, ...]
    received_bytes: int
    kept_bytes: int


@dataclass(frozen=True)
class Verified:
    """All files of a version were read and hashed; `damaged` are those that are missing or differ."""

    files: int
    bytes: int
    damaged: tuple[str, ...]


class NotPublished(RequestError):
    """A version that is not in the feed was asked for."""

    code = "not-published"


class FeedRefused(RunFailedError):
    """The feed answered a request with no, for a reason of its own."""

    code = "feed-refused"


class Feed(Protocol):
    """A place that holds packages, which have versions, which hold files."""

    address: str
    can_delete: bool
    versions_move: bool
    """Whether somebody else can make a version lead to other content."""

    def check(self) -> None:
        """Raise `UnavailableError` when publishing cannot work: login, reachability, a folder that is none of ours."""

    def publish(self, package: str, version: str, tree: Tree, on_event: OnEvent) -> PublishOutcome:
        """Make the files of a folder a version; a version is never replaced."""

    def packages(self) -> tuple[str, ...]:
        """The names of all packages, sorted."""

    def versions(self, package: str) -> tuple[Listed, ...] | None:
        """All versions of a package, sorted; None when there is no such package."""

    def find(self, package: str, version: str) -> Stored | None:
        """A live version and its files; None when it is not there."""

    def fetch(self, stored: Stored, into: Path, *, only: Content, overwrite: bool, on_event: OnEvent) -> Fetched:
        """Bring some or all files of a version into a folder: all that were asked for, checked, or none."""

    def verify(self, stored: Stored, on_event: OnEvent) -> Verified:
        """Read every file where the feed keeps it and hash it."""

    def delete(self, package: str, *versions: str) -> None:
        """Take versions away; feeds that cannot say so with `can_delete`."""

    def close(self) -> None:
        """Let go of connections."""


def is_proven(outcome: PublishOutcome, digest: str) -> bool:
    """Whether a feed has been seen to hold this very content: the one reason to delete files that were published."""
    return isinstance(outcome, Published | AlreadyThere) and outcome.digest == digest


def compare_stored(found: Stored, content: Content, sent_bytes: int = 0) -> AlreadyThere | Conflict:
    """The outcome of publishing content under a version that is there."""
    if found.content.digest == content.digest:
        return AlreadyThere(found.content.digest, found.reference, sent_bytes)
    return Conflict(found.content.digest, f"version `{found.version}` is there with other content")


def attempt_publish(publish: Callable[[], PublishOutcome]) -> PublishOutcome:
    """The outcome of an attempt to publish; what the feed said no to, or could not be asked, is one as well."""
    try:
        return publish()
    except UnavailableError as error:
        return Unavailable(error.message, error.hint)
    except RunFailedError as error:
        return Rejected(error.message)


def cannot_delete(address: str) -> UnavailableError:
    return UnavailableError(f"`{address}` does not let versions be deleted")
