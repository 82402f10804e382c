"""What `-m` names: an ONNX file, a build folder, a model folder, a model on the Hugging Face hub, or a file of one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

from winml.modelkit.core.build_folder import MODEL
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError

Kind = Literal["file", "build", "folder", "hub", "hub-file"]

CONFIG = "config.json"
"""What makes a folder a model folder."""

_PART = r"[A-Za-z0-9][\w.-]*"
_HUB = re.compile(
    rf"(?P<repo>{_PART}/{_PART})(?P<file>/(?:[\w.-]+/)*[\w.-]+\.onnx)?(?:@(?P<revision>{_PART}(?:/{_PART})*))?"
)


@dataclass(frozen=True)
class ModelRef:
    """Where a model comes from; for a model of the hub also which commit, branch or tag."""

    source: str
    """A path, a hub id `org/name`, or a hub file `org/name/path.onnx`."""
    kind: Kind
    revision: str | None = None
    task: str | None = None
    """What the model is to be exported for; None takes what its config says."""

    def __str__(self) -> str:
        """A text that means the same model: `org/name@revision`."""
        return self.source if self.revision is None else f"{self.source}@{self.revision}"

    @property
    def is_exported(self) -> bool:
        """Whether it has to be exported before anything can run it."""
        return self.kind in ("folder", "hub")

    @property
    def repo(self) -> str:
        """The hub id alone."""
        return "/".join(self.source.split("/")[:2])

    @property
    def file(self) -> str:
        """The path of a hub file inside its repository."""
        return "/".join(self.source.split("/")[2:])

    def at(self, revision: str | None) -> ModelRef:
        """The reference at a revision that was given apart from it."""
        if revision is None:
            return self
        if self.kind not in ("hub", "hub-file"):
            raise RequestError(f"`{self.source}` is a local model and has no revision", hint="drop `--revision`")
        if self.revision not in (None, revision):
            raise RequestError(f"`{self}` and `--revision {revision}` give two different revisions")
        return replace(self, revision=revision)


def parse(word: str) -> ModelRef:
    """The reference that a text means; what is on this machine comes before what may be on the hub."""
    local = _local(word)
    if local is not None:
        return local
    match = _HUB.fullmatch(word)
    if match is None or _means_a_path(word, match):
        return ModelRef(word, "file")
    kind: Kind = "hub-file" if match["file"] else "hub"
    return ModelRef(match["repo"] + (match["file"] or ""), kind, match["revision"])


def _local(word: str) -> ModelRef | None:
    """What lies at a path; None when nothing does."""
    try:
        path = Path(word)
        if not word or not path.exists():
            return None
        if not path.is_dir():
            return ModelRef(word, "file")
    except (OSError, ValueError):  # a name the file system rejects; opening the file reports it
        return ModelRef(word, "file")
    if (path / MODEL).is_file():
        return ModelRef(word, "build")
    return ModelRef(word, "folder") if (path / CONFIG).is_file() else ModelRef(word, "file")


def _means_a_path(word: str, match: re.Match[str]) -> bool:
    """Whether a text that could be a hub id is a misspelt path: it ends like a file, or its first folder exists."""
    missing_file = match["file"] is None and match["repo"].endswith((".onnx", ".json", ".pt", ".bin"))
    return missing_file or Path(word.partition("/")[0]).is_dir()
