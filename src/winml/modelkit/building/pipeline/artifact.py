"""An artifact: a model file and those that belong to it, known by their digests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import Digest, in_json, key
from winml.modelkit.store import digest


@dataclass(frozen=True)
class Artifact:
    """Files by name; `main` is the model, the others are what it names."""

    main: str = key("file")
    files: Mapping[str, Digest] = key()

    @property
    @in_json
    def digest(self) -> Digest:
        return digest.of_files(self.files)


@dataclass(frozen=True)
class Source:
    """The model a build starts from, where its files are and their state when they were hashed."""

    files: Mapping[str, Path]
    artifact: Artifact
    _states: Mapping[Path, tuple[int, int]] = field(repr=False)

    @property
    def path(self) -> Path:
        return self.files[self.artifact.main]

    def check_unchanged(self) -> None:
        """Raise when a file was written to since; a stage may then have read something else than its key says."""
        for path, state in self._states.items():
            if _state(path) != state:
                raise DataError(f"`{path}` changed while the model was being built", hint="run the build again")


def _state(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


SOURCE_NAME = "model.onnx"
"""What a source is called in its digest: renaming a model file does not make it another model."""


def read_source(path: Path, external: tuple[Path, ...]) -> Source:
    """Hash a model file and the files that belong to it."""
    files = {SOURCE_NAME: path} | {file.relative_to(path.parent).as_posix(): file for file in external}
    return hash_source(files, main=SOURCE_NAME)


def hash_source(files: Mapping[str, Path], *, main: str) -> Source:
    """Hash files that together are a model."""
    states = {file: _state(file) for file in files.values()}
    digests = {name: digest.of_file(file) for name, file in files.items()}
    return Source(files, Artifact(main, digests), states)
