"""What is known of an artifact on its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.values import key

Status = Literal["proven on target", "proven on cpu only (target not here)", "not proven"]
ON_TARGET: Status = "proven on target"
ON_CPU: Status = "proven on cpu only (target not here)"
NOT: Status = "not proven"


@dataclass(frozen=True, kw_only=True)
class OutputDistance:
    """How far an output is from the source's, over the values of all samples."""

    name: str
    is_float: bool = key("float")
    same_shape: bool = True
    equal: bool = False
    finite: bool = True
    signal: bool = True
    """Whether the source has a number there above the noise."""
    cosine: float | None = None
    """Null where one of them has no direction; for classes and masks the share of equal values."""
    scale: float | None = None
    """How many times larger it is than the source's."""
    max_abs: float | None = None
    sqnr_db: float | None = None


@dataclass(frozen=True, kw_only=True)
class Reference:
    """What a source computed on the CPU."""

    samples: int
    dims: Mapping[str, int]
    """Sizes of open dimensions in the inputs."""
    reason: str | None
    """Why there are no samples."""


@dataclass(frozen=True, kw_only=True)
class ArtifactRun:
    """The outputs of an artifact for the inputs of its source."""

    samples: int
    outputs: tuple[OutputDistance, ...] = ()
    placement: Placement | None = None
    weights_at_risk: int | None = None
    reason: str | None = None
    """Why nothing was compared."""
    data: str | None = None


@dataclass(frozen=True, kw_only=True)
class LeastAgreement:
    """The output that agrees least with the source's."""

    output: str | None
    cosine: float | None


@dataclass(frozen=True, kw_only=True)
class Proof:
    """Whether an artifact was opened on its target, run there and compared with its source."""

    status: Status
    reason: str | None = None
    """Why it is not proven."""
    on: str | None = None
    """Where it ran."""
    compiled: str | None = None
    """Why the source of the compiled form was run instead of the compiled form."""
    agreement: LeastAgreement | None = None
    limit: float | None = None
    """The least cosine that its precision has to reach; null where no proof was requested."""
    outputs: tuple[OutputDistance, ...] = ()
    samples: int = 0
    data: str | None = None
    """Where the inputs come from."""
    placement: Placement | None = None
    weights_at_risk: int | None = None
    """8-bit weights that saturate on this processor; null where that was not looked at."""
    cache: Literal["hit", "miss"] | None = None
    seconds: float = 0.0
