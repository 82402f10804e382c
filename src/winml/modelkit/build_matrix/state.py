"""What became of a cell: values that the journal holds, and the state that replaying them gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, NotRequired, TypedDict

from winml.modelkit.core.errors import DataError
from winml.modelkit.store.journal import Forms

BuildStatus = Literal["ok", "failed", "timeout"]
UploadStatus = Literal["uploaded", "exists-skipped", "timeout", "failed"]
COMPLETE = "complete"
"""The stage of a build that went through."""


@dataclass(frozen=True)
class Build:
    """How a build ended."""

    status: BuildStatus
    stage: str
    """The stage it failed in, `load` before the first one, `complete` when it did not fail."""
    seconds: float
    at: str
    error: str | None = None
    digest: str | None = None
    """Of the whole folder, as a feed computes it."""
    bytes: int = 0
    objects: tuple[str, ...] = ()
    """Its files in the store."""
    shared: tuple[str, ...] = ()
    """Those of them that other targets of the model may start from."""
    files_by: str = "link"
    """How its files came to their place; `feed` when another machine built it."""
    computed: tuple[str, ...] = ()
    """Stages that ran; the others came from the cache."""
    node: str | None = None
    """The machine that built it; None is the one that ran the matrix."""


@dataclass(frozen=True)
class Upload:
    """How publishing ended."""

    status: UploadStatus
    feed: str
    at: str
    error: str | None = None
    digest: str | None = None
    """Of what the feed has."""
    reference: str | None = None
    sent_bytes: int | None = 0
    """None when the feed does not tell."""


@dataclass(frozen=True)
class CellState:
    """The last word on a cell; None where nothing has happened yet."""

    build: Build | None = None
    upload: Upload | None = None

    def is_published(self, feed: str) -> bool:
        found = self.upload
        return found is not None and found.feed == feed and found.status in ("uploaded", "exists-skipped")

    def is_done(self, feed: str | None) -> bool:
        if feed is None:
            return self.build is not None and self.build.status == "ok"
        return self.is_published(feed)

    @property
    def is_proven(self) -> bool:
        """Whether a feed was seen to have the very content that was built: the one reason to remove a cell's folder."""
        if self.build is None or self.upload is None or self.build.digest is None:
            return False
        return self.upload.status == "uploaded" and self.upload.digest == self.build.digest

    @property
    def has_failed(self) -> bool:
        last = self.upload or self.build
        return last is not None and last.status in ("failed", "timeout")

    def after(self, happened: Build | Upload) -> CellState:
        """The state once this has happened; a new build takes back what was said of publishing the old one."""
        return CellState(happened) if isinstance(happened, Build) else replace(self, upload=happened)


class CellRow(TypedDict):
    """A cell as the plan of a run names it."""

    version: str
    package: str
    run_stamp: str
    hf_id: str
    source: str
    task: str | None
    priority: str | None
    ep: str
    device: str
    combo: str
    target: str
    precision: str
    compile: bool
    folder: str


class _RunRecord(TypedDict):
    run_stamp: str
    feed: str | None
    cells: list[CellRow]
    jobs: int
    max_disk: int | None
    keep_local: bool
    at: str


class _NodeRecord(TypedDict):
    name: str
    environment: dict[str, Any]


class _BuildRecord(TypedDict):
    version: str
    status: BuildStatus
    stage: str
    seconds: float
    at: str
    error: NotRequired[str | None]
    digest: NotRequired[str | None]
    bytes: NotRequired[int]
    objects: NotRequired[list[str]]
    shared: NotRequired[list[str]]
    files_by: NotRequired[str]
    computed: NotRequired[list[str]]
    node: NotRequired[str | None]


class _UploadRecord(TypedDict):
    version: str
    status: UploadStatus
    feed: str
    at: str
    error: NotRequired[str | None]
    digest: NotRequired[str | None]
    reference: NotRequired[str | None]
    sent_bytes: NotRequired[int | None]


FORMS = Forms("record", {"run": _RunRecord, "node": _NodeRecord, "build": _BuildRecord, "upload": _UploadRecord})
"""What the records of a matrix look like."""

_KINDS: dict[str, type[Build] | type[Upload]] = {"build": Build, "upload": Upload}


def record(version: str, happened: Build | Upload) -> dict[str, Any]:
    """A line of the journal."""
    return {"record": type(happened).__name__.lower(), "version": version, **asdict(happened)}


def _read(cls: type[Build] | type[Upload], value: Mapping[str, Any]) -> Build | Upload:
    known = {entry.name for entry in fields(cls)}
    given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in value.items() if n in known}
    return cls(**given)


def replayed(records: Iterable[Mapping[str, Any]]) -> dict[str, CellState]:
    """The state of every cell by version."""
    states: dict[str, CellState] = {}
    for value in records:
        try:
            kind = _KINDS.get(value["record"])
            if kind is not None:
                version = value["version"]
                states[version] = states.get(version, CellState()).after(_read(kind, value))
        except (KeyError, TypeError) as error:
            raise DataError(f"a record of the journal cannot be read: {error!r}") from error
    return states


def upload_word(state: CellState, feed: str | None) -> str:
    """`upload_status` of the results: `n/a` without a feed, `skipped` when there was nothing to upload."""
    if state.upload is not None:
        return state.upload.status
    if feed is None:
        return "n/a"
    return "skipped" if state.has_failed else "n/a"
