"""Results of `winml analyze`; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import EPVersion, RuntimeVersion
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import NotEmpty, key
from winml.modelkit.graph.description import Quantization
from winml.modelkit.graph.sizes import Size
from winml.modelkit.knowledge.operators import TableSource

OpStatus = Literal["supported", "partial", "unsupported", "unknown"]
TargetStatus = Literal["supported", "partial", "unsupported", "unknown", "refused", "failed"]


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What the model is made of."""

    nodes: int
    ops: Mapping[str, int]
    opsets: Mapping[str, int]
    conv_share: float | None
    quantized: Quantization
    dynamic_axes: Mapping[str, tuple[str, ...]]
    contrib_ops: tuple[str, ...]
    compiled_for: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The EP was asked; one that failed reports neither versions nor options."""

    kind: Literal["asked"] = "asked"
    runtime: RuntimeVersion | None = key(omit=True)
    ep: EPVersion | None = key(omit=True)
    provider_options: Mapping[str, str] | None = key(omit=True)
    added_options: Mapping[str, str] | None = key(omit=True)
    fixed_dims: Mapping[str, int]
    sizes: Mapping[str, Size]
    """Sizes of open dimensions, and where each comes from."""


@dataclass(frozen=True, kw_only=True)
class LookedUp:
    """The EP is not installed; `table` is where the answers come from, null when there is no table."""

    kind: Literal["table", "none"]
    table: TableSource | None


@dataclass(frozen=True)
class StatusCounts:
    """How many operators have each status."""

    supported: int
    partial: int
    unsupported: int
    unknown: int


@dataclass(frozen=True)
class OpAnswer:
    """One operator of the model on a target."""

    op: str
    status: OpStatus
    nodes: int
    taken: int | None
    """Nodes on the target; null when it could not be asked."""
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class NodePlacement:
    """Where the nodes went, in numbers."""

    on_target: int
    on_cpu: int
    by_setting: int
    partitions: int
    layout_nodes: int


@dataclass(frozen=True, kw_only=True)
class LeftNode:
    """A node that another EP runs; by_setting when the EP could take it."""

    name: str
    op: str
    ep: str
    reason: str | None
    by_setting: bool


@dataclass(frozen=True, kw_only=True)
class HazardFound:
    """One thing to know before a model is used on a target."""

    id: str
    message: str
    ops: tuple[str, ...]
    count: int
    nodes: tuple[str, ...]
    fix: str | None
    evidence: str


@dataclass(frozen=True, kw_only=True)
class TargetAnswer:
    """The answer for a model on one target."""

    target: Target = key(inline=True)
    status: TargetStatus
    """refused: the EP does not open the model. failed: it crashed or did not answer in time."""
    source: Asked | LookedUp
    counts: StatusCounts
    ops: tuple[OpAnswer, ...]
    placement: NodePlacement | None = None
    left: tuple[LeftNode, ...] = ()
    gone: Mapping[str, int] = field(default_factory=dict)
    """Operators whose nodes the runtime folded or fused before it asked the EP."""
    hazards: tuple[HazardFound, ...]
    absent: str | None = None
    error: ErrorObject | None = None


@dataclass(frozen=True, kw_only=True)
class Fusion:
    """A pass of `winml optimize` that would change the model."""

    name: str
    what: str
    status: Literal["changes", "failed"]
    note: str | None
    after: tuple[str, ...]
    nodes_delta: int
    ops_delta: Mapping[str, int]
    seconds: float
    not_for: tuple[str, ...]
    """Targets that refuse what it makes."""


@dataclass(frozen=True, kw_only=True)
class Fusions:
    tried: int
    passes: tuple[Fusion, ...]
    error: ErrorObject | None


@dataclass(frozen=True, kw_only=True, repr=False)
class AnalyzeResult(CommandResult):
    schema: Literal["winml/analyze/1"] = "winml/analyze/1"
    ok: Literal[True] = True
    model: str
    facts: ModelFacts
    supported: bool
    targets: Annotated[tuple[TargetAnswer, ...], NotEmpty()]
    fusions: Fusions | None


# What workers answer


@dataclass(frozen=True, kw_only=True)
class PreparedModel:
    """Everything that is known of a model before an EP is asked."""

    facts: ModelFacts
    nodes: tuple[tuple[str, str], ...]
    """Name and operator of every node of the main graph."""
    asked: str
    """The file to ask with."""
    axes: Mapping[str, int]
    """Sizes that were given, by the names of open dimensions."""
    hazards: Mapping[str, tuple[HazardFound, ...]]
    """By target; fixes have placeholders."""


@dataclass(frozen=True, kw_only=True)
class AskedNode:
    """A node as the EP was asked about it."""

    name: str
    op: str
    ep: str
    partition: int | None


@dataclass(frozen=True, kw_only=True)
class AskedVersions:
    runtime: RuntimeVersion
    ep: EPVersion


@dataclass(frozen=True, kw_only=True)
class EPAnswer:
    """What a session on a target shows of it."""

    nodes: tuple[AskedNode, ...]
    provider_options: Mapping[str, str]
    added_options: Mapping[str, str]
    environment: AskedVersions
