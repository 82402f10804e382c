"""Runs of a model over calibration samples that look at values inside it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from onnx import helper

from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.graph.inputs import Arrays

if TYPE_CHECKING:
    from onnx import NodeProto

LEVEL = "all"
"""How far the runtime may optimize while it calibrates; values that are observed are not fused away."""

Progress = Callable[[int, int], None]


class Samples(Protocol):
    """Calibration data, as `data.dataset` gives it."""

    @property
    def source(self) -> str: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Sample]: ...


class Passes:
    """Runs a model over all samples, each time looking at other values."""

    def __init__(self, runnable: Runnable, outputs: Sequence[str], samples: Samples, progress: Progress) -> None:
        self._runnable = runnable
        self._outputs = outputs
        self._samples = samples
        self._progress = progress
        self.runs = 0
        """Runs of the last pass."""

    def go(
        self, names: Sequence[str], nodes: Sequence[NodeProto] = (), *, limit: int | None = None, level: str = LEVEL
    ) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """The values of every run, or of the first `limit` runs."""
        self.runs = 0
        wanted = list(dict.fromkeys([*self._outputs, *names]))
        with self._runnable.open(wanted, nodes=nodes, level=level) as session:
            for number, inputs in itertools.islice(_feeds(self._samples), limit):
                found = session.run(inputs)
                self._check(found, number)
                yield found
                self.runs += 1
                if limit != 1:
                    self._progress(number + 1, min(limit or len(self._samples), len(self._samples)))

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


def observers(op: str, tensors: Sequence[str]) -> tuple[list[NodeProto], list[str]]:
    """Nodes that make one number of each tensor, and what these are called."""
    names = [f"winml.{op}.{number}" for number in range(len(tensors))]
    nodes = [helper.make_node(op, [tensor], [name]) for tensor, name in zip(tensors, names, strict=True)]
    if op != "Size":
        for node in nodes:
            node.attribute.append(helper.make_attribute("keepdims", 0))
    return nodes, names
