"""Random inputs as data, when requested by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import to_json
from winml.modelkit.data.samples import Sample, SampleRequest, SampleSource
from winml.modelkit.graph.inputs import Input, InputRequest, synthetic
from winml.modelkit.store import digest

STEPS = 8
"""Of a random sequence."""
COUNT = 32
"""Samples when no limit says how many."""


def read(wanted: SampleRequest) -> SampleSource:
    """Samples of the model's shapes, the same for the same seed; symbolic dimensions are 1 unless the section says."""
    if wanted.labels:
        raise DataError("random inputs have no labels", hint="name data with labels: `--data FILE`")
    section = wanted.section
    seed, count = section.seed, section.limit or COUNT
    asked = _input_request(section, wanted.inputs)

    def samples() -> Iterator[Sample]:
        for index in range(count):
            seeds = [(seed, index, step) for step in range(STEPS)] if wanted.steps else [(seed, index)]
            first, *later = (synthetic(wanted.inputs, replace(asked, seed=one)) for one in seeds)
            yield Sample(first, more=tuple(later), where=f"random sample {index}")

    # The shapes are the model's, which has a digest of its own, and a stage before may have fixed some of them.
    given = [part for part in (section.ranges, section.dims, to_json(section.placeholders or {})) if part]
    return SampleSource(count, samples, {RANDOM: digest.of_json([seed, count, *given])})


def _input_request(section: DataSection, inputs: Sequence[Input]) -> InputRequest:
    """What the section says of the inputs and axes that the model has; stages before may have taken some away."""
    whole = {i.name for i in inputs if i.dtype.removeprefix("u").startswith("int")}
    axes = {axis for i in inputs for axis in i.shape if isinstance(axis, str)}
    return InputRequest(
        dims={axis: size for axis, size in section.dims.items() if axis in axes},
        int_ranges={n: (int(low), int(high)) for n, (low, high) in section.ranges.items() if n in whole},
        float_ranges=section.ranges,
        placeholders=section.placeholders or {},
    )
