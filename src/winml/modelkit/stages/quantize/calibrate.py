"""Ranges of the values inside a model over calibration samples, with memory that does not grow with their number.

Lowest and highest values are found inside the graph, so that a run keeps no tensor longer than the model itself does.
Histograms need the values: tensors are taken in groups that fit a budget, one pass over the samples for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from onnx import helper

from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.graph.inputs import Arrays
from winml.modelkit.stages.quantize import thresholds
from winml.modelkit.stages.quantize.runnable import Runnable
from winml.modelkit.stages.quantize.thresholds import BINS, Histogram, Range

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


@dataclass
class _Extent:
    """What one tensor was seen to reach."""

    low: float = float("inf")
    high: float = float("-inf")
    elements: int = 0

    def add(self, low: float, high: float, elements: int) -> None:
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.elements = max(self.elements, elements)


@dataclass(frozen=True)
class Calibration:
    """The ranges that are to be quantized, and tensors that were seen to have none."""

    ranges: Mapping[str, Range]
    endless: Mapping[str, str] = field(default_factory=dict)
    """Tensors whose values reach so far that no range is of use, with what they reach."""
    runs: int = 0

    def extended(self, same: Mapping[str, str]) -> Calibration:
        """With the ranges of values that hold the same numbers as one that was observed."""
        ranges = {name: self.ranges[source] for name, source in same.items() if source in self.ranges}
        endless = {name: self.endless[source] for name, source in same.items() if source in self.endless}
        return Calibration({**self.ranges, **ranges}, {**self.endless, **endless}, self.runs)


NARROW = 1e-30
"""A range below this has no bins that float32 can tell apart."""

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
    extents, runs = _extents(runnable, tensors, outputs, samples, section, progress)
    ranges: dict[str, Range] = {}
    endless: dict[str, str] = {}
    for name, extent in extents.items():
        if extent.low > extent.high:
            ranges[name] = Range(0.0, 0.0)  # empty in every sample
        elif max(-extent.low, extent.high) > USELESS:
            endless[name] = f"{extent.low:.3g} to {extent.high:.3g}"
        else:
            ranges[name] = Range(extent.low, extent.high)
    if section.calibration_method != "minmax":
        ranges |= _narrowed(runnable, ranges, extents, samples, section, progress)
    return Calibration(ranges, endless, runs)


def _feeds(samples: Samples) -> Iterator[tuple[int, Arrays]]:
    for number, sample in enumerate(samples):
        for inputs in (sample.inputs, *sample.more):
            yield number, inputs


def _observers(tensors: Sequence[str], *, sizes: bool) -> tuple[list[NodeProto], list[str]]:
    """Nodes that reduce each tensor to its extent, and the names of what they give."""
    ops = ("ReduceMin", "ReduceMax", "Size") if sizes else ("ReduceMin", "ReduceMax")
    nodes, names = [], []
    for number, tensor in enumerate(tensors):
        for op in ops:
            names.append(f"winml.{op}.{number}")
            node = helper.make_node(op, [tensor], [names[-1]])
            if op != "Size":
                node.attribute.append(helper.make_attribute("keepdims", 0))
            nodes.append(node)
    return nodes, names


def _extents(
    runnable: Runnable,
    tensors: Sequence[str],
    outputs: Sequence[str],
    samples: Samples,
    section: QuantizeSection,
    progress: Progress,
) -> tuple[dict[str, _Extent], int]:
    sizes = section.calibration_method != "minmax"
    nodes, names = _observers(tensors, sizes=sizes)
    extents = {name: _Extent() for name in tensors}
    step = 3 if sizes else 2
    runs = 0
    with runnable.open([*outputs, *names], nodes=nodes, level=LEVEL) as session:
        for number, inputs in _feeds(samples):
            found = session.run(inputs)
            _check_outputs(found, outputs, number, samples)
            for index, extent in enumerate(extents.values()):
                seen = names[index * step : (index + 1) * step]
                extent.add(float(found[seen[0]]), float(found[seen[1]]), int(found[seen[2]]) if sizes else 0)
            runs += 1
            progress(number + 1, len(samples))
    if not runs:
        raise DataError(f"`{samples.source}` has no samples", hint="calibration needs at least one")
    return extents, runs


def _check_outputs(found: Mapping[str, Any], outputs: Sequence[str], number: int, samples: Samples) -> None:
    for name in outputs:
        value = found[name]
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and np.isnan(value).any():
            raise DataError(
                f"the model gives NaN in output `{name}` for sample {number + 1} of {samples.source}",
                hint="look at that sample with `winml perf --input-data`; ranges with NaN would break the model",
            )


def _groups(names: Sequence[str], extents: Mapping[str, _Extent]) -> Iterator[list[str]]:
    """The tensors in groups whose elements fit the budget; one that is larger is a group of its own."""
    group: list[str] = []
    total = 0
    for name in names:
        if group and total + extents[name].elements > GROUP_ELEMENTS:
            yield group
            group, total = [], 0
        group.append(name)
        total += extents[name].elements
    if group:
        yield group


def _narrowed(
    runnable: Runnable,
    ranges: Mapping[str, Range],
    extents: Mapping[str, _Extent],
    samples: Samples,
    section: QuantizeSection,
    progress: Progress,
) -> dict[str, Range]:
    """Ranges without the outliers, for all tensors that have more than one value."""
    wide = [name for name, found in ranges.items() if found.high - found.low > NARROW]
    narrowed: dict[str, Range] = {}
    for group in _groups(wide, extents):
        for name, histogram in _histograms(runnable, {n: ranges[n] for n in group}, samples, progress).items():
            narrowed[name] = (
                thresholds.entropy(histogram)
                if section.calibration_method == "entropy"
                else thresholds.percentile(histogram, section.percentile)
            )
    return narrowed


def _histograms(
    runnable: Runnable, ranges: Mapping[str, Range], samples: Samples, progress: Progress
) -> dict[str, Histogram]:
    counts = {name: np.zeros(BINS, np.int64) for name in ranges}
    with runnable.open(list(ranges), level=LEVEL) as session:
        for number, inputs in _feeds(samples):
            for name, values in session.run(inputs).items():
                counts[name] += _counted(values, ranges[name])
            progress(number + 1, len(samples))
    return {name: Histogram(ranges[name], counts[name]) for name in ranges}


def _counted(values: npt.NDArray[Any], within: Range) -> npt.NDArray[np.int64]:
    """How many values fall into each bin of a range that holds all of them."""
    scale = np.float32(BINS / (within.high - within.low))
    bins = ((values.ravel().astype(np.float32, copy=False) - np.float32(within.low)) * scale).astype(np.int32)
    np.clip(bins, 0, BINS - 1, out=bins)
    return np.bincount(bins, minlength=BINS)
