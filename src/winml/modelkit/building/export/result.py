"""The report of an export, and the result of `winml export`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from winml.modelkit.core.config import InputSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.values import AtLeast, Digest, key

Sizes = Mapping[str, Annotated[int, AtLeast(1)]]


@dataclass(frozen=True, kw_only=True)
class OutputParity:
    """How an output compares with PyTorch's at one shape."""

    output: str
    sizes: Sizes
    difference: float
    """The largest difference, relative to the largest number."""
    largest: float
    padded: bool | None = key(omit=True)
    """Whether the masks of the sample had padding; absent where no input is a mask."""


@dataclass(frozen=True, kw_only=True)
class TokenParity:
    """How the tokens that a decoder generates compare with those of PyTorch's `generate`, both taking the likeliest."""

    prompts: int
    """Of different lengths, padded on the left."""
    tokens: int
    """New tokens for each."""
    equal: int
    """Tokens that are the same, of all prompts."""
    ties: int
    """Prompts that went on differently after two tokens that PyTorch rates alike."""


@dataclass(frozen=True, kw_only=True)
class ParityPassed:
    """Every output compares at every shape."""

    status: Literal["passed"] = "passed"
    tolerance: float
    difference: float
    outputs: tuple[OutputParity, ...]
    tokens: TokenParity | None = key(omit=True)
    """Of a decoder with its cache."""


@dataclass(frozen=True, kw_only=True)
class ParityNotRun:
    """Nothing was compared with PyTorch."""

    status: Literal["not run"] = "not run"
    reason: str


@dataclass(frozen=True, kw_only=True)
class ParityFailed:
    """An output differs by more than the tolerance."""

    status: Literal["failed"] = "failed"
    tolerance: float
    difference: float
    outputs: tuple[OutputParity, ...]


@dataclass(frozen=True, kw_only=True)
class FailedParity:
    """The outputs of an export that failed."""

    parity: ParityFailed


@dataclass(frozen=True, kw_only=True)
class ExportedFile:
    """A file that was written."""

    path: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class ExportSeconds:
    """How long it took."""

    export: float
    verify: float


@dataclass(frozen=True, kw_only=True)
class ExportMetadata:
    """How a model was exported and how it compares with PyTorch."""

    schema: Literal["winml/export-metadata/1"] = "winml/export-metadata/1"
    architecture: str
    parameters: int | None
    """Null where the weight files do not say."""
    task: str
    part: str
    exporter: str
    opset: int
    libraries: Mapping[str, str]
    inputs: tuple[InputSection, ...]
    sizes: Sizes
    """Sizes of open axes in the sample that was traced."""
    left_out: tuple[str, ...]
    """Inputs that the model does not take."""
    files: tuple[ExportedFile, ...]
    seconds: ExportSeconds
    peak_memory_bytes: int | None = None
    """The most memory that the process of the export had resident; null where the system does not say."""
    parity: ParityPassed | ParityNotRun
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ExportedPart:
    """A part that was exported."""

    part: str
    path: str
    digest: Digest
    bytes: int
    cache: Literal["hit", "miss"]
    seconds: float
    metadata: ExportMetadata


@dataclass(frozen=True, kw_only=True, repr=False)
class ExportResult(CommandResult):
    """What was exported, part by part; a single model is one part."""

    schema: Literal["winml/export/1"] = "winml/export/1"
    ok: Literal[True] = True
    model: str
    folder: str
    task: str
    parts: tuple[ExportedPart, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
