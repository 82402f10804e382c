"""`winml feed`: publish folders, list, fetch and verify what was published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from winml.modelkit.core.build_folder import MANIFEST, PACKAGE, PARTS, source_name
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, ModelkitError, RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.values import AtLeast, Count, Digest
from winml.modelkit.ep import catalog
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.feed import names
from winml.modelkit.feed.azure import AzureFeed
from winml.modelkit.feed.base import (
    AlreadyThere,
    Conflict,
    Feed,
    Listed,
    NotPublished,
    Published,
    PublishOutcome,
    State,
    Stored,
    Unavailable,
)
from winml.modelkit.feed.content import Content, Tree, scan
from winml.modelkit.feed.names import VersionParts
from winml.modelkit.feed.table import open_feed

MOST_REVISIONS = 1000
"""The limit of contents under one stamp for one target; more frequent builds need stamps of their own."""


@dataclass(frozen=True)
class Wanted:
    """The versions that a user selects."""

    model: str | None = None
    task: str | None = None
    package_name: str | None = None
    version: str | None = None
    run_stamp: str | None = None
    target: str | None = None

    @property
    def package(self) -> str:
        if self.package_name is not None:
            return names.check_package(self.package_name)
        if self.model is None:
            raise RequestError("name the model with `-m`, or its package with `--package-name`")
        return names.package(self.model, self.task)


@dataclass(frozen=True, kw_only=True)
class FeedResult:
    """The fields of every result."""

    schema: Literal["winml/feed/1"] = "winml/feed/1"
    ok: Literal[True] = True
    feed: str


@dataclass(frozen=True, kw_only=True)
class PushAttempt(FeedResult):
    """What was to be published, and the outcome."""

    action: Literal["push"] = "push"
    package: str
    version: str
    outcome: str
    revision: Annotated[int, AtLeast(1)] | None
    """The number of this content under its run stamp; null for a version given by the user."""
    files: Count
    bytes: Count
    digest: Digest


@dataclass(frozen=True, kw_only=True)
class PushResult(PushAttempt):
    """A version that is published."""

    outcome: Literal["published", "already-there"]
    reference: str
    """The feed's own permanent name for it."""
    sent_bytes: int | None
    """Bytes that had to be sent; null when the feed does not report it."""


@dataclass(frozen=True, kw_only=True)
class PackageList(FeedResult):
    action: Literal["list"] = "list"
    package: None = None
    packages: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ListedVersion:
    version: str
    state: State
    run_stamp: str | None
    revision: int | None
    target: str | None


@dataclass(frozen=True, kw_only=True)
class VersionList(FeedResult):
    action: Literal["list"] = "list"
    package: str
    versions: tuple[ListedVersion, ...]


@dataclass(frozen=True, kw_only=True)
class PulledVersion:
    """A version, and what had to be received."""

    version: str
    folder: str
    digest: Digest
    reference: str
    files: tuple[str, ...]
    received_bytes: Count
    kept_bytes: Count


@dataclass(frozen=True, kw_only=True)
class PullResult(FeedResult):
    action: Literal["pull"] = "pull"
    package: str
    folder: str
    versions: tuple[PulledVersion, ...]


@dataclass(frozen=True, kw_only=True)
class VerifiedVersion:
    version: str
    digest: Digest
    files: Count
    bytes: Count
    damaged: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class VerifyResult(FeedResult):
    action: Literal["verify"] = "verify"
    package: str
    versions: tuple[VerifiedVersion, ...]


@dataclass(frozen=True, kw_only=True)
class VerifiedPackage:
    package: str
    versions: tuple[VerifiedVersion, ...]


@dataclass(frozen=True, kw_only=True)
class VerifyAllResult(FeedResult):
    """Every live version of every package of a feed."""

    action: Literal["verify"] = "verify"
    package: None = None
    packages: tuple[VerifiedPackage, ...]


def today() -> str:
    """The default run stamp: the date in UTC."""
    return datetime.now(UTC).strftime("%Y%m%d")


# Push


