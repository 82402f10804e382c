"""The runs below a folder: found by a walk that follows no link, recognised by the first bytes of files.

Nothing here parses the samples of a run: thousands of runs are listed at every visit. What was read of a file is kept
until its time or size changes. Folders are listed anew each time: their times say nothing of files that grow, and on
Windows a listing has the times of files, which is quicker than to ask for each.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.build_folder import MANIFEST
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.location import cache_root
from winml.modelkit.reporting.head import LONG, SHORT, parse_head
from winml.modelkit.reporting.runs import JOURNAL, SWEEP, kind_of_head
from winml.modelkit.reporting.served_files import Listing, is_link, list_folder, read_ends

State = Literal["finished", "not finished", "failed", "cannot be read"]
STATES: tuple[State, ...] = ("finished", "not finished", "failed", "cannot be read")
Stamp = tuple[tuple[str, int, int], ...]
"""Name, time and size of the files that say what a run is: while it stays the same, so does the run."""

MOST_ENTRIES = 200_000
"""Files and folders that a walk looks at before it stops and says so."""
_END = 64
"""Bytes at the end of a file that show whether it is whole."""
_MOST_NAMES = 50
"""Models or targets of one run that are kept."""
_DEEPEST_INSIDE = 3
"""How far below a matrix or a sweep its cells and searches lie."""
_SKIPPED = frozenset((
    "node_modules", "__pycache__", "venv", "env", "site-packages", "cache", "caches", "proc", "sys", "dev",
    "$recycle.bin", "system volume information",
))  # fmt: skip
"""Folders that hold no runs, in lower case; hidden ones are skipped, too."""
_LABELS = {
    "perf-parts": "perf", "perf-generation": "perf", "build-parts": "build", "build-folder": "build",
    "matrix-plan": "matrix", "matrix-status": "matrix", "op-trace": "trace", "trace-diff": "trace",
}  # fmt: skip
"""Kinds of run that people call by one word."""
SEARCH_RESULT, CONTRIBUTION = "autoconfig.json", "contribution.json"
KNOWLEDGE = ("findings", "outcomes", "gaps")
_KEY_FILES = {
    "autoconfig": (JOURNAL, SEARCH_RESULT),
    "matrix": (JOURNAL, SEARCH_RESULT),
    "sweep": (SWEEP,),
    "contribution": (CONTRIBUTION,),
    "build": (MANIFEST,),
}
"""The files in the folder of a run that its page is made from."""
_JOURNALS = (JOURNAL, SEARCH_RESULT)
_READ_WHOLE = {"kb": KNOWLEDGE, "contribution": ("evidence",)}
"""Folders in the folder of a run of which readers open any file."""


@dataclass(frozen=True, kw_only=True)
class IndexedRun:
    """A run as a row of the list."""

    id: str
    """Opaque, from the name: what an address calls it."""
    name: str
    """The path below the root, with `/`."""
    path: Path
    is_folder: bool
    kind: str
    """`perf`, `matrix`, `build`: what people call it."""
    models: tuple[str, ...]
    targets: tuple[str, ...]
    state: State
    reason: str | None
    """Why it failed or cannot be read."""
    stamp: Stamp
    changed_ns: int
    """When it last changed."""
    inside: str | None = None
    """The id of the matrix or sweep that it is a part of."""

    @property
    def bytes(self) -> int:
        """The size of the files that say what it is, not of its artifacts."""
        return sum(size for _, _, size in self.stamp)


@dataclass(frozen=True)
class Found:
    """What was found, and what was not looked at."""

    runs: tuple[IndexedRun, ...]
    unreadable: int = 0
    """Files and folders that could not be opened."""
    is_partial: bool = False
    """The walk stopped at `MOST_ENTRIES`."""


_Known = dict[str, tuple[Stamp, IndexedRun | None]]
"""What was found in a file or folder with a name, None for no run, while its stamp stays the same."""


@dataclass(frozen=True)
class _About:
    """What the first bytes of a run say."""

    kind: str
    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    state: State = "finished"
    reason: str | None = None


class Index:
    """The runs below a folder, brought up to date when they are asked for, and not sooner than `pause_s` later."""

    def __init__(self, root: Path, *, pause_s: float = 1.0) -> None:
        self.root = root.resolve(strict=True)
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._known: _Known = {}
        self._found = Found(())
        self._by_id: dict[str, IndexedRun] = {}
        self._due = 0.0

    def find_runs(self) -> Found:
        """All runs, the latest first."""
        with self._lock:
            started = time.monotonic()
            if started >= self._due:
                self._walk()
                # A walk through much takes long: it may take a tenth of the time, for others work on this machine.
                ended = time.monotonic()
                self._due = ended + (max(self._pause_s, 9 * (ended - started)) if self._pause_s else 0)
            return self._found

    @property
    def known(self) -> Found:
        """All runs as they were found last."""
        return self._found

    def find(self, run_id: str) -> IndexedRun | None:
        """The run with an id as it is now; None where there is none."""
        known = self._by_id.get(run_id)
        if known is None:
            self.find_runs()
            known = self._by_id.get(run_id)
        return known

    def _walk(self) -> None:
        walk = _Walk(self.root, self._known)
        runs = sorted(walk.find(), key=lambda run: (-run.changed_ns, run.name))
        self._known = walk.seen
        self._by_id = {run.id: run for run in reversed(runs)}
        self._found = Found(tuple(runs), walk.unreadable, walk.entries > MOST_ENTRIES)


def make_id(name: str) -> str:
    """What an address calls the run with a name below the root."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def make_stamp(run: IndexedRun) -> Stamp:
    """The stamp of a run as it is now; nothing is read."""
    if not run.is_folder:
        return _stamp_files(run.path.parent, (run.path.name,))
    if run.kind == "kb":
        return _stamp_knowledge(run.path)
    return _stamp_files(run.path, _KEY_FILES.get(run.kind, _JOURNALS))


