"""The report of the quantizer; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from winml.modelkit.building.optimize.result import Crashes
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import AtLeast, key
from winml.modelkit.store.stage_cache import CacheAnswer

Mode = Literal["fp16", "dynamic", "static", "weight_only"]
CalibrationMethod = Literal["minmax", "entropy", "percentile", "mse", "best"]


@dataclass(frozen=True, kw_only=True)
class QuantizeArguments:
    """What the worker operation `stages.quantize` takes."""

    model: str
    output: str
    section: QuantizeSection
    model_folder: str | None = None
    """Folder of a tokenizer or image processor; null is that of the model."""
    compare: bool = True
    """Whether the outputs of both models are compared at the end."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes of open dimensions for that comparison, where its inputs are random."""
    crashes: Crashes = field(default_factory=Crashes)


@dataclass(frozen=True)
class LeftNodes:
    op: str
    nodes: int
    reason: str


@dataclass(frozen=True)
class NodeSummary:
    """Nodes of the model before it was quantized."""

    quantized: Mapping[str, int]
    """Quantized nodes by operator."""
    left: tuple[LeftNodes, ...]
    """Nodes that stay as they were, with the reason."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The data by which ranges were found."""

    source: str
    digest: str
    samples: int
    runs: int
    seed: int
    method: CalibrationMethod
    tensors: int
    methods: Mapping[str, int] | None = key(omit=True)
    """With `best`: how many tensors have their range by each method."""


@dataclass(frozen=True)
class Granularity:
    """How the scales of weights were chosen."""

    scales: Literal["channel", "tensor"]
    reason: str

    @property
    def per_channel(self) -> bool:
        return self.scales == "channel"

    @property
    def note(self) -> str:
        """The note on a choice between two that were measured."""
        way = f"weights have scales per {self.scales}: {self.reason}"
        return f"{way}; `--per-channel` or `--per-tensor` sets it"


@dataclass(frozen=True, kw_only=True)
class OutputFidelity:
    """How far an output is from what it was."""

    name: str
    identical: bool
    cosine: float | None
    sqnr_db: float | None
    exact_sqnr_db: float | None
    """With the pairs computed in float; null where that does not apply."""
    max_abs: float


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Outputs against those of the original, on the CPU."""

    status: Literal["measured", "unknown", "skipped"]
    reason: str | None = None
    source: str
    samples: int = 0
    sizes: Mapping[str, Annotated[int, AtLeast(1)]] = field(default_factory=dict)
    """Sizes of open dimensions in random inputs."""
    outputs: tuple[OutputFidelity, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Sizes:
    before_bytes: int
    after_bytes: int


@dataclass(frozen=True, kw_only=True)
class Adjustment:
    """What was changed in a model so that it loses less."""

    name: Literal["bias_correction", "smoothing"]
    layers: int
    """Products that were adjusted."""
    left: Mapping[str, int]
    """Products that were not, by reason."""
    added_nodes: int = 0
    """Nodes that the model has for it in addition."""
    without_db: float | None = None
    """Signal to noise of the output that agrees least, without it; null where that was not measured."""
    with_db: float | None = None


@dataclass(frozen=True, kw_only=True)
class QuantizeOutcome:
    """The outcome of quantizing a model."""

    changed: bool
    mode: Mode
    granularity: Granularity | None
    """Whether weights have scales per channel or per tensor, and why; null where there are none."""
    nodes: NodeSummary
    calibration: Calibration | None
    size: Sizes
    fidelity: Fidelity
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    adjustments: tuple[Adjustment, ...] = ()
    """What was done besides choosing ranges."""


@dataclass(frozen=True, kw_only=True)
class QuantizeReport:
    """What the stage did, with what its section left open."""

    reduce_range: bool | None
    per_channel: bool | None
    outcome: QuantizeOutcome = key(inline=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class QuantizeResult(CommandResult):
    """A model that was quantized."""

    schema: Literal["winml/quantize/1"] = "winml/quantize/1"
    ok: Literal[True] = True
    model: str
    output: str
    target: Target = key(inline=True)
    precision: str
    section: QuantizeSection
    cache: CacheAnswer
    """Whether the result came from the cache, as the stage of a build does."""
    outcome: QuantizeOutcome = key(inline=True)
