"""Random inputs as data, for those who ask for them by name."""

from __future__ import annotations

from collections.abc import Iterator

from winml.modelkit.core.config import RANDOM
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Found, Sample, Wanted
from winml.modelkit.graph.inputs import InputRequest, synthetic
from winml.modelkit.store import digest

COUNT = 32
"""Samples when no limit says how many."""


def read(wanted: Wanted) -> Found:
    """Samples of the model's shapes, the same for the same seed; symbolic dimensions are 1."""
    if wanted.labels:
        raise DataError("random inputs have no labels", hint="name data with labels: `--data FILE`")
    seed, count = wanted.section.seed, wanted.section.limit or COUNT

    def samples() -> Iterator[Sample]:
        for index in range(count):
            yield Sample(synthetic(wanted.inputs, InputRequest(seed=(seed, index))), where=f"random sample {index}")

    # The shapes are the model's, which has a digest of its own, and a stage before may have fixed some of them.
    return Found(count, samples, {RANDOM: digest.of_json([seed, count])})
