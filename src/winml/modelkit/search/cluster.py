"""Searches of several models on the nodes of a cluster.

A search runs entirely on one node that runs nothing else: both arms of every verdict are measured on one machine. A
search whose node is lost starts again, because measurements of two machines must not be mixed in one journal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.json_text import parse_json, read_object
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.dispatch import cluster as clusters
from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.dispatch.cluster import MEASURING, Cluster
from winml.modelkit.dispatch.dask_cluster import DaskCluster
from winml.modelkit.dispatch.staging import Inputs, Staging, answer_of, job_argv, stamp_of
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.feed.table import open_feed
from winml.modelkit.search.events import ModelStarted
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.records import JOURNAL
from winml.modelkit.search.result import SearchResult, SweepRow, count_effects
from winml.modelkit.search.run_folder import RESULT
from winml.modelkit.store import atomic
from winml.modelkit.worker import exit_reason

_SPARE_S = 1800.0
"""Time beyond twice its budget after which a search counts as hanging."""
_POLL_S = 5.0


@dataclass(frozen=True)
class ClusterOptions:
    """A cluster to search on, the feed that transfers files, and the options of `winml autoconfig` for one model."""

    cluster: Cluster
    staging: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Search:
    """A model, and the destination folder of its search."""

    model: str
    folder: Path

    @property
    def id(self) -> str:
        return self.folder.name


def search_on_cluster(
    options: ClusterOptions,
    searches: Iterable[Search],
    each: AutoconfigRequest,
    notes: list[str],
    on_event: OnEvent,
) -> Iterator[SweepRow]:
    """The rows of searches in the order in which they end; searches that are already finished are read."""
    needs = _needs(each.targets)
    waiting: dict[str, Search] = {}
    for search in searches:
        row = _read_row(search)
        if row is None:
            waiting[search.id] = search
        else:
            yield row
    if not waiting:
        return
    with closing(open_feed(options.staging)) as feed:
        staging = Staging(feed, stamp_of(next(iter(waiting.values())).folder.parent))
        staging.check()
        with DaskCluster(options.cluster) as executor:
            notes += clusters.find_shared_machines(executor.nodes)
            jobs = _Jobs(executor, staging, options.words, needs, each.limits.budget_s)
            executor.check(jobs.describe(next(iter(waiting.values()))))
            yield from _rows(jobs, waiting, on_event)
            notes += [f"node {name} was lost; its search was started again" for name in executor.gone]
        notes += staging.clear()


def _needs(targets: Iterable[str | None]) -> dict[str, int]:
    """What a search needs: a node of its own, and the targets it measures on."""
    found = {MEASURING: 1}
    for word in targets:
        asked = None if word is None else parse_target(word)
        if asked is None or asked.ep is None:
            raise RequestError(
                "on a cluster the target must be given, because nodes have different ones",
                hint="for example `--target qnn/npu`",
            )
        found[str(Target(asked.ep.name, asked.device or asked.ep.devices[0]))] = 1
    return found


def _read_row(search: Search) -> SweepRow | None:
    """The row of a search that is already here; None when there is none."""
    if not search.folder.exists():
        return None
    try:
        result = _read_result(read_object(search.folder / RESULT))
    except (OSError, RequestError):
        result = None
    if result is None or not result.finished:
        where = "a search that is not finished" if (search.folder / JOURNAL).is_file() else "other files"
        raise RequestError(
            f"`{search.folder}` holds {where}", hint="resume without `--cluster`, or name a new folder with `-o`"
        )
    return make_row(search, result, result.node)


def _read_result(value: object) -> SearchResult:
    """A result from `autoconfig.json`; that of a newer node may have more fields."""
    return read(SearchResult, value, strict=False)


class _Jobs:
    """The jobs of a sweep: all have the same needs, and no more are submitted than nodes can run at once."""

    def __init__(
        self, executor: DaskCluster, staging: Staging, words: tuple[str, ...], needs: dict[str, int], budget_s: float
    ) -> None:
        self.executor = executor
        self.staging = staging
        self._words = words
        self._needs = needs
        self._timeout_s = 2 * budget_s + _SPARE_S
        self._inputs = Inputs(staging)

    def describe(self, search: Search) -> Job:
        """The job of a search without its files, which are not staged yet."""
        return Job(search.id, (), self._needs, timeout_s=self._timeout_s, retries=1)

    def has_room(self, running: int, search: Search) -> bool:
        """Whether a node is free; when all are lost one search is submitted, so that the executor notices."""
        job = self.describe(search)
        return running < max(1, sum(node.can_run(job) for node in self.executor.nodes))

    def submit(self, search: Search) -> None:
        words = self._inputs.words(["autoconfig", "-m", search.model, *self._words])
        self.executor.submit(replace(self.describe(search), argv=job_argv(self.staging, words)))


def _rows(jobs: _Jobs, searches: Mapping[str, Search], on_event: OnEvent) -> Iterator[SweepRow]:
    """The rows of searches as they end on nodes; a model whose files cannot be transferred fails alone."""
    waiting = deque(searches.values())
    running: set[str] = set()
    while waiting or running:
        while waiting and jobs.has_room(len(running), waiting[0]):
            search = waiting.popleft()
            number = len(searches) - len(waiting)
            on_event(ModelStarted(search.model, number, len(searches)))
            try:
                jobs.submit(search)
            except (RunFailedError, RequestError) as error:
                yield make_failed_row(search, ErrorObject.of(error), None)
                continue
            running.add(search.id)
        result = jobs.executor.wait(_POLL_S) if running else None
        if result is not None:
            running.remove(result.job)
            yield _make_row_of(searches[result.job], result, jobs.staging)


def _make_row_of(search: Search, job: Result, staging: Staging) -> SweepRow:
    """The row of a search that ended on a node; its folder is fetched when it has a result."""
    answer = answer_of(job)
    try:
        value = parse_json(answer.get("output", ""))
    except ValueError:  # it was stopped before it answered
        value = None
    value = value if isinstance(value, dict) else {}
    try:
        if not value.get("ok"):
            found = value.get("error")
            if found is None:
                raise RunFailedError(_describe_end(job))
            return make_failed_row(search, read(ErrorObject, found, strict=False), job.node)
        result = _read_result(value)
        _fetch_folder(answer["digest"], search, staging, job)
    except (RunFailedError, RequestError) as error:
        return make_failed_row(search, ErrorObject.of(error), job.node)
    return make_row(search, result, job.node)


def _fetch_folder(digest: str, search: Search, staging: Staging, job: Result) -> None:
    """Fetch the folder of a search atomically; its result names the node that ran it."""
    temporary = atomic.temporary_name(search.folder.parent)
    try:
        staging.get(digest, temporary)
        result = move_paths(_read_result(read_object(temporary / RESULT)), search)
        result = replace(result, node=job.node, node_environment=dict(job.environment))
        atomic.write_bytes(temporary / RESULT, json.dumps(to_json(result), indent=2).encode())
        atomic.move(temporary, search.folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def move_paths(result: SearchResult, search: Search) -> SearchResult:
    """A result with the paths of this machine, whatever the system of its node."""

    def move(text: str) -> str:
        return re.sub(re.escape(result.folder) + r"[\\/]", lambda _: f"{search.folder}{os.sep}", text)

    best, command = result.champion, move(result.next)
    if best is not None and best.folder is not None:
        best = replace(best, folder=move(best.folder))
    for windows in (False, True):  # as the shell of its node writes it
        command = command.replace(f"-m {shell_word(result.model, windows=windows)}", f"-m {shell_word(search.model)}")
    return replace(result, model=search.model, folder=str(search.folder), champion=best, next=command)


def _describe_end(job: Result) -> str:
    if job.status == "timeout":
        return "the search took far longer than its budget and was stopped"
    lines = [line for line in job.log.splitlines() if line.strip()][-3:]
    how = "was stopped" if job.returncode is None else exit_reason.describe(job.returncode)
    return "; ".join([f"the search {how}", *lines])


def make_row(search: Search, result: SearchResult, node: str | None) -> SweepRow:
    """A model in the summary; the champion's path is in the folder where the search is now."""
    best = result.champion
    if best is not None and best.folder is not None:
        best = replace(best, folder=str(search.folder / Path(best.folder.replace("\\", "/")).name))
    return SweepRow(
        model=search.model,
        folder=str(search.folder),
        conv_share=result.conv_share,
        findings=count_effects(result.insight),
        error=None,
        champion=best,
        trials=len(result.trials),
        node=node,
    )


def make_failed_row(search: Search, error: ErrorObject, node: str | None) -> SweepRow:
    """A model whose search failed."""
    return SweepRow(model=search.model, folder=str(search.folder), error=error, champion=None, trials=0, node=node)
