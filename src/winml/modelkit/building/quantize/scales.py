"""Scales of weights per channel or per tensor, where the section leaves that open: by how well the outputs agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from winml.modelkit.core.config import QuantizeSection

MARGIN = 0.9
"""What is left of the distance at most where one scale per tensor is chosen."""
WORDS = {True: "channel", False: "tensor"}
ASKED = "the section says so"
UNMEASURED = "the first choice; outputs were not compared"
ONE_WAY = "the only way here"


def settle(section: QuantizeSection) -> QuantizeSection:
    """The section with the scales that are tried first: per channel where they are measured, else per tensor."""
    return section if section.per_channel is not None else replace(section, per_channel=is_measured(section))


def is_measured(section: QuantizeSection) -> bool:
    """Whether both ways are weighed: nothing is said, and 8-bit pairs for kernels that take both."""
    narrow = section.activation_type in ("uint8", "int8")
    return section.per_channel is None and section.mode == "static" and section.rules == "ort" and narrow


@dataclass(frozen=True)
class Granularity:
    """How the scales of weights were chosen."""

    per_channel: bool
    reason: str

    @property
    def note(self) -> str:
        """What to say of a choice between two that were measured."""
        way = WORDS[self.per_channel]
        return f"weights have scales per {way}: {self.reason}; `--per-channel` or `--per-tensor` decides by hand"

    def to_json(self) -> dict[str, Any]:
        return {"scales": WORDS[self.per_channel], "reason": self.reason}


def first_choice(asked: QuantizeSection, settled: QuantizeSection, cosine: float | None) -> Granularity | None:
    """The choice where nothing else was tried; None for modes whose weights have no such scales."""
    if settled.mode not in ("static", "dynamic"):
        return None
    if asked.per_channel is not None:
        return Granularity(asked.per_channel, ASKED)
    if not is_measured(asked):
        return Granularity(bool(settled.per_channel), ONE_WAY)
    measured = f"the first choice; the outputs have a cosine of {cosine or 0.0:.4f} with the original's"
    return Granularity(True, UNMEASURED if cosine is None else measured)


def choose(channel: float, tensor: float | None) -> Granularity:
    """The better of two; per tensor has to be better by a margin, since few samples tell a small one by chance."""
    other = "it cannot be run" if tensor is None else f"{tensor:.4f}"
    if tensor is not None and 1.0 - tensor < MARGIN * (1.0 - channel):
        return Granularity(False, f"a cosine of {other} with the original, against {channel:.4f} per channel")
    return Granularity(True, f"a cosine of {channel:.4f} with the original; per tensor is no better ({other})")
