"""`winml autoconfig --models`: a search per model, and what they come to together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.pipeline.folder import write_json
from winml.modelkit.core.errors import (
    Interrupted,
    ModelkitError,
    PartlyDone,
    RequestError,
    RunFailedError,
    UnavailableError,
)
from winml.modelkit.core.file_names import fit_name
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.search import cluster as autoconfig_cluster
from winml.modelkit.search.autoconfig import autoconfig
from winml.modelkit.search.cluster import Away, Search
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.run_folder import JOURNAL
from winml.modelkit.store import atomic

SCHEMA = "winml/autoconfig/1"
LOCK = "sweep.lock"

OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class SweepRequest:
    """A list of models and how each is searched."""

    models: str
    each: AutoconfigRequest
    """Its model is that of the list, its output the folder of the sweep."""
    away: Away | None = None
    """None searches on this machine."""


def read_list(path: str) -> list[Path]:
    """The models of a list: one path per line, relative to the list; empty lines and `#` comments are left out."""
    file = Path(path)
    if not file.is_file():
        raise RequestError(f"list of models not found: `{path}`")
    try:
        text = file.read_text(encoding="utf-8")
    except ValueError as error:
        raise RequestError(f"`{path}` is not a text file: {error}") from error
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    found = [(file.parent / line).resolve() for line in lines if line]
    if not found:
        raise RequestError(f"`{path}` names no model")
    missing = [model for model in found if not model.exists()]
    if missing:
        raise RequestError(f"`{path}` names a model that is not there: `{missing[0]}`")
    return found


def folders_of(models: list[Path]) -> list[str]:
    """A folder name per model, numbered where two have the same name; case makes no difference on some disks."""
    names: list[str] = []
    for model in models:
        name = fit_name(re.sub(r"[^A-Za-z0-9._-]+", "-", model.stem))
        count = sum(other.partition("~")[0].casefold() == name.casefold() for other in names)
        names.append(f"{name}~{count + 1}" if count else name)
    return names


def sweep(request: SweepRequest, on_event: OnEvent) -> dict[str, Any]:
    """Search every model and return the summary; models that failed are raised with it as details."""
    models = read_list(request.models)
    root = Path(request.each.output).absolute()
    if not root.parent.is_dir():
        raise RequestError(f"output folder's parent not found: `{root.parent}`")
    each = request.each
    if root.is_dir() and any(root.iterdir()) and not each.resume and not (each.overwrite and (root / LOCK).is_file()):
        raise RequestError(
            f"output folder `{root}` is not empty",
            hint="go on with `--resume`, start its sweep anew with `--overwrite`, or name a new folder",
        )
    with _alone(root):
        return _swept(request, models, root, on_event)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
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
        raise atomic.refused(error, root) from error
    try:
        yield
    finally:
        lock.release()


def _swept(request: SweepRequest, models: list[Path], root: Path, on_event: OnEvent) -> dict[str, Any]:
    searches = [Search(model, root / name) for model, name in zip(models, folders_of(models), strict=True)]
    order = {str(search.folder): number for number, search in enumerate(searches)}
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for row in _rows(request, searches, notes, on_event):
        rows.append(row)
        _write(root, _summary(request, rows, len(models), notes))
    rows.sort(key=lambda row: order[row["folder"]])
    result = _summary(request, rows, len(models), notes)
    _write(root, result)
    failing = [row["model"] for row in rows if row["error"] is not None]
    if failing:
        kind = RunFailedError if len(failing) == len(rows) else PartlyDone
        raise kind(f"{len(failing)} of {len(rows)} models failed: {', '.join(failing)}", details=result)
    return result


def _rows(
    request: SweepRequest, searches: list[Search], notes: list[str], on_event: OnEvent
) -> Iterator[dict[str, Any]]:
    """The rows of all searches as they end; what a user should know of the machines is noted."""
    each = request.each
    if request.away is not None:
        yield from autoconfig_cluster.searched(request.away, searches, each, notes, on_event)
        return
    for number, search in enumerate(searches, 1):
        on_event({"event": "model", "model": str(search.model), "number": number, "total": len(searches)})
        yield _row(each, search, on_event)


def _row(each: AutoconfigRequest, search: Search, on_event: OnEvent) -> dict[str, Any]:
    """One model; a search of an earlier run goes on, and one with nothing left to do only tells its result again."""
    started = (search.folder / JOURNAL).is_file() and not each.overwrite
    one = replace(each, model=str(search.model), output=str(search.folder), resume=started)
    try:
        return autoconfig_cluster.row(search, autoconfig(one, on_event), None)
    except (Interrupted, KeyboardInterrupt):
        raise
    except ModelkitError as error:
        # One model that does not work must not take the others with it.
        return autoconfig_cluster.failed(search, error.to_json(), None)


def _summary(request: SweepRequest, rows: list[dict[str, Any]], total: int, notes: list[str]) -> dict[str, Any]:
    root = Path(request.each.output).absolute()
    return {
        "schema": SCHEMA,
        "ok": True,
        "folder": str(root),
        "models": rows,
        "total": total,
        "notes": notes,
        "next": f"open {shell_word(str(root / 'SUMMARY.md'))}",
    }


def _write(root: Path, result: dict[str, Any]) -> None:
    from winml.modelkit.render.autoconfig_sweep import sweep_markdown

    write_json(root / "summary.json", result)
    atomic.write_bytes(root / "SUMMARY.md", sweep_markdown(result).encode())
