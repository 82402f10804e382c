"""What is known about a model file without running it; the classes alone, which need no onnx."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import in_json

QuantizationKind = Literal["none", "qdq", "qoperator", "dynamic", "weight-only", "mixed"]

Evidence = Literal[
    "activation_quantize",
    "activation_dequantize",
    "weight_dequantize",
    "quantized_operators",
    "dynamic_operators",
    "weight_operators",
]


@dataclass(frozen=True)
class MACs:
    """Multiply-accumulate operations; None when none could be counted, 0 only when there are none."""

    macs: int | None
    unknown_nodes: int
    """Nodes that multiply but are not in `macs`: shape unknown, in a loop, or an operator that is not counted."""
    assumed: Mapping[str, int]
    """The sizes taken for the dynamic axes of the inputs."""
    reason: str | None = None
    """Why shapes were not inferred."""


@dataclass(frozen=True)
class Quantization:
    """The kind of quantization and the number of nodes that indicate each."""

    kind: QuantizationKind
    evidence: Mapping[Evidence, int]


@dataclass(frozen=True)
class ValueFacts:
    """An input or output of the graph."""

    name: str
    dtype: str
    shape: tuple[int | str, ...] | None
    """Sizes and symbols, `x[2]` for a dimension without either; None for an unknown rank or no tensor."""


@dataclass(frozen=True)
class GraphFacts:
    """What a model is made of. Subgraphs count; a local function counts once, however often it is called."""

    nodes: int
    ops: Mapping[str, int]
    """Nodes per operator, most frequent first."""
    opsets: Mapping[str, int]
    ir_version: int
    producer_name: str
    producer_version: str
    inputs: tuple[ValueFacts, ...]
    outputs: tuple[ValueFacts, ...]
    dynamic_axes: Mapping[str, tuple[str, ...]]
    """Symbols with the places where they occur, as `x[0]`; an axis without a symbol is called by its place."""
    conv_share: float | None
    """Convolutions among all nodes; None without nodes, and when a compiled part hides what it is made of."""
    parameters: int
    """Elements of the weights, each once, without scales and zero points."""
    initializer_bytes: int
    """Bytes of all initializers and constants, wherever they are stored."""
    file_bytes: int | None
    """Size of the model file and those that belong to it; None when no path was given."""
    macs: MACs
    quantized: Quantization
    float_types: Mapping[str, int]
    """Bytes of the initializers and constants per floating type."""
    compiled_for: tuple[str, ...]
    """What the EPContext nodes name as their source; `unknown` where they name none."""
    contrib_ops: tuple[str, ...]
    """Operators that are neither ONNX's own nor local functions."""
    external_data: bool

    @property
    @in_json
    def compiled(self) -> bool:
        return bool(self.compiled_for)

    @property
    def opset(self) -> int | None:
        """The opset of the default domain."""
        return self.opsets.get("ai.onnx")


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """The model file, or one that belongs to it."""

    path: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """What a model file holds, and what it is known by."""

    facts: GraphFacts
    files: tuple[ModelFile, ...]
    fingerprint: str | None
    fingerprint_reason: str | None
    """Why there is no fingerprint."""


@dataclass(frozen=True)
class RepeatedBlock:
    """The block that a network repeats (`graph/blocks.py`), and how much of the network it is."""

    marks: str
    count: int
    """How often it occurs in a row, over all places."""
    share: float
    """Of the marks of the network."""
    kinds: str = ""
    """Which of the marks C, D and U occur anywhere in the network."""


@dataclass(frozen=True)
class FoundBlock:
    """The block of a graph."""

    block: RepeatedBlock | None
    """None where nothing repeats."""
