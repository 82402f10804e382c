"""Results of compiling models; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.distance import Distance
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import Digest, key
from winml.modelkit.graph.description import ValueFacts

CompilerName = Literal["ort", "ort_jit", "qairt"]


@dataclass(frozen=True)
class Limits:
    """What outputs must reach; the two agree for small errors, the second also detects a wrong scale."""

    cosine: float
    sqnr_db: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outputs of a compiled model against those of its source."""

    passed: bool | None
    """Null where nothing can be compared."""
    reason: str | None
    max_abs: float | None
    cosine: float | None
    sqnr_db: float | None
    limits: Limits


@dataclass(frozen=True)
class Comparisons:
    source: Comparison | None = key(omit=True)


@dataclass(frozen=True)
class Validation:
    """Whether a compiled model computes what its source computes on the same target; unknown is not a pass."""

    status: Literal["passed", "failed", "not-validated"]
    reason: str | None
    comparisons: Comparisons = field(default_factory=Comparisons)


@dataclass(frozen=True, kw_only=True)
class ContextFile:
    """The ONNX file of a compiled model."""

    file: str
    bytes: int
    digest: Digest


@dataclass(frozen=True, kw_only=True)
class ContextBinary:
    """Compiled data beside a model."""

    file: str
    bytes: int
    digest: Digest
    nodes: int
    """Nodes of the model that name it."""


@dataclass(frozen=True, kw_only=True)
class ContextFacts:
    """What a compiled model is made of, read from its files."""

    file: ContextFile
    ep_context_nodes: int
    binaries: tuple[ContextBinary, ...]
    embedded_bytes: int
    cpu_ops: Mapping[str, int]
    compatibility: Mapping[str, str]
    """By EP, what it reports the compiled data runs on."""
    inputs: tuple[ValueFacts, ...]
    outputs: tuple[ValueFacts, ...]

    @property
    def binary_bytes(self) -> int:
        """Bytes of compiled data, beside the model or inside it."""
        return sum(binary.bytes for binary in self.binaries) + self.embedded_bytes


@dataclass(frozen=True, kw_only=True)
class CompileCost:
    """What compiling took."""

    seconds: float
    peak_bytes: int | None
    provider_options: Mapping[str, str]
    """Those that were used."""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """A compiled model."""

    facts: ContextFacts = key(inline=True)
    cost: CompileCost = key(inline=True)
    precision: str
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CompileReport:
    """The report of the stage on one model, as the cache keeps it."""

    compiled: Compiled = key(inline=True)
    validation: Validation | None
    """Null where it was not requested."""


@dataclass(frozen=True, kw_only=True)
class CompiledAlone:
    """The same model compiled on its own, for one that shares a context."""

    binaries: tuple[ContextBinary, ...]
    seconds: float
    peak_bytes: int | None
    validation: Validation | None
    cached: bool


@dataclass(frozen=True, kw_only=True)
class CompiledModel:
    """A model that was compiled."""

    model: str
    status: Literal["compiled"] = "compiled"
    error: None = None
    output: str
    cached: bool
    compiled: Compiled = key(inline=True)
    cpu_nodes: int
    validation: Validation
    proof: Proof
    alone: CompiledAlone | None


@dataclass(frozen=True, kw_only=True)
class FailedModel:
    """A model that was not compiled."""

    model: str
    status: Literal["failed"] = "failed"
    error: ErrorObject
    log: tuple[str, ...]
    validation: Validation | None
    proof: Proof | None


@dataclass(frozen=True, kw_only=True)
class SharedBinary:
    """Compiled data with the models that name it."""

    file: str
    bytes: int
    models: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """Which models refer to which binary, and how many bytes that saves."""

    shared: bool
    binaries: tuple[SharedBinary, ...]
    bytes: int
    bytes_alone: int
    saved_pct: float
    seconds: float
    peak_bytes: int | None


@dataclass(frozen=True, kw_only=True, repr=False)
class CompileResult(CommandResult):
    """Models that were compiled together."""

    schema: Literal["winml/compile/1"] = "winml/compile/1"
    ok: Literal[True] = True
    action: Literal["compile"] = "compile"
    target: Target = key(inline=True)
    compiler: CompilerName
    embed: bool
    provider_options: Mapping[str, str]
    added_options: Mapping[str, str]
    libraries: Mapping[str, str]
    folder: str
    models: tuple[CompiledModel | FailedModel, ...]
    sharing: Sharing | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CompilerRow:
    """Whether a compiler can be used on this machine, and why not."""

    compiler: CompilerName
    summary: str
    available: bool
    reason: str | None
    hint: str | None
    shares: bool
    default: bool


@dataclass(frozen=True, kw_only=True)
class CompilerList:
    """The compilers for an EP, with `--list`."""

    schema: Literal["winml/compile/1"] = "winml/compile/1"
    ok: Literal[True] = True
    action: Literal["list"] = "list"
    ep: str
    compilers: tuple[CompilerRow, ...]


# What workers answer

FileState = tuple[int, int]
"""Size and time of a file, which change when it is written to."""


@dataclass(frozen=True, kw_only=True)
class SourceFacts:
    """What decides whether a model can be compiled."""

    digest: Digest
    states: Mapping[str, FileState | None]
    """Its files as they were when they were hashed."""
    compiled_for: tuple[str, ...]
    symbolic: Mapping[str, tuple[str, ...]]
    """Open dimensions of inputs, with their places."""
    precision: str
    inputs: tuple[ValueFacts, ...]
    outputs: tuple[ValueFacts, ...]


@dataclass(frozen=True, kw_only=True)
class ReadContext:
    """A compiled model, and binaries that it names and that are not there."""

    facts: ContextFacts = key(inline=True)
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ComparedOutput(Distance):
    """How far an output is from that of the source."""

    is_float: bool = key("float")


@dataclass(frozen=True, kw_only=True)
class ValidationRun:
    """The result of running a compiled model beside its source."""

    opened: bool
    reason: str | None = None
    """Why the compiled model does not open here, or why its source does not run."""
    outputs: Mapping[str, ComparedOutput] = field(default_factory=dict)