def _stamp_files(folder: Path, names: Iterable[str]) -> Stamp:
    """Asked for each file: what a folder of Windows says of a file that is open for writing may be old."""
    found = []
    for name in names:
        try:
            seen = os.lstat(folder / name)
        except OSError:
            continue
        found.append((name, seen.st_mtime_ns, seen.st_size))
    return tuple(found)


def _stamp_knowledge(folder: Path) -> Stamp:
    found: list[tuple[str, int, int]] = []
    for part in KNOWLEDGE:
        try:
            listing = list_folder(folder / part)
        except OSError:
            continue
        found += _stamp_files(folder, (f"{part}/{name}" for name in listing.files if name.endswith(".json")))
    return tuple(found)


def find_link(run: IndexedRun) -> str | None:
    """The name of a link among the files that a page of this run is read from; None where there is none.

    Readers follow links, so that one in the place of a journal would show a file from elsewhere.
    """
    parts = _READ_WHOLE.get(run.kind, ())
    places = [run.path, *(run.path / part for part in parts)] if run.is_folder else []
    wanted = {JOURNAL, SEARCH_RESULT, SWEEP, CONTRIBUTION, MANIFEST, *parts}
    for place in places:
        try:
            names = [path.name for path in place.iterdir()]
        except OSError:
            continue
        for name in names:
            if (place != run.path or name in wanted) and is_link(place / name):
                return name
    return None


class _Walk:
    """One walk, which takes over what an earlier one knew of files that did not change."""

    def __init__(self, root: Path, known: _Known) -> None:
        self._root = root
        self._base = os.path.join(root, "")  # noqa: PTH118 - with its separator: parts are joined some ten thousand times
        self._known = known
        self._cache = _find_cache(root)
        self.seen: _Known = {}
        self.entries = 0
        self.unreadable = 0

    def find(self) -> Iterator[IndexedRun]:
        """Runs, folders nearest to the root first: those count where there is too much to look at everything."""
        level: list[tuple[str, str | None, int]] = [("", None, 0)]
        while level and self.entries <= MOST_ENTRIES:
            below: list[tuple[str, str | None, int]] = []
            for start, inside, depth in level:
                yield from self._look_into(start, inside, depth, below)
            level = below

    def _look_into(
        self, start: str, inside: str | None, depth: int, below: list[tuple[str, str | None, int]]
    ) -> Iterator[IndexedRun]:
        """The runs in one folder, named by its path with `/` at its end; folders to look into are added to `below`."""
        try:
            listing = list_folder(self._base + start)
        except OSError:
            self.unreadable += 1
            return
        self.entries += len(listing.files) + len(listing.folders)
        run = self._folder_run(start, inside, listing)
        skipped: tuple[str, ...] = ()
        if run is not None:
            yield run
            if run.kind in ("matrix", "sweep"):
                inside, depth = run.id, 0
            elif run.kind == "kb":
                skipped = KNOWLEDGE
            else:
                return  # what lies in the folder of a search or a build is part of it
        if inside is None:
            yield from self._file_runs(start, listing)
        elif depth == _DEEPEST_INSIDE:
            return
        below += [
            (f"{start}{name}/", inside, depth + 1)
            for name in listing.folders
            if not name.startswith(".") and name.lower() not in _SKIPPED and name not in skipped
            and f"{start}{name}" != self._cache
        ]  # fmt: skip

    def _folder_run(self, start: str, inside: str | None, listing: Listing) -> IndexedRun | None:
        kind = _kind_by_names(listing)
        if kind is None:
            return None
        folder = self._root / start
        stamp = _stamp_knowledge(folder) if kind == "kb" else _stamp_files(folder, _KEY_FILES.get(kind, _JOURNALS))
        run = self._remember(start or ".", stamp, lambda: _read_folder(folder, kind), is_folder=True)
        # The matrix around it may have been added or removed while it stayed as it is.
        return run if run is None or run.inside == inside else replace(run, inside=inside)

    def _file_runs(self, start: str, listing: Listing) -> Iterator[IndexedRun]:
        for name, entry in listing.files.items():
            if not name.endswith(".json") or name.startswith("."):
                continue
            try:
                seen = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it was replaced or removed meanwhile
            stamp = ((name, seen.st_mtime_ns, seen.st_size),)
            path = f"{self._base}{start}{name}"
            run = self._remember(start + name, stamp, partial(_read_file, path), is_folder=False)
            if run is not None:
                yield run

    def _remember(
        self, name: str, stamp: Stamp, read: Callable[[], _About | None], *, is_folder: bool
    ) -> IndexedRun | None:
        """The run in a file or folder, read where it changed; None for what is no run or cannot be opened."""
        known = self._known.get(name)
        if known is None or known[0] != stamp:
            try:
                about = read()
            except FileNotFoundError:
                return None  # it was replaced or removed meanwhile
            except OSError:
                self.unreadable += 1
                return None
            except ModelkitError as error:
                about = _About("unknown", state="cannot be read", reason=error.message)
            known = stamp, None if about is None else _make_run(self._root, name.rstrip("/"), about, stamp, is_folder)
        self.seen[name] = known
        return known[1]


