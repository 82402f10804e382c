"""How far two values of one output are apart."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Distance:
    """Numbers are null where two outputs cannot be compared, or have no direction."""

    same_shape: bool
    equal: bool
    max_abs: float | None
    cosine: float | None
    """For numbers that are not floats the share that is equal."""
    relative: float | None
