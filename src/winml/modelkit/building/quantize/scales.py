"""Scales of weights per channel or per tensor, where the section leaves that open: by how well the outputs agree."""

from __future__ import annotations

from dataclasses import replace

from winml.modelkit.building.quantize.result import Granularity
from winml.modelkit.core.config import QuantizeSection

MARGIN = 0.9
"""What is left of the distance at most where one scale per tensor is chosen."""
ASKED = "set in the section"
UNMEASURED = "the default; outputs were not compared"
ONE_WAY = "the only option here"


def settle(section: QuantizeSection) -> QuantizeSection:
    """The section with the scales that are tried first: per channel where they are measured, else per tensor."""
    return section if section.per_channel is not None else replace(section, per_channel=is_measured(section))


def is_measured(section: QuantizeSection) -> bool:
    """Whether both are compared: the section leaves it open and has 8-bit pairs for kernels that take both."""
    narrow = section.activation_type in ("uint8", "int8")
    return section.per_channel is None and section.mode == "static" and section.rules == "ort" and narrow


def first_choice(asked: QuantizeSection, settled: QuantizeSection, cosine: float | None) -> Granularity | None:
    """The choice where nothing else was tried; None for modes whose weights have no such scales."""
    if settled.mode not in ("static", "dynamic"):
        return None
    if asked.per_channel is not None:
        return _granularity(asked.per_channel, ASKED)
    if not is_measured(asked):
        return _granularity(bool(settled.per_channel), ONE_WAY)
    measured = f"the default; the outputs have a cosine of {cosine or 0.0:.4f} with the original's"
    return Granularity("channel", UNMEASURED if cosine is None else measured)


def _granularity(per_channel: bool, reason: str) -> Granularity:
    return Granularity("channel" if per_channel else "tensor", reason)


def choose(channel: float, tensor: float | None) -> Granularity:
    """The better of two; per tensor has to be better by a margin, since few samples may show a small one by chance."""
    other = "it cannot be run" if tensor is None else f"{tensor:.4f}"
    if tensor is not None and 1.0 - tensor < MARGIN * (1.0 - channel):
        return Granularity("tensor", f"a cosine of {other} with the original, against {channel:.4f} per channel")
    return Granularity("channel", f"a cosine of {channel:.4f} with the original; per tensor is no better ({other})")