def _read_build(folder: Path) -> tuple[str, str | None]:
    """Model and target of a build folder or of the parts of one; for any other folder its own name and no target."""
    try:
        if (folder / PACKAGE).is_file() and not (folder / MANIFEST).is_file():
            # A package has artifacts for several targets, so it is published without one.
            return str(read_json(folder / PACKAGE)["name"]), None
        name = source_name(folder)
        if name is None:
            return folder.absolute().name, None
        file = MANIFEST if (folder / MANIFEST).is_file() else PARTS
        return name, str(read_json(folder / file)["target"])
    except (ValueError, KeyError, TypeError) as error:
        raise RequestError(f"`{folder / MANIFEST}` is not a build manifest: {error}") from error


def _ep_and_device(target: str | None) -> tuple[str | None, str | None]:
    if target is None:
        return None, None
    asked = parse_target(target)
    if asked.ep is None:
        raise RequestError(f"target `{target}` names no execution provider", hint="for example `qnn/npu`")
    return asked.ep.name, asked.device or asked.ep.devices[0]


def coordinates(folder: Path, wanted: Wanted, revision: int = 1) -> tuple[str, str]:
    """Package and version under which a folder is published: as given by the user, otherwise from its build."""
    model, target = _read_build(folder)
    named = Wanted(wanted.model or model, wanted.task, wanted.package_name)
    if wanted.version is not None:
        return named.package, names.check_version(wanted.version)
    ep, device = _ep_and_device(wanted.target or target)
    model_slug = names.slug(named.model or model, wanted.task)
    stamp = wanted.run_stamp or today()
    return named.package, names.version(stamp, model_slug, ep=ep, device=device, revision=revision)


def push(
    folder: str, address: str, wanted: Wanted, on_event: OnEvent, *, install_extension: bool = False
) -> PushResult:
    """Publish a folder as one version; anything but a proven success raises with the outcome."""
    coordinates(Path(folder), wanted)  # raises for invalid names before a feed is created or queried
    with closing(open_feed(address)) as feed:
        if install_extension:
            if not isinstance(feed, AzureFeed):
                raise RequestError("`--install-extension` is for Azure feeds", hint="drop it")
            feed.install_extension = True
        feed.check()
        tree = scan(Path(folder))
        package, version, revision, outcome = _publish(feed, Path(folder), tree, wanted, on_event)
    attempt = PushAttempt(
        feed=feed.address,
        package=package,
        version=version,
        outcome=outcome.name,
        revision=revision,
        files=len(tree.content.files),
        bytes=tree.content.bytes,
        digest=tree.content.digest,
    )
    if not isinstance(outcome, Published | AlreadyThere):
        raise _failure(outcome, attempt)
    return PushResult(**{**vars(attempt), "reference": outcome.reference, "sent_bytes": outcome.sent_bytes})


def _publish(
    feed: Feed, folder: Path, tree: Tree, wanted: Wanted, on_event: OnEvent
) -> tuple[str, str, int | None, PublishOutcome]:
    """Publish under the first version of the stamp that is free or has this content; a given version is kept."""
    for revision in range(1, MOST_REVISIONS + 1):
        package, version = coordinates(folder, wanted, revision)
        outcome = feed.publish(package, version, tree, on_event)
        if wanted.version is not None:
            return package, version, None, outcome
        if not isinstance(outcome, Conflict):
            break
    return package, version, revision, outcome


def _failure(outcome: PublishOutcome, attempt: PushAttempt) -> ModelkitError:
    assert not isinstance(outcome, Published | AlreadyThere)
    if isinstance(outcome, Unavailable):
        return UnavailableError(outcome.reason, hint=outcome.hint, result=attempt)
    hint = "publish under another `--run-stamp` or `--version`" if outcome.name == "conflict" else None
    message = f"`{attempt.package}` {attempt.version} was not published: {outcome.reason}"
    return RunFailedError(message, hint=hint, result=attempt)


# Choosing versions


def _matches(listed: Listed, wanted: Wanted) -> bool:
    parts = names.parse_version(listed.version)
    if wanted.version is not None:
        return listed.version == wanted.version
    if wanted.run_stamp is not None and (parts is None or parts.stamp != wanted.run_stamp):
        return False
    if wanted.target is not None and (parts is None or not _is_for(parts, wanted.target)):
        return False
    return wanted.model is None or (parts is not None and _is_of(parts, listed.version, wanted))


def _is_for(parts: VersionParts, target: str) -> bool:
    ep, device = _ep_and_device(target)
    return parts.ep is not None and catalog.find(parts.ep).name == ep and parts.device == device


