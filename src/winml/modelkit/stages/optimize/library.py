"""Passes that work on the graph in memory: those of onnx-ir and onnxscript, and our own rewrites."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir as ir

from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.stages.optimize.table import Pass
from winml.modelkit.stages.optimize.workspace import Version, Workspace

Change = Callable[[ir.Model], Any]

_RULES = ("onnxscript.rewriter.rules.common", "onnxscript.rewriter.rules.fusion._rms_normalization")
_ARGUMENTS = {"LiftConstantsToInitializersPass": {"lift_all_constants": True, "size_limit": 0}}
"""What classes of onnx-ir are told; their defaults leave small constants alone."""
_REWRITES = "winml.modelkit.stages.optimize.rewrites"


class Graphs:
    """Graph passes over the versions of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._read: dict[str, onnx.ModelProto] = {}

    def apply(self, row: Pass, version: Version) -> Version | None:
        """The version a pass makes of another, or None when it changes nothing."""
        change = _change(row)
        try:
            model = ir.from_proto(self._inferred(version))
            ir.external_data.set_base_dir(model.graph, version.path.parent)
            change(model)
            changed = ir.to_proto(model)
        except Exception as error:
            # A library may raise anything on a graph it was not written for; the version before it is untouched.
            raise RunFailedError(_last_line(error)) from error
        made = self._workspace.write(changed)
        return None if made.digest == version.digest else made

    def _inferred(self, version: Version) -> onnx.ModelProto:
        """The version with the shapes that can be inferred; kept, because several passes start from it."""
        if version.digest not in self._read:
            self._read = {version.digest: onnx.shape_inference.infer_shapes(version.model, data_prop=True)}
        return self._read[version.digest]


def _last_line(error: BaseException) -> str:
    """What went wrong in the end: libraries wrap errors with the text of whole graphs."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1][:300] if lines else 'no message'}"


def _change(row: Pass) -> Change:
    if row.kind == "ir":
        passes = importlib.import_module("onnx_ir.passes.common")
        return ir.passes.Sequential(*(getattr(passes, name)(**_ARGUMENTS.get(name, {})) for name in row.parts))
    if row.kind == "onnxscript":
        return _rewriter(row.parts)
    change: Change = importlib.import_module(f"{_REWRITES}.{row.parts[0]}").rewrite
    return change


def _rewriter(names: tuple[str, ...]) -> Change:
    from onnxscript import rewriter

    modules = [importlib.import_module(name) for name in _RULES]
    rules: list[Any] = []
    for name in names:
        found = next(getattr(module, name) for module in modules if hasattr(module, name))
        found = found() if inspect.isfunction(found) else found
        rules += found if isinstance(found, list | tuple) else getattr(found, "rules", [found])
    change: Change = rewriter.RewritePass(rules)
    return change
