"""The result of `winml debug`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import Count, key

State = Literal["measured", "refused", "crashed", "not comparable"]


@dataclass(frozen=True, kw_only=True)
class LayerNode:
    """A node of the reference."""

    name: str
    op: str


@dataclass(frozen=True, kw_only=True)
class LayerNoise:
    """How much a layer loses, by itself and with all before it."""

    value: str
    """The value that the layer computes, by its name in the reference."""
    nodes: tuple[LayerNode, ...]
    """Nodes of the reference that compute it."""
    operators: tuple[str, ...]
    """Operators of the candidate that compute it, without those that quantize."""
    state: State
    reason: str | None = None
    own: Noise | None = None
    """The layer by itself, given what the reference has, against the reference given the same quantized inputs."""
    on_cpu: Noise | None = None
    """The same on the CPU, where the target is another."""
    accumulated: Noise | None = None
    """Within the model, with the noise of all layers before it."""
    within: Noise | None = None
    """Within the model, against the same layer by itself given what it reads there; null where that was not run."""
    effect: Noise | None = None
    """The outputs of the reference with the noise of this layer alone; null where it was not asked."""
    clipped: float | None = None
    """The share of the reference's numbers that lie beyond the range this value is quantized to; null in float."""
    alone_only: bool = False
    """Whether the layer is much worse by itself than within the model: the EP computes it in another way there, so that
    what it does by itself says nothing."""
    unexplained_db: float | None = None
    """How much more the layer loses within the model than by itself, where that is much."""
    ep: str | None = None
    """Where the runtime placed the layer; null where it does not say."""

    @property
    def label(self) -> str:
        """The name of the last node that computes the value; of an input of the model its own."""
        return self.nodes[-1].name if self.nodes else self.value

    @property
    def kind(self) -> str:
        """Its operators in words."""
        return " + ".join(self.operators) or "input"

    @property
    def lost_on_target_db(self) -> float | None:
        """What the target loses that the CPU does not; null where either is not known or has no noise."""
        if self.own is None or self.on_cpu is None or self.own.sqnr_db is None or self.on_cpu.sqnr_db is None:
            return None
        return self.on_cpu.sqnr_db - self.own.sqnr_db


@dataclass(frozen=True, kw_only=True)
class OutputNoise:
    """How far an output of the model is from the reference's, on the target."""

    output: str
    noise: Noise


@dataclass(frozen=True, kw_only=True)
class FusedLayers:
    """Layers that are right apart and wrong where the EP computes them together with their neighbours."""

    values: tuple[str, ...]
    """As outputs of the model, these make its outputs right: the fewest that were found."""
    nodes: tuple[LayerNode, ...]
    before: Noise
    """The outputs of the model as it is."""
    after: Noise
    """Its outputs while these values are outputs, too."""


@dataclass(frozen=True, kw_only=True)
class Matching:
    """How values of the two models were matched."""

    matched: int
    by_structure: int
    """Those that have other names and the same place."""
    unmatched: tuple[str, ...]
    """Values of the reference without a counterpart: the first of them."""
    unmatched_count: int


@dataclass(frozen=True, kw_only=True)
class DebugResult(CommandResult):
    """Layers of a model, the one that loses most first."""

    schema: Literal["winml/debug/1"] = "winml/debug/1"
    ok: bool = True
    model: str
    reference: str
    target: Target
    data: str
    synthetic: bool
    samples: Count
    sizes: Mapping[str, int]
    method: Literal["exposed", "chained"]
    """How accumulated noise was measured: all values as outputs of one session, or layer after layer."""
    outputs: tuple[OutputNoise, ...]
    layers: tuple[LayerNoise, ...]
    fused: FusedLayers | None
    """Null where every layer does in the model what it does by itself."""
    matching: Matching
    sessions: int
    """How many sessions on the target the layers took."""
    summary: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float
    log: tuple[str, ...] | None = key(omit=True)
