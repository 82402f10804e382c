"""`winml matrix`: builds and publishes every model for every target once, and resumes after any interruption."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from winml.modelkit.build_matrix import plan as plans
from winml.modelkit.build_matrix.cells import Builder, BuildOptions
from winml.modelkit.build_matrix.disk import Disk, DiskUse, Pins, bytes_in
from winml.modelkit.build_matrix.events import CellRecorded, CellsPlanned
from winml.modelkit.build_matrix.loop import Loop, MatrixTools, Waiting
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.place import BuildPlace, ClusterPlace, Remote, local_place, open_cluster
from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.progress import Paced, Progress, tally
from winml.modelkit.build_matrix.publishing import NOT_ASKED, Publisher, ask
from winml.modelkit.build_matrix.resume import Decision, FeedVersion, decide
from winml.modelkit.build_matrix.run_folder import MatrixFolder, now
from winml.modelkit.build_matrix.state import (
    Build,
    CellPlan,
    CellRow,
    CellState,
    NodeRecord,
    Record,
    RunRecord,
    Upload,
    make_record,
    make_row,
    read_records,
    replay,
)
from winml.modelkit.building.pipeline import folder as folders
from winml.modelkit.building.pipeline.table import COMPILE
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import (
    Interrupted,
    PartlyDone,
    RequestError,
    RunFailedError,
    UnavailableError,
)
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import AtLeast, Count, to_json
from winml.modelkit.dispatch.base import Result
from winml.modelkit.dispatch.cluster import Cluster
from winml.modelkit.ep import catalog
from winml.modelkit.ep import probing as machine
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.feed.base import Feed
from winml.modelkit.feed.feed_command import today
from winml.modelkit.feed.table import open_feed
from winml.modelkit.store import atomic
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.journal import Journal
from winml.modelkit.store.objects import files_may_be_shared

_NAMED = 5
"""How many failed cells an error names; all of them are in the table."""


@dataclass(frozen=True)
class PlanRequest:
    """What to build, and for which targets."""

    models: tuple[MatrixModel, ...]
    targets: tuple[str, ...] = ()
    ep: str | None = None
    device: str | None = None
    run_stamp: str | None = None
    package_name: str | None = None
    compile: bool = False
    options: BuildOptions = field(default_factory=BuildOptions)


@dataclass(frozen=True)
class RunRequest:
    """A plan, and how to run it."""

    plan: PlanRequest
    output: str
    command: str
    """The command line of the user, without `--resume` and `--run-stamp`."""
    feed: str | None = None
    resume: bool = False
    trust_journal: bool = False
    keep_local: bool = False
    skip_existing: bool = False
    jobs: int = 1
    max_disk: int | None = None
    cluster: Cluster | None = None
    staging: str | None = None
    """The feed through which files travel to nodes and back; None is `feed`."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanResult(CommandResult):
    schema: Literal["winml/matrix/1"] = "winml/matrix/1"
    ok: Literal[True] = True
    action: Literal["plan"] = "plan"
    run_stamp: str
    cells: tuple[CellPlan, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class RunState(CommandResult):
    """The progress of a run."""

    schema: Literal["winml/matrix/1"] = "winml/matrix/1"
    ok: Literal[True] = True
    run_stamp: str
    folder: str
    feed: str | None
    cells: tuple[CellRow, ...]
    progress: Progress
    disk: DiskUse
    cluster: str | None
    nodes: Mapping[str, Mapping[str, str | int | None]]
    """What the nodes reported about themselves, by name."""
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class StatusResult(RunState):
    action: Literal["status"] = "status"


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResult(RunState):
    action: Literal["run"] = "run"
    sent_bytes: Count | None
    """Null when the feed does not report it."""
    seconds: Annotated[float, AtLeast(0)]


# Plan


def choose_targets(request: PlanRequest) -> tuple[Target, ...]:
    """The requested targets; from the table alone, unless an EP or a device was not given."""
    if request.targets and (request.ep is not None or request.device is not None):
        raise RequestError("`--target` cannot be combined with `--ep` or `--device`", hint="write `--target EP/DEVICE`")
    if request.targets:
        return tuple(_target(word) for word in request.targets)
    if request.ep is None and request.device is None:
        return plans.COMBOS
    found = machine.plan(None, request.ep, request.device).target
    return (Target(found.ep, found.device),)


def _target(word: str) -> Target:
    asked = parse_target(word)
    if asked.ep is None:
        raise RequestError(f"target `{word}` names no execution provider", hint="for example `qnn/npu`")
    return Target(asked.ep.name, asked.device or asked.ep.devices[0])


def _cells(request: PlanRequest, stamp: str) -> tuple[Cell, ...]:
    return plans.plan(
        request.models,
        choose_targets(request),
        run_stamp=stamp,
        package_name=request.package_name,
        compiled=request.compile,
    )


def _plan_notes(cells: tuple[Cell, ...], request: PlanRequest) -> list[str]:
    notes = []
    blind = [c for c in cells if c.calibrated and c.model.data is None and request.options.data is None]
    if blind:
        listed = ", ".join(dict.fromkeys(f"{c.model.name} for {c.target} ({c.precision})" for c in blind))
        notes.append(f"calibration data is missing and these cells will fail: {listed}")
    if request.compile:
        unable = dict.fromkeys(str(c.target) for c in cells if not catalog.BY_NAME[c.target.ep].can_compile)
        if unable:
            notes.append(f"not compiled, because their providers do not compile: {', '.join(unable)}")
    return notes


def plan(request: PlanRequest) -> PlanResult:
    """The cells of a matrix; nothing is read or built."""
    stamp = request.run_stamp or today()
    cells = _cells(request, stamp)
    notes = tuple(_plan_notes(cells, request))
    return PlanResult(run_stamp=stamp, cells=tuple(cell.plan for cell in cells), notes=notes)


# Run


def run(request: RunRequest, on_event: OnEvent) -> RunResult:
    """Build and publish what is left; cells that failed are raised with the result."""
    folder = MatrixFolder(folders.place(request.output))
    folder.check(resume=request.resume)
    records = folder.records()
    cells = _cells(request.plan, _stamp(request, folder, records))
    with ExitStack() as opened:
        feed = None if request.feed is None else opened.enter_context(closing(open_feed(request.feed)))
        # Before anything is written: a run that cannot start leaves nothing behind.
        notes, there = _ask_feed(request, feed, cells, replay(records))
        remote = _remote(request, feed, folder.path, opened)
        atomic.make_folder(folder.path)
        journal = opened.enter_context(Journal(folder.journal))
        if read_records(journal.replay.records, str(folder.journal)) != records:
            raise UnavailableError(f"another process has just written to `{folder.journal}`", hint="run it again")
        matrix = Run(request, folder, journal, records, feed, cells, on_event)
        matrix.notes += notes
        return matrix.carry_out(there, matrix.place(remote))


def _remote(request: RunRequest, feed: Feed | None, folder: Path, opened: ExitStack) -> Remote | None:
    """The cluster of a run, open; None when it builds on this machine."""
    if request.cluster is None:
        return None
    if request.staging is not None:
        feed = opened.enter_context(closing(open_feed(request.staging)))
    if feed is None:
        raise RequestError("`--cluster` needs a feed that all nodes reach", hint="give `--feed` or `--staging`")
    return opened.enter_context(open_cluster(request.cluster, feed, folder))


def _stamp(request: RunRequest, folder: MatrixFolder, records: Sequence[Record]) -> str:
    """The stamp of the run: the given one, or when resuming that of the journal; never one by the clock."""
    before = [one.run_stamp for one in records if isinstance(one, RunRecord)]
    given = request.plan.run_stamp
    if before:
        if given is not None and given != before[-1]:
            raise RequestError(
                f"`{folder.path}` holds the run `{before[-1]}`, not `{given}`", hint="name another folder with `-o`"
            )
        return before[-1]
    if given is None and request.resume:
        raise RequestError("`--resume` in a new folder needs `--run-stamp`", hint="`winml feed list` shows stamps")
    return given or today()


def _ask_feed(
    request: RunRequest, feed: Feed | None, cells: tuple[Cell, ...], states: Mapping[str, CellState]
) -> tuple[list[str], dict[str, FeedVersion]]:
    """What the feed has of every cell; raises when it cannot be used or queried, unless only the journal counts."""
    unasked = {cell.version: NOT_ASKED for cell in cells}
    if feed is None:
        return [], unasked
    try:
        feed.check()
    except UnavailableError as error:
        if not request.trust_journal:
            raise
        return [f"the feed is not ready: {error.message}; continuing from the journal alone"], unasked
    if request.trust_journal:
        return ["the feed was not queried; continuing from the journal alone"], unasked
    try:
        found = ask(feed, cells, states)
    except UnavailableError as error:
        hint = f"{error.hint}; " if error.hint else ""
        raise UnavailableError(
            f"the feed cannot be queried: {error.message}",
            hint=f"{hint}`--resume --trust-journal` continues from the journal alone",
        ) from error
    if not request.resume and not request.skip_existing:
        _refuse_taken_stamp(feed, cells[0].run_stamp, found)
    return [], found


def _refuse_taken_stamp(feed: Feed, stamp: str, found: Mapping[str, FeedVersion]) -> None:
    """Raise when the stamp belongs to another run: a new one would mix with it."""
    taken = [version for version, there in found.items() if there.state == "live"]
    if taken:
        raise RequestError(
            f"run stamp `{stamp}` is taken: {len(taken)} of {len(found)} cells are already in `{feed.address}`",
            hint="continue that run with `--resume`, or start another one with `--run-stamp`",
        )


class Run:
    """One run: its collaborators, the state of its cells, and its records."""

    def __init__(
        self,
        request: RunRequest,
        folder: MatrixFolder,
        journal: Journal,
        records: Sequence[Record],
        feed: Feed | None,
        cells: tuple[Cell, ...],
        on_event: OnEvent,
    ) -> None:
        self._request = request
        self._folder = folder
        self._journal = journal
        self._feed = feed
        self._cells = cells
        self._tell = on_event
        self._cache = Cache()
        self._before = [one for one in records if isinstance(one, RunRecord)]
        self._states = replay(records)
        self._tally = tally([cell.version for cell in cells], self._states, feed=self._address)
        self._nodes = _nodes(records)
        self._started = time.monotonic()
        self._sent: list[int | None] = []
        self._disk = Disk(self._cache, folder.path, limit=request.max_disk, guess=_guess(cells))
        self._results = Paced(lambda: folder.write_results(cells, self._states, self._address))
        self._place: BuildPlace | None = None
        self.notes = _plan_notes(cells, request.plan)

    def place(self, remote: Remote | None) -> AbstractContextManager[BuildPlace]:
        """Where the cells are built."""
        builder = Builder(self._folder, self._cache, self._request.plan.options)
        if remote is None:
            return local_place(builder, self._request.jobs, self._cells)
        return nullcontext(ClusterPlace(builder, remote))

    @property
    def _address(self) -> str | None:
        return None if self._feed is None else self._feed.address

    def carry_out(self, there: Mapping[str, FeedVersion], opened: AbstractContextManager[BuildPlace]) -> RunResult:
        """Run everything between opening the journal and the result."""
        with opened as place:
            self._place = place
            self._folder.prepare()
            self._folder.write_environment(self._nodes)
            self._clear_published()
            decisions = {cell.version: self._decide(cell, there[cell.version]) for cell in self._cells}
            pending = [cell for cell in self._cells if decisions[cell.version].step == "build"]
            for cell in pending:
                self._folder.check_place(cell)
            self._journal.append(to_json(self._run_record()))
            self._pins = Pins(self._cache, self._cells, pending, self._states)
            self._settle(decisions, there)
            missing = place.missing(pending)
            for cell in pending:
                if cell.target in missing:
                    self._record(cell, Build("failed", COMPILE.name, 0.0, now(), error=missing[cell.target]))
            publish = [cell for cell in self._cells if decisions[cell.version].step == "publish"]
            self._tell(CellsPlanned(self._tally.progress(self._slots)))
            self._loop(place, [cell for cell in pending if cell.target not in missing], publish)
            place.finish()
        return self._finish()

    def _clear_published(self) -> None:
        """Remove folders that a killed run left: recorded as published, and still with exactly that content."""
        if self._request.keep_local or not self._before or self._before[-1].keep_local:
            return
        for cell in self._cells:
            state = self._state(cell)
            if state.is_proven and self._folder.holds(cell, state):
                self._folder.remove(cell)

    def _decide(self, cell: Cell, there: FeedVersion) -> Decision:
        state = self._state(cell)
        if not self._request.resume and there.state == "live":
            return Decision("build")  # `--upload-skip-existing`: built, then skipped where the feed has it
        published = self._address is not None and state.is_published(self._address)
        is_here = not published and self._folder.holds(cell, state)
        return decide(state, there, feed=self._address, is_here=is_here)

    def _state(self, cell: Cell) -> CellState:
        return self._states.get(cell.version, CellState())

    def _settle(self, decisions: Mapping[str, Decision], there: Mapping[str, FeedVersion]) -> None:
        """Record what is known without any work, and note what is unusual."""
        for cell in self._cells:
            decision, found = decisions[cell.version], there[cell.version]
            if decision.step == "adopt":
                assert self._address is not None
                self._record(cell, Upload("uploaded", self._address, now(), None, found.digest, found.reference, 0))
                if self._folder.of(cell).exists():
                    self.notes.append(f"`{self._folder.of(cell)}` differs from what the feed has, so it was kept")
            elif decision.step == "refuse":
                assert self._address is not None
                self._record(cell, Upload("failed", self._address, now(), decision.reason, found.digest))
            elif decision.reason is not None:
                self.notes.append(f"{cell.version}: {decision.reason}")

    def _loop(self, place: BuildPlace, pending: list[Cell], publish: list[Cell]) -> None:
        publisher = None
        if self._feed is not None:
            publisher = Publisher(self._feed, self._folder, self._request.skip_existing, self._tell).publish

        def accept(cell: Cell, result: Result) -> Build:
            # A node is recorded when it is new or has changed.
            if result.node is not None and self._nodes.get(result.node) != dict(result.environment):
                self._nodes[result.node] = dict(result.environment)
                self._journal.append(to_json(NodeRecord(name=result.node, environment=result.environment)))
                self._folder.write_environment(self._nodes)
            return place.accept(cell, result)

        tools = MatrixTools(place.executor, place.job, accept, publisher, self._finish_cell, self._disk, self._tell)
        try:
            Loop(tools, Waiting(pending)).run(publish)
        except UnavailableError as error:
            hint = f"{error.hint}; then {self._again()}" if error.hint else self._again()
            raise type(error)(error.message, hint=hint, result=self._result()) from error
        except KeyboardInterrupt:
            raise Interrupted("interrupted", hint=self._again(), result=self._result()) from None
        finally:
            self._results.now()

    def _finish_cell(self, cell: Cell, happened: Build | Upload) -> None:
        """Record what happened; only then are files removed that were just published."""
        self._record(cell, happened)
        if self._state(cell).is_proven and not self._request.keep_local:
            self._folder.remove(cell)

    def _again(self) -> str:
        return f"continue with `{self._request.command} --resume --run-stamp {self._cells[0].run_stamp}`"

    def _record(self, cell: Cell, happened: Build | Upload) -> None:
        """Append an event to the journal, update all counts, and report it."""
        self._journal.append(to_json(make_record(cell.version, happened)))
        before = self._state(cell)
        self._states[cell.version] = before.after(happened)
        self._tally.change(before, self._states[cell.version])
        if isinstance(happened, Build):
            self._disk.add_build(happened)
            self._pins.add_build(cell, happened, keep=self._feed is not None)
        elif happened.status == "uploaded":
            self._sent.append(happened.sent_bytes)
            self._pins.release(cell)
        self._results()
        used = DiskUse(in_use_bytes=self._disk.recent_usage(), limit_bytes=self._disk.limit)
        self._tell(CellRecorded(self._row(cell), self._tally.progress(self._slots), used))

    def _run_record(self) -> RunRecord:
        return RunRecord(
            run_stamp=self._cells[0].run_stamp,
            feed=self._address,
            cells=tuple(cell.plan for cell in self._cells),
            jobs=self._slots,
            max_disk=self._request.max_disk,
            keep_local=self._request.keep_local,
            cluster=None if self._request.cluster is None else str(self._request.cluster),
            at=now(),
        )

    def _row(self, cell: Cell) -> CellRow:
        return make_row(cell.plan, self._state(cell), self._address)

    @property
    def _slots(self) -> int:
        return self._request.jobs if self._place is None else self._place.executor.slots

    def _result(self) -> RunResult:
        notes = (*self.notes, *(() if self._place is None else self._place.notes), *self._copy_note())
        return RunResult(
            run_stamp=self._cells[0].run_stamp,
            folder=str(self._folder.path),
            feed=self._address,
            cells=tuple(self._row(cell) for cell in self._cells),
            progress=self._tally.progress(self._slots),
            disk=DiskUse(in_use_bytes=self._disk.in_use(), limit_bytes=self._disk.limit),
            cluster=None if self._request.cluster is None else str(self._request.cluster),
            nodes=self._nodes,
            sent_bytes=None if None in self._sent else sum(n for n in self._sent if n is not None),
            seconds=time.monotonic() - self._started,
            notes=notes,
        )

    def _copy_note(self) -> list[str]:
        if not any(s.build is not None and s.build.files_by == "copy" for s in self._states.values()):
            return []
        if not files_may_be_shared():
            return [
                "every cell has copies of its files: on Windows an edit of a link would reach the store and other cells"
            ]
        return [f"the store `{self._cache.root}` is on another volume: files were copied, each once, instead of linked"]

    def _finish(self) -> RunResult:
        result = self._result()
        counts = result.progress
        if counts.done == counts.total:
            return result
        failed = [f"{cell.model.name} {cell.label}" for cell in self._cells if self._state(cell).has_failed]
        listed = ", ".join(failed[:_NAMED]) + (", …" if len(failed) > _NAMED else "")
        message = f"{len(failed)} of {counts.total} cells failed: {listed}"
        kind = PartlyDone if counts.done else RunFailedError
        raise kind(
            message,
            hint=f"`winml matrix status {shell_word(self._request.output)}` shows why; {self._again()}",
            result=result,
        )


def _guess(cells: tuple[Cell, ...]) -> int:
    """An estimate of the bytes of a cell: its model, optimized and quantized; 0 when its size is unknown."""
    files = {path for cell in cells if (path := Path(cell.model.source)).is_file()}
    return 2 * max((path.stat().st_size for path in files), default=0)


def _nodes(records: Sequence[Record]) -> dict[str, Mapping[str, str | int | None]]:
    """What the nodes of a run last reported about themselves."""
    return {one.name: one.environment for one in records if isinstance(one, NodeRecord)}


# Status


def read_status(output: str) -> StatusResult:
    """The progress of the run in a folder, from its journal."""
    folder = MatrixFolder(folders.place(output))
    records = folder.records()
    runs = [one for one in records if isinstance(one, RunRecord)]
    if not runs:
        hint = near_path(output, "`winml matrix run -o DIR` starts one")
        raise RequestError(f"`{output}` holds no matrix run", hint=hint)
    last, states = runs[-1], replay(records)
    return StatusResult(
        run_stamp=last.run_stamp,
        folder=str(folder.path),
        feed=last.feed,
        cells=tuple(make_row(cell, states.get(cell.version, CellState()), last.feed) for cell in last.cells),
        progress=tally([cell.version for cell in last.cells], states, feed=last.feed).progress(last.jobs),
        disk=DiskUse(in_use_bytes=bytes_in(Cache().root, folder.path), limit_bytes=last.max_disk),
        cluster=last.cluster,
        nodes=_nodes(records),
        notes=(),
    )
