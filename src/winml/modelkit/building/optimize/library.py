"""Passes that work on the graph in memory: those of onnx-ir and onnxscript, and our own rewrites."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir as ir
from onnx_ir.passes import common

from winml.modelkit.building.optimize.table import Pass
from winml.modelkit.building.optimize.workspace import Version, Workspace
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.graph.shapes import infer_shapes

Change = Callable[[ir.Model], ir.Model | None]
"""Takes a model, which it uses up, and returns the one that a pass makes of it, or None when it finds nothing to do."""

_RULES = ("onnxscript.rewriter.rules.common", "onnxscript.rewriter.rules.fusion._rms_normalization")
_ARGUMENTS = {"LiftConstantsToInitializersPass": {"lift_all_constants": True, "size_limit": 0}}
"""Arguments of classes of onnx-ir; their defaults leave small constants alone."""
_REWRITES = "winml.modelkit.building.optimize.rewrites"


class Graphs:
    """Graph passes over the versions of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._plain: dict[str, tuple[onnx.ModelProto, str]] = {}

    def apply(self, row: Pass, version: Version) -> Version | None:
        """The version a pass makes of another, or None when it changes nothing."""
        change = _change(row)
        try:
            plain, before = self._save(version)
            changed = change(_load(plain, version))
            proto = None if changed is None else ir.to_proto(changed)
        except Exception as error:
            # A library may raise anything on a graph it was not written for; the version before it is untouched.
            raise RunFailedError(_last_line(error)) from error
        made = None if proto is None else self._workspace.write(proto)
        return None if made is None or made.digest == before else made

    def _save(self, version: Version) -> tuple[onnx.ModelProto, str]:
        """The version with the shapes that can be inferred, and its digest as onnx-ir writes it.

        Inferred shapes of outputs and what saving adds are not the work of a pass.
        """
        if version.digest not in self._plain:
            inferred = infer_shapes(version.model)
            saved = self._workspace.write(ir.to_proto(_load(inferred, version)))
            self._plain = {version.digest: (inferred, saved.digest)}
        return self._plain[version.digest]


def _load(model: onnx.ModelProto, version: Version) -> ir.Model:
    loaded = ir.from_proto(model)
    ir.external_data.set_base_dir(loaded.graph, version.path.parent)
    return loaded


def _last_line(error: BaseException) -> str:
    """The root cause: libraries wrap errors with the text of whole graphs."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[-1][:300] if lines else 'no message'}"


def _change(row: Pass) -> Change:
    if row.kind == "ir":
        return _by(ir.passes.Sequential(*map(_pass, row.parts)))
    if row.kind == "onnxscript":
        return _by(_rewriter(row.parts), then=_pass("LiftConstantsToInitializersPass"))
    rewrite = importlib.import_module(f"{_REWRITES}.{row.parts[0]}").rewrite
    unused = _pass("RemoveUnusedNodesPass")
    return lambda model: unused(model).model if rewrite(model) else None


def _pass(name: str) -> ir.passes.PassBase:
    made: ir.passes.PassBase = getattr(common, name)(**_ARGUMENTS.get(name, {}))
    return made


def _by(change: ir.passes.PassBase, *, then: ir.passes.PassBase | None = None) -> Change:
    def apply(model: ir.Model) -> ir.Model | None:
        result = change(model)
        if not result.modified:
            return None
        return result.model if then is None else then(result.model).model

    return apply


def _rewriter(names: tuple[str, ...]) -> ir.passes.PassBase:
    from onnxscript import rewriter

    modules = [importlib.import_module(name) for name in _RULES]
    rules: list[Any] = []
    for name in names:
        found = next(getattr(module, name) for module in modules if hasattr(module, name))
        found = found() if inspect.isfunction(found) else found
        rules += found if isinstance(found, list | tuple) else getattr(found, "rules", [found])
    change: ir.passes.PassBase = rewriter.RewritePass(rules)
    return change