def _is_of(parts: VersionParts, version: str, wanted: Wanted) -> bool:
    """Whether a version is of the model: its slug may have been cut, so the version is computed again and compared."""
    assert wanted.model is not None
    model_slug = names.slug(wanted.model, wanted.task)
    again = names.version(parts.stamp, model_slug, ep=parts.ep, device=parts.device, revision=parts.revision)
    return again == version


def choose_versions(feed: Feed, wanted: Wanted) -> list[Listed]:
    """The selected live versions; raises with the existing ones when there are none."""
    listed = feed.versions(wanted.package)
    if listed is None:
        raise NotPublished(f"no package `{wanted.package}` in `{feed.address}`", hint="`winml feed list` shows them")
    found = [item for item in listed if item.state == "live" and _matches(item, wanted)]
    if found:
        return found
    deleted = any(_matches(item, wanted) for item in listed)
    raise NotPublished(
        f"`{wanted.package}` has no such version in `{feed.address}`{': it was deleted' if deleted else ''}",
        hint=f"it has {_list_names(item.version for item in listed if item.state == 'live')}",
    )


def _list_names(versions: Iterable[str]) -> str:
    every = list(versions)
    return ", ".join(f"`{version}`" for version in every[:5]) + (", …" if len(every) > 5 else "") or "no live versions"


def _one_stamp(found: list[Listed], wanted: Wanted) -> None:
    stamps = sorted({parts.stamp for item in found if (parts := names.parse_version(item.version)) is not None})
    if len(stamps) > 1:
        raise RequestError(
            f"`{wanted.package}` was published by several runs: {', '.join(stamps[-8:])}",
            hint="name one with `--run-stamp`",
        )


def _newest(found: list[Listed]) -> list[Listed]:
    """The last content of each stamp and target."""
    best: dict[Any, tuple[int, Listed]] = {}
    for item in found:
        parts = names.parse_version(item.version)
        key = item.version if parts is None else (parts.stamp, parts.ep, parts.device, parts.slug)
        revision = 1 if parts is None else parts.revision
        if key not in best or revision > best[key][0]:
            best[key] = (revision, item)
    return [item for _, item in best.values()]


def _require_stored(feed: Feed, package: str, version: str) -> Stored:
    found = feed.find(package, version)
    if found is None:
        raise NotPublished(f"version `{version}` of `{package}` was just removed from `{feed.address}`")
    return found


# List, pull, verify


def list_feed(address: str, wanted: Wanted) -> PackageList | VersionList:
    """The packages of a feed, or the versions of one package."""
    with closing(open_feed(address)) as feed:
        if wanted.model is None and wanted.package_name is None:
            return PackageList(feed=feed.address, packages=tuple(feed.packages()))
        versions = feed.versions(wanted.package)
    if versions is None:
        raise NotPublished(f"no package `{wanted.package}` in `{feed.address}`", hint="`winml feed list` shows them")
    shown = tuple(_describe(item) for item in versions if _matches(item, wanted))
    return VersionList(feed=feed.address, package=wanted.package, versions=shown)


def _describe(item: Listed) -> ListedVersion:
    parts = names.parse_version(item.version)
    return ListedVersion(
        version=item.version,
        state=item.state,
        run_stamp=None if parts is None else parts.stamp,
        revision=None if parts is None else parts.revision,
        target=None if parts is None else _target_word(parts),
    )


def _target_word(parts: VersionParts) -> str | None:
    """The target of a version as results write it; an EP that the table does not have keeps its word."""
    if parts.ep is None or parts.device is None:
        return None
    ep = catalog.find(parts.ep).name if catalog.is_known(parts.ep) else parts.ep
    return ep if ep == parts.device else f"{ep}/{parts.device}"


def pull(
    address: str, wanted: Wanted, output: str, *, pattern: str | None, overwrite: bool, on_event: OnEvent
) -> PullResult:
    """Download a model, one of its targets or some of its files into a folder.

    Several targets are placed side by side as `<ep>_<device>/`, and a pattern matches such paths; a given one is placed
    directly in the folder.
    """
    with closing(open_feed(address)) as feed:
        return _pull(feed, wanted, output, pattern=pattern, overwrite=overwrite, on_event=on_event)


