"""The folder a model is optimized in: graphs as small files, weights in data files that passes refer to.

Weights are written once. A pass reads and writes graphs that name them, so that it costs the same for a large model.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import field
from pathlib import Path

from onnx import ModelProto, TensorProto

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DiskFull, ModelkitError, RequestError
from winml.modelkit.graph import files, walk
from winml.modelkit.graph.fingerprint import fingerprint
from winml.modelkit.graph.tensors import is_external
from winml.modelkit.store import atomic

_LEAST_BYTES = 64 * 2**10
"""Free space below which a disk counts as full: what did not fit has left no more than this."""


@dataclass(frozen=True)
class Version:
    """One state of the model in the workspace; weights are not loaded."""

    path: Path
    model: ModelProto = field(repr=False)
    digest: str
    """Equal for two versions in one workspace that compute the same; not a fingerprint."""

    @property
    def ops(self) -> dict[str, int]:
        return op_counts(self.model)


def op_counts(model: ModelProto) -> dict[str, int]:
    """Nodes by operator, subgraphs included, most frequent first."""
    return dict(sorted(Counter(map(walk.op_key, walk.nodes(model))).items(), key=lambda item: (-item[1], item[0])))


def nameless(error: ModelkitError, path: Path) -> str:
    """The message of an error about a file of the workspace, whose name means nothing to a user."""
    return error.message.replace(f"`{path}`", "the model").replace(str(path), "the model")


class Workspace:
    """Versions of one model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def open(self, model: ModelProto) -> Version:
        """The first version, of a model with its weights loaded."""
        if any(node.op_type == "EPContext" for node in walk.nodes(model)):
            raise RequestError(
                "the model is compiled for an execution provider; there is no graph to optimize",
                hint="optimize the model it was compiled from",
            )
        path = self.next_path()
        files.save(model, path, external_data="always")
        return self.read(path)

    def require_space(self) -> None:
        """Raise when the disk is full: ONNX Runtime truncates what it writes there without an error."""
        if shutil.disk_usage(self.folder).free < _LEAST_BYTES:
            raise DiskFull(
                f"disk full while writing `{self.folder}`", hint="free some space, or set TMPDIR to another disk"
            )

    def next_path(self) -> Path:
        self._count += 1
        return self.folder / f"v{self._count}.onnx"

    def read(self, path: Path) -> Version:
        """The version in a file of the workspace, with only those opset imports that it uses."""
        return self._version(path, files.load(path, weights=False))

    def write(self, model: ModelProto) -> Version:
        """A version whose external data is in the workspace already."""
        return self._version(self.next_path(), model)

    def _version(self, path: Path, model: ModelProto) -> Version:
        _drop_unused_imports(model)
        try:
            path.write_bytes(model.SerializeToString(deterministic=True))
        except OSError as error:
            raise atomic.write_error(error, path) from error
        return Version(path, model, fingerprint(_replace_weights(model)))


def _drop_unused_imports(model: ModelProto) -> None:
    """ONNX Runtime imports every domain it knows."""
    used = {walk.domain_of(node.domain) for node in walk.nodes(model)} | {""}
    kept = [entry for entry in model.opset_import if walk.domain_of(entry.domain) in used]
    kept = sorted(kept, key=lambda entry: walk.domain_of(entry.domain))
    del model.opset_import[:]
    model.opset_import.extend(kept)


def _replace_weights(model: ModelProto) -> ModelProto:
    """A copy whose external tensors hold the location of their data instead of the data."""

    def place(source: TensorProto, target: TensorProto, nested: bool) -> None:
        if not is_external(source):
            target.CopyFrom(source)
            return
        target.name, target.data_type = source.name, TensorProto.STRING
        target.dims.extend(source.dims)
        entries = sorted(f"{entry.key}={entry.value}" for entry in source.external_data)
        target.string_data.append(f"{source.data_type} {' '.join(entries)}".encode())

    return walk.copy_model(model, place)
