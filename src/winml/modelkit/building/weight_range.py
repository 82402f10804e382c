"""Decides the range of 8-bit weights before anything is built, so that it is part of the config and of every key."""

from __future__ import annotations

from winml.modelkit.building.quantize import weight_range
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.target import Target
from winml.modelkit.worker.client import Worker


def resolve(section: QuantizeSection, target: Target, worker: Worker) -> tuple[QuantizeSection, tuple[str, ...]]:
    """The section as this machine's processor needs it; other EPs than `cpu` have kernels of their own."""

    def saturates() -> bool:
        return target.ep == "cpu" and worker.ask(bool, "session.saturation", what="asking the processor")

    return weight_range.resolve(section, saturates)
