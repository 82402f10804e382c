"""The state of a cell: values in the journal, and the state that replaying them gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Device
from winml.modelkit.core.values import AtLeast, Count, Digest, key
from winml.modelkit.store import journal

BuildStatus = Literal["ok", "failed", "timeout"]
UploadStatus = Literal["uploaded", "exists-skipped", "timeout", "failed"]
FilesBy = Literal["link", "copy", "feed"]
"""How the files of a build were put in place; `feed` when another machine built it."""
COMPLETE = "complete"
"""The stage of a build that succeeded."""


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
    """Those that other targets of the model can start from."""
    files_by: FilesBy = "link"
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
    """None when the feed does not report it."""


@dataclass(frozen=True)
class CellState:
    """The latest build and upload of a cell; None where nothing has happened yet."""

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
        """Whether a feed was seen to hold exactly what was built: the only reason to remove a cell's folder."""
        if self.build is None or self.upload is None or self.build.digest is None:
            return False
        return self.upload.status == "uploaded" and self.upload.digest == self.build.digest

    @property
    def has_failed(self) -> bool:
        last = self.upload or self.build
        return last is not None and last.status in ("failed", "timeout")

    def after(self, happened: Build | Upload) -> CellState:
        """The state after an event; a new build discards the upload of the old one."""
        return CellState(happened) if isinstance(happened, Build) else replace(self, upload=happened)


@dataclass(frozen=True, kw_only=True)
class CellPlan:
    """A cell in the plan of a run."""

    version: str
    package: str
    run_stamp: str
    hf_id: str
    source: str
    task: str | None
    priority: str | None
    ep: str
    device: Device
    combo: str
    target: str
    precision: str
    compile: bool
    folder: str


@dataclass(frozen=True, kw_only=True)
class CellRow(CellPlan):
    """A cell in the results: its plan and its outcome."""

    build_status: BuildStatus | None
    build_stage: str | None
    upload_status: Literal["n/a", "uploaded", "exists-skipped", "timeout", "failed", "skipped"]
    recorded_at: str | None
    error: str | None
    seconds: Annotated[float, AtLeast(0)] | None
    bytes: Count | None
    digest: Digest | None
    reference: str | None
    sent_bytes: Count | None
    files_by: FilesBy | None
    computed: tuple[str, ...]
    node: str | None


CellRows = Mapping[str, CellRow]
"""What `build_only_results.json` holds, by version."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The first record of every run: its plan and options."""

    record: Literal["run"] = "run"
    run_stamp: str
    feed: str | None
    cells: tuple[CellPlan, ...]
    jobs: int
    max_disk: int | None
    keep_local: bool
    cluster: str | None = None
    at: str


@dataclass(frozen=True, kw_only=True)
class NodeRecord:
    """What a node reported about itself."""

    record: Literal["node"] = "node"
    name: str
    environment: Mapping[str, str | int | None]


@dataclass(frozen=True, kw_only=True)
class BuildRecord:
    record: Literal["build"] = "build"
    version: str
    happened: Build = key(inline=True)


@dataclass(frozen=True, kw_only=True)
class UploadRecord:
    record: Literal["upload"] = "upload"
    version: str
    happened: Upload = key(inline=True)


Record = RunRecord | NodeRecord | BuildRecord | UploadRecord
KINDS: dict[str, type[Record]] = {"run": RunRecord, "node": NodeRecord, "build": BuildRecord, "upload": UploadRecord}


def read_records(lines: Iterable[Mapping[str, Any]], source: str) -> list[Record]:
    """The records of a journal; `source` names it in errors."""
    return journal.read_values(lines, "record", KINDS, source=source)


def make_record(version: str, happened: Build | Upload) -> BuildRecord | UploadRecord:
    """The journal record of something that happened to a cell."""
    if isinstance(happened, Build):
        return BuildRecord(version=version, happened=happened)
    return UploadRecord(version=version, happened=happened)


def replay(records: Iterable[Record]) -> dict[str, CellState]:
    """The state of every cell by version."""
    states: dict[str, CellState] = {}
    for one in records:
        if isinstance(one, BuildRecord | UploadRecord):
            states[one.version] = states.get(one.version, CellState()).after(one.happened)
    return states


def make_row(cell: CellPlan, state: CellState, feed: str | None) -> CellRow:
    """A cell in the results."""
    build, upload = state.build, state.upload
    last = upload or build
    upload_status: Any = upload.status if upload is not None else "n/a"
    if upload is None and feed is not None and state.has_failed:
        upload_status = "skipped"  # there was nothing to upload
    return CellRow(
        **vars(cell),
        build_status=None if build is None else build.status,
        build_stage=None if build is None else build.stage,
        upload_status=upload_status,
        recorded_at=None if last is None else last.at,
        error=(None if upload is None else upload.error) or (None if build is None else build.error),
        seconds=None if build is None else build.seconds,
        bytes=None if build is None else build.bytes,
        digest=(None if upload is None else upload.digest) or (None if build is None else build.digest),
        reference=None if upload is None else upload.reference,
        sent_bytes=None if upload is None else upload.sent_bytes,
        files_by=None if build is None or build.status != "ok" else build.files_by,
        computed=() if build is None else build.computed,
        node=None if build is None else build.node,
    )
