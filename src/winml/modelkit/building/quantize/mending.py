"""What can be changed about a section so that a quantized model loses less, cheapest first; pure and light."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from winml.modelkit.building.quantize.fewer import FOLLOWERS, PRODUCTS, is_open
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass

ALPHA = 0.5
"""Of smoothing: what its authors use for most models."""


@dataclass(frozen=True)
class MendingLevel:
    """One change of a section."""

    name: str
    """What is done, for the trail of an accuracy-aware quantization."""
    changes: Mapping[str, Any]
    """Keys of the section and their values."""


def mending_levels(section: QuantizeSection, ops: Collection[str]) -> tuple[MendingLevel, ...]:
    """Changes worth trying, each on its own or on top of those before it; `ops` are the operators of the model.

    The first ones leave the arithmetic of the model as it is, smoothing may add nodes, and the last one computes some
    operators in float. What the section has already, or what the user chose, is not among them.
    """
    if section.mode != "static":
        return ()
    narrow = (section.activation_type or "").endswith("8")
    levels = []
    if section.bias_correction is None and set(PRODUCTS).intersection(ops):
        levels.append(MendingLevel("bias correction", {"bias_correction": True}))
    if section.calibration_method == "minmax" and narrow:
        levels.append(MendingLevel("the best range of each tensor", {"calibration_method": "best"}))
    if section.smoothing is None and {"MatMul", "Gemm"}.intersection(ops):
        levels.append(MendingLevel(f"smoothing of {ALPHA}", {"smoothing": ALPHA}))
    if is_open(section) and set(ops).difference(PRODUCTS, FOLLOWERS) and set(PRODUCTS).intersection(ops):
        kept = tuple(op for op in sorted((*PRODUCTS, *FOLLOWERS)) if op in ops)
        levels.append(MendingLevel("products alone", {"op_types": kept}))
    return tuple(levels)
