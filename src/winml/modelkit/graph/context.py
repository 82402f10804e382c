"""What a compiled model holds: its EPContext nodes, the binaries they name, and what was left for the CPU."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.graph import files, walk

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from onnx import ModelProto

_COMPATIBILITY = "ep_compatibility_info."


@dataclass(frozen=True)
class ContextFacts:
    """A compiled model as its file shows it."""

    nodes: int
    """EPContext nodes."""
    binaries: Mapping[str, int]
    """Names of binaries with the number of nodes that name each."""
    missing: tuple[str, ...]
    """Those among them that are not beside the model."""
    embedded_bytes: int
    other_ops: Mapping[str, int]
    """Nodes that were not compiled, most frequent operator first."""
    compatibility: Mapping[str, str]
    """What each EP wrote about where the model can run, by the EP's full name."""

    def to_json(self) -> dict[str, Any]:
        return {
            "nodes": self.nodes,
            "binaries": dict(self.binaries),
            "missing": list(self.missing),
            "embedded_bytes": self.embedded_bytes,
            "other_ops": dict(self.other_ops),
            "compatibility": dict(self.compatibility),
        }


def context_facts(path: str | os.PathLike[str], model: ModelProto | None = None) -> ContextFacts:
    """The facts of the model file `path`; `model` saves parsing it again."""
    model = files.load(path, weights=False) if model is None else model
    nodes = list(walk.nodes(model))
    contexts = [node for node in nodes if node.op_type == "EPContext"]
    binaries = Counter(name for node in contexts for name in files.context_names(node))
    others = Counter(walk.op_key(node) for node in nodes if node.op_type != "EPContext")
    folder = Path(path).parent
    return ContextFacts(
        nodes=len(contexts),
        binaries=dict(binaries),
        missing=tuple(name for name in binaries if not (folder / name).is_file()),
        embedded_bytes=sum(
            len(attribute.s)
            for node in contexts
            for attribute in node.attribute
            if attribute.name == "ep_cache_context" and walk.attribute_value(node, "embed_mode", 1) != 0
        ),
        other_ops=dict(others.most_common()),
        compatibility={
            entry.key.removeprefix(_COMPATIBILITY): entry.value
            for entry in model.metadata_props
            if entry.key.startswith(_COMPATIBILITY)
        },
    )
