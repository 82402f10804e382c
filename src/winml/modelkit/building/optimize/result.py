"""The report of the optimizer; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from winml.modelkit.building.optimize.table import Kind, Level
from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.values import key
from winml.modelkit.store.stage_cache import CacheAnswer


@dataclass(frozen=True)
class Crashes:
    """What crashed earlier processes of a stage."""

    passes: Mapping[str, str] = field(default_factory=dict)
    """Reasons by pass."""
    source: str | None = None
    """Why the unmodified model is not run, so that outputs are not compared; quantizing compares them too."""
    careful: bool = False
    """Whether the result crashed the process when it was run; outputs are then compared after each pass."""


@dataclass(frozen=True, kw_only=True)
class OptimizeArguments:
    """What the worker operation `stages.optimize` takes."""

    model: str
    output: str
    section: OptimizeSection
    target: str | None = None
    """Whose operators alone may be made (`qnn/npu`); null when all may."""
    verify: bool = True
    seed: int = 0
    crashes: Crashes = field(default_factory=Crashes)


@dataclass(frozen=True, kw_only=True)
class WrittenFile:
    path: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class PassResult:
    """The result of one pass."""

    name: str
    kind: Kind
    status: Literal["changed", "no change", "left out"]
    changed: bool
    seconds: float
    note: str | None


@dataclass(frozen=True)
class SeededInputs:
    """Inputs that outputs were compared on."""

    dims: Mapping[str, int]
    """Sizes of symbolic dimensions."""
    numbers: str
    """The range of the numbers."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The outputs before and after."""

    status: Literal["passed", "failed", "not run", "not asked for"]
    reason: str | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    tolerance: float | None = None
    runs: tuple[SeededInputs, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OptimizeReport:
    """What was done to a model."""

    changed: bool
    fingerprint_before: str
    fingerprint_after: str
    files: tuple[WrittenFile, ...]
    passes: tuple[PassResult, ...]
    nodes_before: int
    nodes_after: int
    ops_before: Mapping[str, int]
    ops_after: Mapping[str, int]
    opset_before: int
    opset_after: int
    fixed_dims: Mapping[str, int]
    verification: Verification
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class OptimizeResult(CommandResult):
    """A model that was optimized."""

    schema: Literal["winml/optimize/1"] = "winml/optimize/1"
    ok: Literal[True] = True
    model: str
    output: str
    target: str | None
    section: OptimizeSection
    cache: CacheAnswer
    """Whether the result came from the cache, as the stage of a build does."""
    report: OptimizeReport = key(inline=True)


@dataclass(frozen=True, kw_only=True)
class PassRow:
    """A row of the table of passes."""

    name: str
    kind: Kind
    level: Level | None
    what: str
    produces: tuple[str, ...]
    refused: tuple[str, ...]
    """Operators it makes that the target is not known to support."""
    needs: tuple[str, ...]
    approximate: bool
    unavailable: str | None


@dataclass(frozen=True, kw_only=True)
class PassTable:
    """The table of passes, with `--list`."""

    schema: Literal["winml/optimize/1"] = "winml/optimize/1"
    ok: Literal[True] = True
    target: str | None
    table: tuple[PassRow, ...]


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """What a pass alone does to a model."""

    name: str
    kind: Kind
    what: str
    status: Literal["changes", "no change", "failed"]
    note: str | None
    after: tuple[str, ...]
    """Passes that make what it looks for."""
    nodes_delta: int
    ops_delta: Mapping[str, int]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What each of several passes alone does to a model."""

    nodes: int
    passes: tuple[Candidate, ...]
