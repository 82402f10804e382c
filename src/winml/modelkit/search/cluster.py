"""Searches of several models on the nodes of a cluster.

A search runs as a whole on one node that runs nothing else: both arms of every verdict are measured on one machine. A
search whose node went away begins again, for measurements of two machines must not meet in one journal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.json_text import parse_json, read_object
from winml.modelkit.core.target import Target
from winml.modelkit.dispatch import cluster as clusters
from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.dispatch.cluster import MEASURING, Cluster
from winml.modelkit.dispatch.dask_cluster import DaskCluster
from winml.modelkit.dispatch.staging import Inputs, Staging, answer_of, staged_argv, stamp_of
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.feed.table import open_feed
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.run_folder import JOURNAL, RESULT
from winml.modelkit.store import atomic
from winml.modelkit.worker import exit_reason

_SPARE_S = 1800.0
"""What a search may take beyond twice its budget before it counts as hanging."""
_POLL_S = 5.0

OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Away:
    """A cluster to search on, the feed files travel through, and the options of `winml autoconfig` for one model."""

    cluster: Cluster
    staging: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Search:
    """A model, and the folder in which its search is to be in the end."""

    model: Path
    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name


def searched(
    away: Away, searches: Iterable[Search], each: AutoconfigRequest, notes: list[str], on_event: OnEvent
) -> Iterator[dict[str, Any]]:
    """The rows of searches in the order in which they end; those that have ended before are read."""
    needs = _needs(each.targets)
    waiting: dict[str, Search] = {}
    for search in searches:
        row = _read(search)
        if row is None:
            waiting[search.id] = search
        else:
            yield row
    if not waiting:
        return
    with closing(open_feed(away.staging)) as feed:
        staging = Staging(feed, stamp_of(next(iter(waiting.values())).folder.parent))
        staging.check()
        with DaskCluster(away.cluster) as executor:
            notes += clusters.shared_machines(executor.nodes)
            jobs = _Jobs(executor, staging, away.words, needs, each.limits.budget_s)
            executor.check(jobs.described(next(iter(waiting.values()))))
            yield from _rows(jobs, waiting, on_event)
            notes += [f"node {name} went away; what it was at began again" for name in executor.gone]
        notes += staging.clear()


def _needs(targets: Iterable[str | None]) -> dict[str, int]:
    """What a search takes: a node for itself, and the targets it measures on."""
    found = {MEASURING: 1}
    for word in targets:
        asked = None if word is None else parse_target(word)
        if asked is None or asked.ep is None:
            raise RequestError(
                "on a cluster the target must be named, for nodes differ in what they have",
                hint="for example `--target qnn/npu`",
            )
        found[str(Target(asked.ep.name, asked.device or asked.ep.devices[0]))] = 1
    return found


def _read(search: Search) -> dict[str, Any] | None:
    """The row of a search that is here; None when there is none yet."""
    if not search.folder.exists():
        return None
    try:
        result = read_object(search.folder / RESULT)
    except (OSError, RequestError):
        result = {}
    if not result.get("finished"):
        where = "a search that is not finished" if (search.folder / JOURNAL).is_file() else "other files"
        raise RequestError(
            f"`{search.folder}` holds {where}", hint="go on without `--cluster`, or name a new folder with `-o`"
        )
    return row(search, result, result.get("node"))


class _Jobs:
    """The jobs of a sweep: all take the same, and no more are given away than nodes can take at once."""

    def __init__(
        self, executor: DaskCluster, staging: Staging, words: tuple[str, ...], needs: dict[str, int], budget_s: float
    ) -> None:
        self.executor = executor
        self.staging = staging
        self._words = words
        self._needs = needs
        self._timeout_s = 2 * budget_s + _SPARE_S
        self._inputs = Inputs(staging)

    def described(self, search: Search) -> Job:
        """What the job of a search takes; nothing is made ready for it."""
        return Job(search.id, (), self._needs, timeout_s=self._timeout_s, retries=1)

    def has_room(self, running: int, search: Search) -> bool:
        """Whether a node is free; when they are all away one search is given away, so that it notices."""
        job = self.described(search)
        return running < max(1, sum(node.can_run(job) for node in self.executor.nodes))

    def submit(self, search: Search) -> None:
        words = self._inputs.words(["autoconfig", "-m", str(search.model), *self._words])
        self.executor.submit(replace(self.described(search), argv=staged_argv(self.staging, words)))


def _rows(jobs: _Jobs, searches: dict[str, Search], on_event: OnEvent) -> Iterator[dict[str, Any]]:
    """The rows of searches as they end on nodes; a model whose files cannot travel fails alone."""
    waiting = deque(searches.values())
    running: set[str] = set()
    while waiting or running:
        while waiting and jobs.has_room(len(running), waiting[0]):
            search = waiting.popleft()
            number = len(searches) - len(waiting)
            on_event({"event": "model", "model": str(search.model), "number": number, "total": len(searches)})
            try:
                jobs.submit(search)
            except (RunFailedError, RequestError) as error:
                yield failed(search, error.to_json(), None)
                continue
            running.add(search.id)
        result = jobs.executor.wait(_POLL_S) if running else None
        if result is not None:
            running.remove(result.job)
            yield _ended(searches[result.job], result, jobs.staging)


def _ended(search: Search, result: Result, staging: Staging) -> dict[str, Any]:
    """The row of a search that has ended on a node; its folder is brought here when it came to a result."""
    said = answer_of(result)
    try:
        value = parse_json(said.get("output", ""))
    except ValueError:  # it was ended before it came to an answer
        value = None
    value = value if isinstance(value, dict) else {}
    if not value.get("ok"):
        return failed(search, value.get("error") or RunFailedError(_last_words(result)).to_json(), result.node)
    try:
        _bring(said["digest"], search, staging, result)
    except (RunFailedError, RequestError) as error:
        return failed(search, error.to_json(), result.node)
    return row(search, value, result.node)


def _bring(digest: str, search: Search, staging: Staging, result: Result) -> None:
    """Put the folder of a search in its place, as a whole; its result says on which node it was made."""
    temporary = atomic.temporary_name(search.folder.parent)
    try:
        staging.get(digest, temporary)
        value = at_home(read_object(temporary / RESULT), search)
        value |= {"node": result.node, "node_environment": dict(result.environment)}
        atomic.write_bytes(temporary / RESULT, json.dumps(value, indent=2).encode())
        atomic.move(temporary, search.folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def at_home(value: dict[str, Any], search: Search) -> dict[str, Any]:
    """A result whose paths are those of this machine, whatever system its node has."""

    def moved(text: str) -> str:
        return re.sub(re.escape(value["folder"]) + r"[\\/]", lambda _: f"{search.folder}{os.sep}", text)

    best = value["champion"]
    if best is not None and best.get("folder"):
        best = {**best, "folder": moved(best["folder"])}
    paths = {"model": str(search.model), "folder": str(search.folder), "champion": best, "next": moved(value["next"])}
    return {**value, **paths}


def _last_words(result: Result) -> str:
    if result.status == "timeout":
        return "the search took far longer than its budget and was ended"
    lines = [line for line in result.log.splitlines() if line.strip()][-3:]
    how = "was ended" if result.returncode is None else exit_reason.describe(result.returncode)
    return "; ".join([f"the search {how}", *lines])


def row(search: Search, result: dict[str, Any], node: str | None) -> dict[str, Any]:
    """A model in the summary; the champion lies where the folder of its search is now."""
    best = result["champion"]
    if best is not None and best.get("folder"):
        best = {**best, "folder": str(search.folder / Path(best["folder"].replace("\\", "/")).name)}
    return {
        "model": str(search.model),
        "folder": str(search.folder),
        "error": None,
        "champion": best,
        "trials": len(result["trials"]),
        "node": node,
    }


def failed(search: Search, error: dict[str, Any], node: str | None) -> dict[str, Any]:
    """A model whose search came to nothing."""
    return {
        "model": str(search.model),
        "folder": str(search.folder),
        "error": error,
        "champion": None,
        "trials": 0,
        "node": node,
    }
