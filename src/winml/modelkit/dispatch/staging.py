"""Staging: moves inputs and outputs of jobs between machines, by digest, through a feed that all of them reach."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, RunFailedError, UnavailableError
from winml.modelkit.core.events import ignore
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.dispatch.base import PYTHON, Result
from winml.modelkit.feed.base import AlreadyThere, Feed, NotPublished, Published, Unavailable
from winml.modelkit.feed.content import Content, FeedDamaged, FileEntry, Tree, scan
from winml.modelkit.feed.names import check_version
from winml.modelkit.feed.table import absolute
from winml.modelkit.store import digest
from winml.modelkit.worker.client import Worker

PACKAGE = "winml-staging"
PATH_OPTIONS = frozenset(
    ("-m", "--data", "--calibration", "--processor", "--space", "--knowledge", "--reuse", "--input-data")
)
"""Options whose value may be a path: an existing one is staged with the job."""
_PROGRAM = "winml.modelkit.dispatch.staged_job"

Word = str | dict[str, str]
"""An argument of a command, or `{"input": digest, "path": inside}` for an input on the node."""


@dataclass(frozen=True)
class Staging:
    """What one run puts into a feed temporarily; versions there are named by the digest of their content."""

    feed: Feed
    stamp: str
    """Identifies the run; runs with the same stamp for their versions still differ in this one."""

    def check(self) -> None:
        """Raise when files cannot be staged in this feed."""
        if not self.feed.can_delete:
            raise RequestError(
                f"`{self.feed.address}` keeps every version indefinitely, so nothing can be staged there",
                hint="name another feed with `--staging`, for example `oci://HOST/NAME`",
            )
        self.feed.check()

    def _version(self, name: str) -> str:
        return check_version(f"0.0.0-{self.stamp}-{digest.check(name).removeprefix(digest.PREFIX)}")

    def put(self, tree: Tree) -> str:
        """Stage files; returns the digest to get them by."""
        name = tree.content.digest
        outcome = self.feed.publish(PACKAGE, self._version(name), tree, ignore)
        if isinstance(outcome, Published | AlreadyThere):
            return name
        if isinstance(outcome, Unavailable):
            raise UnavailableError(outcome.reason, hint=outcome.hint)
        raise RunFailedError(f"`{tree.root}` could not be staged in `{self.feed.address}`: {outcome.reason}")

    def get(self, name: str, into: Path) -> None:
        """Fetch files into a folder; they are verified against the digest."""
        stored = self.feed.find(PACKAGE, self._version(name))
        if stored is None:
            raise NotPublished(
                f"this machine finds nothing with {name} in `{self.feed.address}`",
                hint="all machines of a cluster must reach the same feed under the same address",
            )
        if stored.content.digest != name:
            raise FeedDamaged(f"`{self.feed.address}` has files that do not match {name}")
        self.feed.fetch(stored, into, only=stored.content, overwrite=True, on_event=ignore)

    def clear(self) -> list[str]:
        """Delete everything this run has staged; a failure is only a note, because the work itself is done."""
        try:
            listed = self.feed.versions(PACKAGE) or ()
            mine = [item.version for item in listed if item.version.startswith(f"0.0.0-{self.stamp}-")]
            if mine:
                self.feed.delete(PACKAGE, *mine)
        except (UnavailableError, RequestError, RunFailedError) as error:
            return [f"staged files remain as versions of `{PACKAGE}`: {error.message}"]
        return []


@dataclass
class Inputs:
    """Stages the paths that commands name, each once."""

    staging: Staging
    _known: dict[str, dict[str, str]] = field(default_factory=dict)

    def words(self, command: Iterable[str]) -> list[Word]:
        """The arguments of a command for another machine."""
        found: list[Word] = []
        option = ""
        for word in command:
            found.append(self._input(word) if option in PATH_OPTIONS and Path(word).exists() else word)
            option = word
        return found

    def _input(self, path: str) -> dict[str, str]:
        if path not in self._known:
            tree, inside = self._read(Path(path).absolute())
            self._known[path] = {"input": self.staging.put(tree), "path": inside}
        return self._known[path]

    @staticmethod
    def _read(path: Path) -> tuple[Tree, str]:
        try:
            return _tree(path)
        except OSError as error:
            raise RequestError(f"`{path}` cannot be read: {error}") from error


def _tree(path: Path) -> tuple[Tree, str]:
    """The files of a path, and its own path among them; a model includes its external data."""
    if path.is_dir():
        return scan(path), ""
    files = [path, *(_external(path) if path.suffix == ".onnx" else ())]
    names = {os.path.relpath(file, path.parent).replace(os.sep, "/"): file for file in files}
    content = Content({name: FileEntry(digest.of_file(file), file.stat().st_size) for name, file in names.items()})
    return Tree(path.parent, content), path.name


def _external(model: Path) -> list[Path]:
    """The other files of a model; none if it cannot be read, because its build reports best what is wrong with it."""
    with Worker() as worker:
        try:
            found = worker.ask(list[Path], "graph.external_files", {"path": model}, what="reading the model")
        except (RequestError, RunFailedError):
            return []
    return found


def stamp_of(folder: Path) -> str:
    """The stamp under which the run in a folder stages: the same when it is resumed, and unique to it."""
    return f"r{hashlib.sha256(f'{platform.node()} {folder}'.encode()).hexdigest()[:24]}"


def answer_of(result: Result) -> dict[str, Any]:
    """The answer of a job on a node, empty when it was ended; raises when staging does not work there at all."""
    try:
        answer = parse_json(result.output)
    except ValueError:
        return {}
    if not isinstance(answer, dict):
        return {}
    trouble = answer.get("trouble")
    if trouble is not None:
        raise UnavailableError(f"node {result.node}: {trouble['message']}", hint=trouble["hint"])
    return answer


def job_argv(staging: Staging, words: Iterable[Word]) -> tuple[str, ...]:
    """The command of a job that runs another command on a node, with its inputs, and stages its output folder."""
    spec = {"feed": absolute(staging.feed.address), "stamp": staging.stamp, "words": list(words)}
    return (PYTHON, "-m", _PROGRAM, json.dumps(spec))
