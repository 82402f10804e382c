"""`winml autoconfig --models`: one search per model, and their summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.core import model_ref
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import (
    Interrupted,
    ModelkitError,
    PartlyDone,
    RequestError,
    RunFailedError,
    UnavailableError,
)
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.file_names import fit_name
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import to_json
from winml.modelkit.search.autoconfig import autoconfig
from winml.modelkit.search.cluster import ClusterOptions, Search, make_failed_row, make_row, search_on_cluster
from winml.modelkit.search.events import ModelStarted
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.records import JOURNAL
from winml.modelkit.search.result import SweepResult, SweepRow
from winml.modelkit.store import atomic

LOCK = "sweep.lock"


@dataclass(frozen=True)
class SweepRequest:
    """A list of models and how each is searched."""

    models: str
    each: AutoconfigRequest
    """Its model is replaced by each of the list; its output is the folder of the sweep."""
    cluster: ClusterOptions | None = None
    """None searches on this machine."""


def read_list(path: str) -> list[str]:
    """The models of a list, one per line: a path relative to the list, or a model of the hub.

    Empty lines and `#` comments are skipped. What is on this machine comes before what may be on the hub.
    """
    file = Path(path)
    if not file.is_file():
        raise RequestError(f"list of models not found: `{path}`", hint=near_path(path))
    try:
        text = file.read_text(encoding="utf-8")
    except ValueError as error:
        raise RequestError(f"`{path}` is not a text file: {error}") from error
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    found = [_find_model(file, line) for line in lines if line]
    if not found:
        raise RequestError(f"`{path}` lists no model")
    return found


def _find_model(listed_in: Path, line: str) -> str:
    """A model of a list as `-m` takes it."""
    path = (listed_in.parent / line).resolve()
    if path.exists():
        return str(path)
    beside = (listed_in.parent / line.partition("/")[0]).is_dir()
    if not beside and model_ref.parse(line).kind in ("hub", "hub-file"):
        return line
    raise RequestError(f"`{listed_in}` lists a model that does not exist: `{path}`", hint=near_path(path))


def folders_of(models: list[str]) -> list[str]:
    """A folder name per model, numbered where two have the same name; some file systems ignore case."""
    names: list[str] = []
    for model in models:
        path = Path(model if Path(model).exists() else model.partition("@")[0])
        named = path.stem if path.suffix.lower() == ".onnx" else path.name
        name = fit_name(re.sub(r"[^A-Za-z0-9._-]+", "-", named))
        count = sum(other.partition("~")[0].casefold() == name.casefold() for other in names)
        names.append(f"{name}~{count + 1}" if count else name)
    return names


def sweep(request: SweepRequest, on_event: OnEvent) -> SweepResult:
    """Search every model; if some fail, the error carries the summary."""
    models, each = read_list(request.models), request.each
    root = Path(each.output).absolute()
    if not root.parent.is_dir():
        raise RequestError(f"output folder's parent not found: `{root.parent}`", hint=near_path(root.parent))
    if root.is_dir() and any(root.iterdir()) and not each.resume and not (each.overwrite and (root / LOCK).is_file()):
        raise RequestError(
            f"output folder `{root}` is not empty",
            hint="continue with `--resume`, replace its sweep with `--overwrite`, or name a new folder",
        )
    searches = [Search(model, root / name) for model, name in zip(models, folders_of(models), strict=True)]
    order = {str(search.folder): number for number, search in enumerate(searches)}
    rows: list[SweepRow] = []
    notes: list[str] = []
    with _lock(root):
        for row in _search_all(request, searches, notes, on_event):
            rows.append(row)
            _write(_summarize(root, rows, len(models), notes))
        rows.sort(key=lambda row: order[row.folder])
        result = _summarize(root, rows, len(models), notes)
        _write(result)
    failing = [row.model for row in rows if row.error is not None]
    if failing:
        kind = RunFailedError if len(failing) == len(rows) else PartlyDone
        raise kind(f"{len(failing)} of {len(rows)} models failed: {', '.join(failing)}", result=result)
    return result


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """The folder of a sweep, locked."""
    from filelock import FileLock, Timeout

    try:
        root.mkdir(exist_ok=True)
        lock = FileLock(root / LOCK)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise UnavailableError(
            f"sweep `{root}` is in use by another process", hint="wait for it to end, or use another folder"
        ) from error
    except OSError as error:
        raise atomic.write_error(error, root) from error
    try:
        yield
    finally:
        lock.release()


def _search_all(
    request: SweepRequest, searches: Sequence[Search], notes: list[str], on_event: OnEvent
) -> Iterator[SweepRow]:
    """The rows of all searches as they end; remarks about the machines are added to `notes`."""
    if request.cluster is not None:
        yield from search_on_cluster(request.cluster, searches, request.each, notes, on_event)
        return
    for number, search in enumerate(searches, 1):
        on_event(ModelStarted(search.model, number, len(searches)))
        yield _search_one(request.each, search, on_event)


def _search_one(each: AutoconfigRequest, search: Search, on_event: OnEvent) -> SweepRow:
    """One model; an earlier search is resumed, and a finished one returns its result again."""
    begun = (search.folder / JOURNAL).is_file() and not each.overwrite
    one = replace(each, model=search.model, output=str(search.folder), resume=begun)
    try:
        return make_row(search, autoconfig(one, on_event), None)
    except (Interrupted, KeyboardInterrupt):
        raise
    except ModelkitError as error:
        # One failing model must not stop the others.
        return make_failed_row(search, ErrorObject.of(error), None)


def _summarize(root: Path, rows: Sequence[SweepRow], total: int, notes: Sequence[str]) -> SweepResult:
    return SweepResult(
        folder=str(root),
        models=tuple(rows),
        total=total,
        notes=tuple(notes),
        next=f"open {shell_word(str(root / 'SUMMARY.md'))}",
    )


def _write(result: SweepResult) -> None:
    from winml.modelkit.render.autoconfig_sweep import sweep_markdown

    root = Path(result.folder)
    write_json(root / "summary.json", to_json(result))
    atomic.write_bytes(root / "SUMMARY.md", sweep_markdown(result).encode())
