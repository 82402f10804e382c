"""Applies one pass to a version of a model, whichever library implements it."""

from __future__ import annotations

from winml.modelkit.building.optimize import library
from winml.modelkit.building.optimize.ort import Transformers
from winml.modelkit.building.optimize.table import Pass
from winml.modelkit.building.optimize.workspace import Version, Workspace
from winml.modelkit.graph.opset import opset


class Runner:
    """Passes over the versions of a workspace; a version is never changed, a pass makes another one."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._transformers = Transformers(workspace)
        self._graphs = library.Graphs(workspace)

    def apply(self, row: Pass, version: Version) -> Version | None:
        """The version a pass makes, or None when it changes nothing."""
        if opset(version.model) < row.opset:
            return None
        if row.kind == "ort":
            return self._transformers.apply(row, version)
        return self._graphs.apply(row, version)

    def alone(self, row: Pass, version: Version) -> Version | None:
        """Like `apply`, after the passes that make what this one looks for."""
        if row.kind == "ort" and row.needs:
            return self._transformers.apply(row, version, after=row.needs)
        return self.apply(row, version)

    def prepare(self, row: Pass, version: Version) -> Version:
        """What `alone` starts from."""
        return self._transformers.save(version, row, after=row.needs) if row.kind == "ort" else version

    def why_not(self, row: Pass, version: Version) -> str | None:
        """What is known of a pass that changed nothing."""
        if opset(version.model) < row.opset:
            return f"needs opset {row.opset}; the model has {opset(version.model)}"
        return None