def _find_cache(root: Path) -> str | None:
    """The cache of stages below the root, which holds builds that nobody asked for; None where it lies elsewhere."""
    try:
        return cache_root().resolve().relative_to(root).as_posix()
    except (ModelkitError, ValueError):
        return None


def _make_run(root: Path, name: str, about: _About, stamp: Stamp, is_folder: bool) -> IndexedRun:
    return IndexedRun(
        id=make_id(name),
        name=name,
        path=root / name,
        is_folder=is_folder,
        kind=about.kind,
        models=about.models,
        targets=about.targets,
        state=about.state,
        reason=about.reason,
        stamp=stamp,
        changed_ns=max((changed for _, changed, _ in stamp), default=0),
    )


# What a run is about


def _kind_by_names(listing: Listing) -> str | None:
    """As `runs.find_kind` has it, of files that are no links."""
    if JOURNAL in listing.files:
        return "journal"
    for name, kind in ((SEARCH_RESULT, "autoconfig"), (CONTRIBUTION, "contribution"), (MANIFEST, "build")):
        if name in listing.files:
            return kind
    if SWEEP in listing.files:
        return "sweep"
    return "kb" if "findings" in listing.folders else None


def _read_folder(folder: Path, kind: str) -> _About | None:
    match kind:
        case "journal":
            return _read_journal(folder)
        case "autoconfig":
            about = _read_file(folder / SEARCH_RESULT)
            if about is None or about.kind != kind:
                return None  # another file of this name
            return about if about.reason else _read_search(folder, {})
        case "sweep":
            return _read_sweep(folder)
        case "kb":
            return _read_knowledge(folder)
        case _:
            about = _read_file(folder / _KEY_FILES[kind][0])
            return None if about is None or about.kind != kind else about


def _read_file(path: str | Path) -> _About | None:
    """What a JSON file is about; None for one that is no run of ours."""
    raw, end = read_ends(path, SHORT, _END)
    head = parse_head(raw)
    kind = _kind_or_reason(head, path)
    if kind is None or isinstance(kind, _About):
        return kind
    about = _About(_LABELS.get(kind, kind), _models(head), _targets(head))
    if len(raw) == SHORT and not (about.models and about.targets):
        head = parse_head(read_ends(path, LONG)[0])
        about = replace(about, models=_models(head), targets=_targets(head))
    if not end.rstrip().endswith(b"}"):
        return replace(about, state="cannot be read", reason="it is cut off, or being written")
    if head.get("ok") is not False:
        return about
    said = _at(head, "error", "message")
    return replace(about, state="failed", reason=said if isinstance(said, str) else "it does not say why")


def _kind_or_reason(head: dict[str, Any], path: str | Path) -> str | _About | None:
    try:
        return kind_of_head(head, Path(path))
    except ModelkitError as error:
        kind = str(head["schema"]).split("/")[1]
        reason = error.message.replace(f"`{path}`", "it")
        return _About(_LABELS.get(kind, kind), state="cannot be read", reason=reason)


