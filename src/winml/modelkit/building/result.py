"""Results of `winml build` and `winml config`."""

from __future__ import annotations

from typing import Literal

from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.core.config import BuildConfig
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import Digest, key
from winml.modelkit.store.stage_cache import CacheAnswer, Change

FilesBy = Literal["link", "copy"]


@dataclass(frozen=True, kw_only=True, repr=False)
class ConfigResult(CommandResult):
    """A config with `auto` resolved, and what was decided for the user."""

    schema: Literal["winml/config/1"] = "winml/config/1"
    ok: Literal[True] = True
    config: BuildConfig
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BuiltArtifact:
    """The model that was built."""

    path: str
    digest: Digest
    bytes: int


@dataclass(frozen=True, kw_only=True)
class BuildStage:
    """A stage that ran or came from the cache."""

    stage: str
    cache: CacheAnswer
    reason: str
    file: str
    digest: Digest
    seconds: float
    changes: tuple[Change, ...]
    """What is different from the nearest earlier run of the stage."""


@dataclass(frozen=True, kw_only=True)
class OperatorCounts:
    """Operator types by what the target does with them, and how that is known."""

    supported: int
    partial: int
    unsupported: int
    unknown: int
    source: str


@dataclass(frozen=True, kw_only=True)
class Fallback:
    """A precision that was given up because its artifact failed on the target."""

    precision: str
    then: str
    reason: str
    identity: str | None
    """The build that was requested."""


@dataclass(frozen=True, kw_only=True, repr=False)
class BuildResult(CommandResult):
    """What was built, stage by stage, and where it is."""

    schema: Literal["winml/build/1"] = "winml/build/1"
    ok: Literal[True] = True
    model: str
    target: Target = key(inline=True)
    precision: str
    folder: str
    artifact: BuiltArtifact
    stages: tuple[BuildStage, ...]
    analysis: OperatorCounts | None
    """Null where the target was not asked."""
    proof: Proof
    fallbacks: tuple[Fallback, ...]
    files_by: FilesBy
    seconds: float
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BuiltPart:
    """A part of a composite model."""

    part: str
    result: BuildResult = key(inline=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class BuildPartsResult(CommandResult):
    """What was built of a composite model, part by part."""

    schema: Literal["winml/build-parts/1"] = "winml/build-parts/1"
    ok: Literal[True] = True
    model: str
    target: Target = key(inline=True)
    precision: str
    folder: str
    parts: tuple[BuiltPart, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class FailedBuild:
    """How far a failed build got."""

    stages: tuple[BuildStage, ...] | None = key(omit=True)
    stage: str | None = key(omit=True)
    """The stage that failed."""
    proof: Proof | None = key(omit=True)
    fallbacks: tuple[Fallback, ...] | None = key(omit=True)


def failure_of(error: ModelkitError) -> FailedBuild:
    """The failed build that an error carries."""
    return error.result if isinstance(error.result, FailedBuild) else FailedBuild()
