"""Runs single transformers of ONNX Runtime: everything else is disabled.

The compile API is used instead of a session with `optimized_model_filepath`. It creates no kernels, keeps weights where
they are, and at the basic level writes the graph before ONNX Runtime puts Casts around float16 nodes for its CPU
provider.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import OrtExternalInitializerInfo

from winml.modelkit.building.optimize.table import BY_NAME, TRANSFORMERS, Pass
from winml.modelkit.building.optimize.workspace import Version, Workspace, nameless
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.graph import walk
from winml.modelkit.session import failures

_DISABLED = "optimization.disable_specified_optimizers"
_EMBED_BYTES = 2**20
"""Larger tensors that a transformer makes go to a data file."""
_INSERTED_CAST = "InsertedPrecisionFreeCast_"


class Transformers:
    """ONNX Runtime's transformers over the versions of a workspace.

    What loading and saving alone does (constants become initializers, functions without a kernel are inlined) is not
    the work of a transformer: each is compared with a version that ONNX Runtime wrote with none.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._plain: dict[tuple[str, tuple[str, ...], bool], Version] = {}

    def apply(self, row: Pass, version: Version, *, after: tuple[str, ...] = ()) -> Version | None:
        """The version that one transformer makes of another, or None when it changes nothing.

        With `after`, the passes of those names act too, and what they do is not counted as a change.
        """
        extended = _is_extended(row, after)
        before = self.save(version, row, after=after)
        made = self._run(version, (*_parts(after), *row.parts), row.entries, extended=extended)
        if made.digest == before.digest:
            return None
        if _count_inserted_casts(made) > _count_inserted_casts(version):
            raise RunFailedError("ONNX Runtime would leave Casts around the float16 nodes that its CPU provider lacks")
        # ONNX Runtime would write the same again.
        self._plain[made.digest, (), extended] = made
        return made

    def save(self, version: Version, row: Pass, *, after: tuple[str, ...] = ()) -> Version:
        """The version as ONNX Runtime saves it at the level of `row`, with no transformer but those of `after`."""
        extended = _is_extended(row, after)
        key = (version.digest, after, extended)
        if key not in self._plain:
            self._plain[key] = self._run(version, _parts(after), (), extended=extended)
        return self._plain[key]

    def _run(
        self, version: Version, keep: Iterable[str], entries: Iterable[tuple[str, str]], *, extended: bool
    ) -> Version:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # starting threads costs more than most passes
        kept = set(keep)
        options.add_session_config_entry(_DISABLED, ";".join(name for name in TRANSFORMERS if name not in kept))
        for key, value in entries:
            options.add_session_config_entry(key, value)
        levels = onnxruntime.GraphOptimizationLevel
        path = self._workspace.next_path()
        try:
            compiler = onnxruntime.ModelCompiler(
                options,
                str(version.path),
                graph_optimization_level=levels.ORT_ENABLE_ALL if extended else levels.ORT_ENABLE_BASIC,
                get_initializer_location_func=_Placement(path.with_suffix(".data")),
            )
            compiler.compile_to_file(str(path))
        except Exception as error:
            raise RunFailedError(nameless(failures.opening(error, version.path), version.path)) from error
        return self._workspace.read(path)


def _is_extended(row: Pass, after: Iterable[str]) -> bool:
    """Whether ONNX Runtime has to go past its basic level for a pass and those before it."""
    return any(BY_NAME[name].level != "basic" for name in (*after, row.name))


def _parts(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(part for name in names for part in BY_NAME[name].parts)


def _count_inserted_casts(version: Version) -> int:
    return sum(node.name.startswith(_INSERTED_CAST) for node in walk.nodes(version.model))


class _Placement:
    """Decides where a tensor goes: it stays in the data file it came from; a large one that is new gets one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = 0

    def __call__(self, name: str, value: Any, source: Any) -> Any:
        if source is not None or value.tensor_size_in_bytes() < _EMBED_BYTES:
            return source
        array = value.numpy()
        with self._path.open("ab") as stream:
            stream.write(array.tobytes())
        start, self._end = self._end, self._end + array.nbytes
        return OrtExternalInitializerInfo(self._path.name, start, array.nbytes)
