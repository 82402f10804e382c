"""Ranges of the values inside a model over calibration samples, with memory that does not grow with their number.

Lowest and highest values are found inside the graph, so that a run keeps no tensor longer than the model itself does.
Histograms need the values: tensors are taken in groups that fit a budget, one pass over the samples for each group.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from onnx import helper

from winml.modelkit.building.quantize import thresholds
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.thresholds import NARROW, Collector, Range
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.graph.inputs import Arrays

if TYPE_CHECKING:
    from onnx import NodeProto

GROUP_ELEMENTS = 64 * 2**20
"""Elements that one group of tensors may have together while histograms are made: 256 MiB of float32."""

LEVEL = "all"
"""How far the runtime may optimize while it calibrates; values that are observed are not fused away."""

Progress = Callable[[int, int], None]


class Samples(Protocol):
    """Calibration data, as `data.dataset` gives it."""

    @property
    def source(self) -> str: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Sample]: ...


@dataclass(frozen=True)
class Calibration:
    """The ranges that are to be quantized, and tensors that have none."""

    ranges: Mapping[str, Range]
    endless: Mapping[str, str] = field(default_factory=dict)
    """Tensors whose values reach too far for a useful range, with what they reach."""
    runs: int = 0

    def extend(self, same: Mapping[str, str]) -> Calibration:
        """The calibration with the ranges of values that hold the same numbers as an observed one."""
        ranges = {name: self.ranges[source] for name, source in same.items() if source in self.ranges}
        endless = {name: self.endless[source] for name, source in same.items() if source in self.endless}
        return Calibration({**self.ranges, **ranges}, {**self.endless, **endless}, self.runs)


USELESS = 1e30
"""Masks are written as -3.4e38 or minus infinity; quantized with such a range, everything else becomes zero."""


def calibrate(
    runnable: Runnable,
    tensors: Sequence[str],
    outputs: Sequence[str],
    samples: Samples,
    section: QuantizeSection,
    progress: Progress,
) -> Calibration:
    """The ranges of `tensors` over all samples; `outputs` are those of the model, which must not be NaN."""
    if not len(samples):
        raise DataError(f"`{samples.source}` has no samples", hint="calibration needs at least one")
    passes = _Passes(runnable, outputs, samples, progress)
    if section.calibration_method == "minmax":
        return _calibration(_extents(passes, tensors), {}, passes.runs)
    collected = _collect(passes, tensors)
    reached = {name: Range(found.low, found.high) for name, found in collected.items()}
    narrowed = {
        name: _narrow(found, section).within(reached[name])
        for name, found in collected.items()
        if NARROW < max(-found.low, found.high) <= USELESS
    }
    return _calibration(reached, narrowed, passes.runs)


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


def _narrow(collector: Collector, section: QuantizeSection) -> Range:
    histogram = collector.histogram()
    if section.calibration_method == "entropy":
        return thresholds.entropy(histogram)
    return thresholds.percentile(histogram, section.percentile)


class _Passes:
    """Runs a model over all samples, each time looking at other values."""

    def __init__(self, runnable: Runnable, outputs: Sequence[str], samples: Samples, progress: Progress) -> None:
        self._runnable = runnable
        self._outputs = outputs
        self._samples = samples
        self._progress = progress
        self.runs = 0
        """Runs of the last pass."""

    def go(
        self, names: Sequence[str], nodes: Sequence[NodeProto] = (), *, limit: int | None = None
    ) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """The values of every run, or of the first `limit` runs."""
        self.runs = 0
        wanted = list(dict.fromkeys([*self._outputs, *names]))
        with self._runnable.open(wanted, nodes=nodes, level=LEVEL) as session:
            for number, inputs in itertools.islice(_feeds(self._samples), limit):
                found = session.run(inputs)
                self._check(found, number)
                yield found
                self.runs += 1
                if limit is None:
                    self._progress(number + 1, len(self._samples))

    def _check(self, found: Mapping[str, Any], number: int) -> None:
        for name in self._outputs:
            value = found[name]
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isnan(value).any():
                raise DataError(
                    f"the model gives NaN in output `{name}` for sample {number + 1} of {self._samples.source}",
                    hint="look at that sample with `winml perf --input-data`; ranges with NaN would break the model",
                )


def _feeds(samples: Samples) -> Iterator[tuple[int, Arrays]]:
    for number, sample in enumerate(samples):
        for inputs in (sample.inputs, *sample.more):
            yield number, inputs


def _extents(passes: _Passes, tensors: Sequence[str]) -> dict[str, Range]:
    """The lowest and highest value of every tensor."""
    lows, lowest = _observers("ReduceMin", tensors)
    highs, highest = _observers("ReduceMax", tensors)
    reached = np.array([[np.inf] * len(tensors), [-np.inf] * len(tensors)])
    for found in passes.go([*lowest, *highest], [*lows, *highs]):
        np.minimum(reached[0], [found[name] for name in lowest], out=reached[0])
        np.maximum(reached[1], [found[name] for name in highest], out=reached[1])
    return {name: Range(float(low), float(high)) for name, low, high in zip(tensors, *reached, strict=True)}


def _observers(op: str, tensors: Sequence[str]) -> tuple[list[NodeProto], list[str]]:
    """Nodes that make one number of each tensor, and what these are called."""
    names = [f"winml.{op}.{number}" for number in range(len(tensors))]
    nodes = [helper.make_node(op, [tensor], [name]) for tensor, name in zip(tensors, names, strict=True)]
    if op != "Size":
        for node in nodes:
            node.attribute.append(helper.make_attribute("keepdims", 0))
    return nodes, names


def _collect(passes: _Passes, tensors: Sequence[str]) -> dict[str, Collector]:
    """The histogram of every tensor."""
    collectors = {name: Collector() for name in tensors}
    for group in _groups(_sizes(passes, tensors)):
        for found in passes.go(group):
            for name in group:
                collectors[name].add(found[name], limit=USELESS)
    return collectors


def _sizes(passes: _Passes, tensors: Sequence[str]) -> dict[str, int]:
    """The elements of every tensor in the first run."""
    nodes, names = _observers("Size", tensors)
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