def _read_journal(folder: Path) -> _About | None:
    """A search begins with its study, a matrix with its run; None for a journal of something else."""
    head = parse_head(read_ends(folder / JOURNAL, LONG)[0].partition(b"\n")[0])
    record = head.get("record")
    schema = head.get("schema")
    if not isinstance(record, dict) or not isinstance(schema, str) or not schema.startswith("winml/journal/"):
        return None
    if record.get("kind") == "study":
        return _read_search(folder, record)
    return _read_matrix(folder, record) if record.get("record") == "run" else None


def _read_search(folder: Path, study: dict[str, Any]) -> _About:
    """A search that has ended is described by its result, one that has not by its study."""
    try:
        head = parse_head(read_ends(folder / SEARCH_RESULT, LONG)[0])
    except FileNotFoundError:
        head = {}
    identity = study.get("identity")
    known = identity if isinstance(identity, dict) else {}
    models = _models(head) or _models(study) or _models(known)
    state: State = "finished" if head.get("finished") is True else "not finished"
    return _About("autoconfig", models, _targets(head) or _targets(known), state)


def _read_matrix(folder: Path, run: dict[str, Any]) -> _About:
    from winml.modelkit.build_matrix.progress import tally
    from winml.modelkit.build_matrix.state import RunRecord, read_records, replay
    from winml.modelkit.store import journal

    path = folder / JOURNAL
    about = _About("matrix", _models(run), _targets(run), "not finished")
    try:
        records = read_records(journal.read(path).records, str(path))
    except ModelkitError as error:
        return replace(about, state="cannot be read", reason=error.message)
    runs = [one for one in records if isinstance(one, RunRecord)]
    if not runs:
        return about
    versions = [cell.version for cell in runs[-1].cells]
    progress = tally(versions, replay(records), feed=runs[-1].feed).progress(1)
    if progress.pending:
        return about
    if progress.failed:
        return replace(about, state="failed", reason=f"{progress.failed} of {progress.total} cells failed")
    return replace(about, state="finished")


def _read_sweep(folder: Path) -> _About | None:
    """The number of models stands behind them, so that the whole file is read."""
    about = _read_file(folder / SWEEP)
    if about is None or about.kind != "sweep" or about.reason:
        return about if about is not None and about.kind == "sweep" else None
    content = read_object(folder / SWEEP)
    searched, total = content.get("models"), content.get("total")
    is_done = isinstance(searched, list) and isinstance(total, int) and len(searched) >= total
    return _About("sweep", _models(content), (), "finished" if is_done else "not finished")


def _read_knowledge(folder: Path) -> _About | None:
    """Folders of any project may be called `findings`: one of ours holds a finding."""
    for name in list_folder(folder / "findings").files:
        if name.endswith(".json"):
            head = parse_head(read_ends(folder / "findings" / name, SHORT)[0])
            is_ours = str(head.get("schema")).startswith("winml/finding/")
            return _About("kb") if is_ours else None
    return None


def _models(head: dict[str, Any]) -> tuple[str, ...]:
    """The models that a document is about, by the keys that our documents have for them."""
    for found in (
        _at(head, "model"),
        _at(head, "model", "reference"),
        _at(head, "metadata", "model"),
        _at(head, "source", "path"),
        _at(head, "base", "label"),
        _at(head, "contribution", "model", "reference"),
    ):
        if isinstance(found, str) and found:
            return (found,)
    rows = (*_rows(head, "cells"), *_rows(head, "models"))
    return _names(row.get("hf_id") or row.get("model") for row in rows)


def _targets(head: dict[str, Any]) -> tuple[str, ...]:
    metadata = head.get("metadata")
    if isinstance(metadata, dict) and isinstance(ep := metadata.get("ep"), str):
        device = metadata.get("device")
        name = f"{ep}/{device}" if isinstance(device, str) and device != ep else ep
        return _names([_mark_simulated({"target": name, "simulated": metadata.get("simulated")})])
    places = [head, head.get("base"), *_rows(head, "cells"), *_rows(head, "targets")]
    found = _names(_mark_simulated(one) for one in places if isinstance(one, dict))
    listed = head.get("targets")
    return found or _names(listed if isinstance(listed, list) else ())


def _mark_simulated(value: dict[str, Any]) -> object:
    target = value.get("target")
    return f"{target} (simulated)" if isinstance(target, str) and value.get("simulated") is True else target


def _at(head: dict[str, Any], *keys: str) -> object:
    found: Any = head
    for key in keys:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def _rows(head: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = head.get(key)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _names(found: Iterable[object]) -> tuple[str, ...]:
    names = dict.fromkeys(one for one in found if isinstance(one, str) and one)
    return tuple(names)[:_MOST_NAMES]
