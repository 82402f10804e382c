"""Where the nodes of a model went when a session was opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import in_json

CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class Placement:
    """Nodes and partitions per EP after ONNX Runtime assigned them, and the op types left on the CPU."""

    requested: str
    nodes: Mapping[str, int]
    partitions: Mapping[str, int]
    cpu_ops: Mapping[str, int]
    by_setting: Mapping[str, int] = field(default_factory=dict)
    """Those among them that the EP leaves to the CPU by a setting of its own."""

    @property
    def total(self) -> int:
        return sum(self.nodes.values())

    @property
    def took_nothing(self) -> bool:
        """Whether there are nodes and none of them went to the requested EP."""
        return self.total > 0 and not self.nodes.get(self.requested)

    @property
    def fell_back(self) -> dict[str, int]:
        """Op types that run on the CPU although another EP was requested, and not by a setting of that EP."""
        if self.requested == CPU:
            return {}
        left = {op: count - self.by_setting.get(op, 0) for op, count in self.cpu_ops.items()}
        return {op: count for op, count in left.items() if count > 0}

    @property
    @in_json
    def fallback(self) -> bool:
        """Whether nodes run on the CPU that the EP was to take."""
        return bool(self.fell_back)
