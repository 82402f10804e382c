"""Files that jobs need and make, on their way between machines: by digest, through a feed that all of them reach."""

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
"""Options whose value may be a path: what is there travels with the job."""
_PROGRAM = "winml.modelkit.dispatch.staged_job"

Word = str | dict[str, str]
"""A word of a command, or `{"input": digest, "path": inside}` where an input lies on the node."""


@dataclass(frozen=True)
class Staging:
    """What one run puts into a feed for a while; a version there is named by the digest of its content."""

    feed: Feed
    stamp: str
    """Whose it is; runs that share the stamp of their versions differ in this one."""

    def check(self) -> None:
        """Raise when files cannot travel this way."""
        if not self.feed.can_delete:
            raise RequestError(
                f"`{self.feed.address}` keeps every version for ever, so nothing can be staged there",
                hint="name another feed with `--staging`, for example `oci://HOST/NAME`",
            )
        self.feed.check()

    def _version(self, name: str) -> str:
        return check_version(f"0.0.0-{self.stamp}-{digest.check(name).removeprefix(digest.PREFIX)}")

    def put(self, tree: Tree) -> str:
        """Put files there; the digest under which anybody gets them."""
        name = tree.content.digest
        outcome = self.feed.publish(PACKAGE, self._version(name), tree, ignore)
        if isinstance(outcome, Published | AlreadyThere):
            return name
        if isinstance(outcome, Unavailable):
            raise UnavailableError(outcome.reason, hint=outcome.hint)
        raise RunFailedError(f"`{tree.root}` could not be staged in `{self.feed.address}`: {outcome.reason}")

    def get(self, name: str, into: Path) -> None:
        """Bring files into a folder; what arrives has the digest that was asked for."""
        stored = self.feed.find(PACKAGE, self._version(name))
        if stored is None:
            raise NotPublished(
                f"`{self.feed.address}` has nothing with {name} as this machine sees it",
                hint="all machines of a cluster must reach the same feed under the same address",
            )
        if stored.content.digest != name:
            raise FeedDamaged(f"`{self.feed.address}` has other files than those of {name}")
        self.feed.fetch(stored, into, only=stored.content, overwrite=True, on_event=ignore)

    def clear(self) -> list[str]:
        """Take away all that this run has put there; a note when that does not work, for the work itself is done."""
        try:
            listed = self.feed.versions(PACKAGE) or ()
            mine = [item.version for item in listed if item.version.startswith(f"0.0.0-{self.stamp}-")]
            if mine:
                self.feed.delete(PACKAGE, *mine)
        except (UnavailableError, RequestError, RunFailedError) as error:
            return [f"what was staged stays as versions of `{PACKAGE}`: {error.message}"]
        return []


@dataclass
class Inputs:
    """Puts what commands name into the staging area, each path once."""

    staging: Staging
    _known: dict[str, dict[str, str]] = field(default_factory=dict)

    def words(self, command: Iterable[str]) -> list[Word]:
        """The words of a command for another machine."""
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
    """The files behind a path, and where it lies among them; a model brings its external data."""
    if path.is_dir():
        return scan(path), ""
    files = [path, *(_external(path) if path.suffix == ".onnx" else ())]
    names = {os.path.relpath(file, path.parent).replace(os.sep, "/"): file for file in files}
    content = Content({name: FileEntry(digest.of_file(file), file.stat().st_size) for name, file in names.items()})
    return Tree(path.parent, content), path.name


def _external(model: Path) -> list[Path]:
    """The other files of a model; none of one that cannot be read, for its build says best what is wrong with it."""
    with Worker() as worker:
        try:
            found = worker.ask(list[Path], "graph.external_files", {"path": model}, what="reading the model")
        except (RequestError, RunFailedError):
            return []
    return found


def stamp_of(folder: Path) -> str:
    """The stamp under which the run in a folder stages: the same when it is gone on with, and no other run's."""
    return f"r{hashlib.sha256(f'{platform.node()} {folder}'.encode()).hexdigest()[:24]}"


def answer_of(result: Result) -> dict[str, Any]:
    """What a job on a node said, empty when it was ended before; raises when files do not travel there at all."""
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
    """The command of a job that runs another command on a node, with its inputs, and stages the folder it makes."""
    spec = {"feed": absolute(staging.feed.address), "stamp": staging.stamp, "words": list(words)}
    return (PYTHON, "-m", _PROGRAM, json.dumps(spec))
