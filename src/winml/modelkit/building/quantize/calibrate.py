"""Ranges of the values inside a model over calibration samples, with memory that does not grow with their number.

Lowest and highest values are found inside the graph, so that a run keeps no tensor longer than the model itself does.
Histograms need the values: tensors are taken in groups that fit a budget, one pass over the samples for each group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType

import numpy as np

from winml.modelkit.building.quantize import least_loss, thresholds
from winml.modelkit.building.quantize.passes import Passes, Progress, Samples, observers
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.thresholds import NARROW, Collector, Range
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError

GROUP_ELEMENTS = 64 * 2**20
"""Elements that one group of tensors may have together while histograms are made: 256 MiB of float32."""


@dataclass(frozen=True)
class Calibration:
    """The ranges that are to be quantized, and tensors that have none."""

    ranges: Mapping[str, Range]
    endless: Mapping[str, str] = field(default_factory=dict)
    """Tensors whose values reach too far for a useful range, with what they reach."""
    runs: int = 0
    methods: Mapping[str, str] = field(default_factory=dict)
    """With `best`: the method that each tensor has its range from."""

    def extend(self, same: Mapping[str, str]) -> Calibration:
        """The calibration with the ranges of values that hold the same numbers as an observed one."""
        ranges = {name: self.ranges[source] for name, source in same.items() if source in self.ranges}
        endless = {name: self.endless[source] for name, source in same.items() if source in self.endless}
        return replace(self, ranges={**self.ranges, **ranges}, endless={**self.endless, **endless})


USELESS = 1e30
"""Masks are written as -3.4e38 or minus infinity; quantized with such a range, everything else becomes zero."""


def calibrate(
    runnable: Runnable,
    tensors: Sequence[str],
    outputs: Sequence[str],
    samples: Samples,
    section: QuantizeSection,
    progress: Progress,
    *,
    types: Mapping[str, int] = MappingProxyType({}),
) -> Calibration:
    """The ranges of `tensors` over all samples; `outputs` are those of the model, which must not be NaN.

    `types` are the element types of values; with `best`, what is computed from a tensor is judged where they are known.
    """
    if not len(samples):
        raise DataError(f"`{samples.source}` has no samples", hint="calibration needs at least one")
    passes = Passes(runnable, outputs, samples, progress)
    if section.calibration_method == "minmax":
        return _calibration(_extents(passes, tensors), {}, passes.runs)
    collected = _collect(passes, tensors)
    reached = {name: Range(found.low, found.high) for name, found in collected.items()}
    wide = {name: found for name, found in collected.items() if NARROW < max(-found.low, found.high) <= USELESS}
    runs = passes.runs
    if section.calibration_method != "best":
        narrowed = {name: _narrow(found, section, section.calibration_method) for name, found in wide.items()}
        return _calibration(reached, narrowed, runs)
    rivals = {name: _rivals(found, section) for name, found in wide.items()}
    methods = least_loss.choose(runnable, passes, rivals, section, types)
    found = _calibration(reached, {name: rivals[name][method] for name, method in methods.items()}, runs)
    return replace(found, methods=methods)


def _rivals(collector: Collector, section: QuantizeSection) -> dict[str, Range]:
    """The range of a tensor by every method; `entropy` seeks 8 bits."""
    narrow = (section.activation_type or "").endswith("8")
    methods = ("percentile", "entropy", "mse") if narrow else ("percentile", "mse")
    whole = Range(collector.low, collector.high)
    return {"minmax": whole} | {method: _narrow(collector, section, method) for method in methods}


def _calibration(reached: Mapping[str, Range], narrowed: Mapping[str, Range], runs: int) -> Calibration:
    ranges: dict[str, Range] = {}
    endless: dict[str, str] = {}
    for name, found in reached.items():
        if math.isnan(found.low) or math.isnan(found.high):
            endless[name] = "NaN"
        elif found.low > found.high:
            ranges[name] = Range(0.0, 0.0)  # empty in every sample
        elif max(-found.low, found.high) > USELESS:
            endless[name] = f"{found.low:.3g} to {found.high:.3g}"
        else:
            ranges[name] = narrowed.get(name, found)
    return Calibration(ranges, endless, runs)


def _narrow(collector: Collector, section: QuantizeSection, method: str) -> Range:
    histogram = collector.histogram()
    reached = Range(collector.low, collector.high)
    if method == "entropy":
        return thresholds.entropy(histogram).within(reached)
    if method == "mse":
        levels = least_loss.levels(section)
        found = thresholds.least_error(histogram, levels=levels, symmetric=section.symmetric_activations)
        return found.within(reached)
    return thresholds.percentile(histogram, section.percentile).within(reached)


def _extents(passes: Passes, tensors: Sequence[str]) -> dict[str, Range]:
    """The lowest and highest value of every tensor."""
    lows, lowest = observers("ReduceMin", tensors)
    highs, highest = observers("ReduceMax", tensors)
    reached = np.array([[np.inf] * len(tensors), [-np.inf] * len(tensors)])
    for found in passes.go([*lowest, *highest], [*lows, *highs]):
        np.minimum(reached[0], [found[name] for name in lowest], out=reached[0])
        np.maximum(reached[1], [found[name] for name in highest], out=reached[1])
    return {name: Range(float(low), float(high)) for name, low, high in zip(tensors, *reached, strict=True)}


def _collect(passes: Passes, tensors: Sequence[str]) -> dict[str, Collector]:
    """The histogram of every tensor."""
    collectors = {name: Collector() for name in tensors}
    for group in _groups(_sizes(passes, tensors)):
        for found in passes.go(group):
            for name in group:
                collectors[name].add(found[name], limit=USELESS)
    return collectors


def _sizes(passes: Passes, tensors: Sequence[str]) -> dict[str, int]:
    """The elements of every tensor in the first run."""
    nodes, names = observers("Size", tensors)
    found = next(passes.go(names, nodes, limit=1))
    return {tensor: int(found[name]) for tensor, name in zip(tensors, names, strict=True)}


def _groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """The tensors in groups whose elements fit the budget; one that is larger is a group of its own."""
    group: list[str] = []
    total = 0
    for name, size in sizes.items():
        if group and total + size > GROUP_ELEMENTS:
            yield group
            group, total = [], 0
        group.append(name)
        total += size
    if group:
        yield group
