"""What operations of `winml debug` are asked and answer; light, so that the command imports no runtime for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.building.quantize.result import QuantizeArguments
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Device
from winml.modelkit.core.values import Count

REFERENCE, PLAIN, EXPOSED, SEEN, OWN, ON_CPU, AGAIN = "reference", "plain", "exposed", "seen", "own", "cpu", "again"
EXPECTED = "expected"
INPUTS, OUTPUTS = "inputs", "outputs"
"""Tags of files with values: `TAG-SAMPLE.npz`."""

Grouping = Literal["layer", "op-type", "block"]
"""What is quantized together: a layer, all of one operator, what lies between two residuals."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the operations have in common."""

    model: str
    reference: str
    folder: str
    """For models and values of the run."""


@dataclass(frozen=True, kw_only=True)
class PrepareArguments:
    """What values are made of."""

    work: Work
    data: DataSection
    model_folder: str
    samples: Count


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What there is to be run."""

    samples: int
    layers: tuple[str, ...]
    """The value of each."""
    matched: int
    by_structure: int
    unmatched: tuple[str, ...]
    data_notes: tuple[str, ...]
    sizes: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class JoinArguments:
    """Layers to write into models of their own."""

    work: Work
    models: Mapping[str, tuple[int, ...]]
    """The layers of each file."""


@dataclass(frozen=True, kw_only=True)
class ExposeArguments:
    """Layers of the model whose values are outputs, too."""

    work: Work
    layers: tuple[int, ...]
    name: str


@dataclass(frozen=True, kw_only=True)
class DistanceArguments:
    """A run of the whole model, whose outputs are compared with the reference's."""

    work: Work
    tag: str
    samples: Count


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """A model to run on its target on values of files."""

    model: str
    ep: str
    device: Device
    simulated: bool
    session: SessionSection
    distribution: str | None
    folder: str
    samples: Count
    tag: str
    """Of the files that are written."""
    base: str = REFERENCE
    """The tag of the files that inputs come from."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Tags of other files that single inputs come from."""


@dataclass(frozen=True, kw_only=True)
class RanOnTarget:
    """Where the nodes of a run went."""

    nodes: Mapping[str, int]
    layers: Mapping[str, str]
    """The EP of a layer by itself, by its number; of several, the one with the most nodes."""


@dataclass(frozen=True, kw_only=True)
class JudgeArguments:
    """What was run."""

    work: Work
    samples: Count
    own: Mapping[str, str]
    """Tags of the runs by number of layer."""
    on_cpu: bool
    again: bool
    """Whether layers were run by themselves on what they read within the model."""
    accumulated: Mapping[str, str]
    """Tags of the files with a layer's value in the model, by number of layer."""
    effects: int
    """How many layers are asked what their noise does to the outputs."""


@dataclass(frozen=True, kw_only=True)
class RunDistance:
    """How far the worst output of a run is from the reference's; null where none can be compared."""

    noise: Noise | None


@dataclass(frozen=True, kw_only=True)
class JudgedLayer:
    """What was found of a layer."""

    value: str
    nodes: tuple[tuple[str, str], ...]
    operators: tuple[str, ...]
    own: Noise | None
    on_cpu: Noise | None
    accumulated: Noise | None
    within: Noise | None
    clipped: float | None
    effect: Noise | None
    comparable: bool


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the runs come to."""

    layers: tuple[JudgedLayer, ...]
    outputs: Mapping[str, Noise]
    not_compared: tuple[str, ...]
    """Outputs of the reference that have no float counterpart of the same shape."""
    exposing: Noise | None
    """How far outputs are from what they are when nothing else is exposed; null where no value was exposed."""
    deterministic: bool
    """Whether the reference gives the same outputs again; effects are not known where it does not."""


@dataclass(frozen=True, kw_only=True)
class PlanArguments:
    """A model that is calibrated once and quantized in parts."""

    quantize: QuantizeArguments
    grouping: Grouping
    data: DataSection
    """What variants are run on."""
    samples: Count
    folder: str


@dataclass(frozen=True, kw_only=True)
class PlannedGroup:
    """Nodes that a variant quantizes."""

    label: str
    nodes: tuple[tuple[str, str], ...]
    """Name and operator."""


@dataclass(frozen=True, kw_only=True)
class PlannedVariants:
    """Groups of nodes of a model, and the samples that its outputs were written of."""

    groups: tuple[PlannedGroup, ...]
    left: int
    """Nodes that the precision does not quantize."""
    samples: int
    outputs: tuple[str, ...]
    """Those that can be compared: floats."""
    not_compared: tuple[str, ...]
    sizes: Mapping[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class VariantArguments:
    """Nodes to quantize alone."""

    folder: str
    """Of the plan."""
    nodes: tuple[str, ...]
    name: str


@dataclass(frozen=True, kw_only=True)
class MadeVariant:
    """The file of a variant, and which of its nodes are quantized."""

    path: str
    quantized: tuple[str, ...]
    reason: str | None
    """Why none is."""


@dataclass(frozen=True, kw_only=True)
class VariantRan:
    """How far outputs of a variant are from the reference's."""

    outputs: Mapping[str, Noise]
    nodes: Mapping[str, int]
    """Where its nodes were placed."""