def _pull(
    feed: Feed, wanted: Wanted, output: str, *, pattern: str | None, overwrite: bool, on_event: OnEvent
) -> PullResult:
    found = choose_versions(feed, wanted)
    if wanted.version is None:
        _one_stamp(found, wanted)
        found = _newest(found)
    straight = wanted.version is not None or wanted.target is not None
    selections = [_selection(feed, wanted.package, item, pattern, straight=straight) for item in found]
    if not any(only.files for _, _, only in selections):
        raise NotPublished(
            f"no file of `{wanted.package}` matches `{pattern}`",
            hint=f"there are {_list_names(path for stored, below, _ in selections for path in _paths(stored, below))}",
        )
    done = []
    for stored, below, only in selections:
        if only.files:
            into = Path(output) / below
            fetched = feed.fetch(stored, into, only=only, overwrite=overwrite, on_event=on_event)
            done.append(
                PulledVersion(
                    version=stored.version,
                    folder=str(into),
                    digest=stored.content.digest,
                    reference=stored.reference,
                    files=tuple(fetched.files),
                    received_bytes=fetched.received_bytes,
                    kept_bytes=fetched.kept_bytes,
                )
            )
    return PullResult(feed=feed.address, package=wanted.package, folder=output, versions=tuple(done))


def _selection(
    feed: Feed, package: str, item: Listed, pattern: str | None, *, straight: bool
) -> tuple[Stored, str, Content]:
    """A version, its folder below the output, and its selected files."""
    stored = _require_stored(feed, package, item.version)
    parts = names.parse_version(item.version)
    below = "" if straight or parts is None else parts.folder
    return stored, below, stored.content if pattern is None else stored.content.select(pattern, below=below)


def _paths(stored: Stored, below: str) -> list[str]:
    return [f"{below}/{path}" if below else path for path in sorted(stored.content.files)]


def verify(address: str, wanted: Wanted, on_event: OnEvent) -> VerifyResult | VerifyAllResult:
    """Hash every file of some versions in the feed, of all where no model is named; raises when files are damaged."""
    if wanted.model is None and wanted.package_name is None:
        if wanted.version is not None or wanted.task is not None:
            raise RequestError("`--version` and `--task` are of one model: name it with `-m` or `--package-name`")
        return _verify_all(address, wanted, on_event)
    with closing(open_feed(address)) as feed:
        done = tuple(_verify(feed, wanted.package, item, on_event) for item in choose_versions(feed, wanted))
    result = VerifyResult(feed=feed.address, package=wanted.package, versions=done)
    _raise_damaged(address, [f"{one.version}/{path}" for one in done for path in one.damaged], result)
    return result


def _verify_all(address: str, wanted: Wanted, on_event: OnEvent) -> VerifyAllResult:
    """Every live version that was published with the wanted stamp and target, whatever package it is in."""
    done = []
    with closing(open_feed(address)) as feed:
        for package in feed.packages():
            chosen = [v for v in feed.versions(package) or () if v.state == "live" and _matches(v, wanted)]
            versions = tuple(_verify(feed, package, item, on_event) for item in chosen)
            if versions:
                done.append(VerifiedPackage(package=package, versions=versions))
    result = VerifyAllResult(feed=feed.address, packages=tuple(done))
    bad = [f"{one.package}/{v.version}/{path}" for one in done for v in one.versions for path in v.damaged]
    _raise_damaged(address, bad, result)
    return result


def _raise_damaged(address: str, damaged: Sequence[str], result: VerifyResult | VerifyAllResult) -> None:
    if damaged:
        some = "1 file" if len(damaged) == 1 else f"{len(damaged)} files"
        verb = "is" if len(damaged) == 1 else "are"
        raise CheckFailed(
            f"{some} in `{address}` {verb} missing or damaged: {_list_names(damaged)}",
            hint="push the folder again, or pull from another feed",
            result=result,
        )


def _verify(feed: Feed, package: str, item: Listed, on_event: OnEvent) -> VerifiedVersion:
    stored = _require_stored(feed, package, item.version)
    answer = feed.verify(stored, on_event)
    return VerifiedVersion(
        version=item.version,
        digest=stored.content.digest,
        files=answer.files,
        bytes=answer.bytes,
        damaged=tuple(answer.damaged),
    )
