"""Names for the nodes of a model, by which single ones can be left in float."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.worker.client import Worker


def name_nodes(source: Path, folder: Path) -> Path:
    """The model with a name for every node, written into `folder`; itself where all have one."""
    with Worker() as worker:
        args = {"path": str(source.absolute()), "folder": str(folder)}
        return worker.ask(Path, "accuracy.name_nodes", args, what=f"naming the nodes of `{source.name}`")
