"""How much of their 8 bits weights use, where the section leaves that open; light enough for a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from winml.modelkit.core.config import QuantizeSection

REDUCED = (
    "weights have 7 bits (`reduce_range`): the 8-bit kernels of this processor add in 16 bits, which saturate; for "
    "processors with VNNI alone, `winml quantize --full-range` keeps all 8"
)


def resolve(section: QuantizeSection, saturates: Callable[[], bool]) -> tuple[QuantizeSection, tuple[str, ...]]:
    """The section with its range decided, and a note on it; `saturates` is called only where it matters."""
    if section.reduce_range is not None:
        return section, ()
    reduced = may_saturate(section) and saturates()
    return replace(section, reduce_range=reduced), (REDUCED,) if reduced else ()


def may_saturate(section: QuantizeSection) -> bool:
    """Whether products of 8-bit activations with signed 8-bit weights come of a section; uint8 weights are exact."""
    narrow = section.activation_type in ("uint8", "int8") if section.mode == "static" else section.mode == "dynamic"
    return narrow and section.weight_type == "int8"
