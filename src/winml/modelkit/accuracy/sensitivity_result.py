"""The result of `winml quantize --sensitivity`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.accuracy.result import LayerNode, OutputNoise
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import Count, key

EffectState = Literal["measured", "refused", "crashed", "not quantized"]


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A variant of the model on the target, against the model as it was."""

    state: EffectState
    reason: str | None = None
    """Why it was not measured."""
    outputs: tuple[OutputNoise, ...] = ()
    metric: float | None = None
    """The value of the task's metric; null where it was not asked for."""
    drop: float | None = None
    """By how much the metric is worse than before."""
    placed: Mapping[str, int] | None = None
    """Nodes by EP; null where it was not run."""
    seconds: float = 0.0
    """How long making and running it took when it was run."""

    @property
    def worst(self) -> Noise | None:
        """The noise of the output that suffers most."""
        return min((one.noise for one in self.outputs), key=lambda noise: noise.rank, default=None)


@dataclass(frozen=True, kw_only=True)
class GroupEffect:
    """What quantizing a group of nodes alone does."""

    label: str
    nodes: tuple[LayerNode, ...]
    effect: Effect = key(inline=True)

    @property
    def kind(self) -> str:
        """Its operators in words, each once."""
        return " + ".join(dict.fromkeys(node.op for node in self.nodes))


@dataclass(frozen=True, kw_only=True)
class SensitivityResult(CommandResult):
    """Groups of nodes, the one that does most first."""

    schema: Literal["winml/sensitivity/1"] = "winml/sensitivity/1"
    ok: Literal[True] = True
    model: str
    target: Target
    precision: str
    section: QuantizeSection
    grouping: Literal["layer", "op-type", "block"]
    data: str
    synthetic: bool
    samples: Count
    sizes: Mapping[str, int]
    task: str | None
    metric: str | None
    """The metric of `drop`; null where outputs were compared alone."""
    before: float | None
    """Its value of the model as it was, on the CPU."""
    groups: tuple[GroupEffect, ...]
    whole: Effect
    """All that the precision quantizes."""
    unquantized: Effect
    """Nothing quantized, on the target: no group can be nearer."""
    left: Count
    """Nodes that the precision does not quantize."""
    cached: Count
    """Variants that were measured in an earlier run; all of them are `groups` and two more."""
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float
