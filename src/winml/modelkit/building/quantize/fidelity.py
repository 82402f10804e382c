"""How far the outputs of a quantized model are from those of the original, on a few samples, on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.building.quantize.result import Fidelity, OutputFidelity
from winml.modelkit.building.quantize.runnable import CPU
from winml.modelkit.core.distance import Distance
from winml.modelkit.core.errors import DataError, ModelFileError, RunFailedError
from winml.modelkit.core.measurement import UNTIMED
from winml.modelkit.core.statistics import sqnr_db
from winml.modelkit.graph.inputs import Arrays, cast
from winml.modelkit.session.distance import distance_of
from winml.modelkit.session.session import WinMLSession

SAMPLES = 4
"""Enough to see that a model is broken; `winml eval` measures how good it is."""
SAMPLES_TO_CHOOSE = 16
"""On 4 of a text direction classifier, per tensor looked three times as near as per channel and was as much farther."""


def _noise_db(found: Distance | None) -> float | None:
    """None when there is no noise, or no signal."""
    return sqnr_db(found.relative) if found is not None and found.relative else None


def unknown(source: str, reason: str) -> Fidelity:
    return Fidelity(status="unknown", reason=reason, source=source)


def measure(
    original: Path,
    quantized: Path,
    feeds: Iterable[Arrays],
    *,
    source: str,
    exact: bool = False,
    samples: int = SAMPLES,
    sizes: Mapping[str, int],
) -> Fidelity:
    """Cosine, signal to quantization noise and largest difference per output, or why that is unknown.

    With `exact` the quantized model is run once more with its pairs computed in float. What is lost against that is
    lost by the integer kernels of this processor, not by quantization: without VNNI, x86-64 adds pairs of products in
    16 bits, which saturate.
    """

    def make_unknown(reason: str) -> Fidelity:
        return Fidelity(status="unknown", reason=reason, source=source, sizes=sizes)

    few = list(itertools.islice(feeds, samples))
    try:
        expected = _outputs(original, few)
        found = _distances(expected, _outputs(quantized, few))
        reference = _distances(expected, _outputs(quantized, few, level="disable")) if exact else {}
    except (RunFailedError, ModelFileError, DataError) as error:
        return make_unknown(f"it cannot be run on the CPU of this machine: {error.message}")
    if any(distance.max_abs is None for distance in found.values()):
        return make_unknown("an output is NaN or infinite")
    outputs = tuple(
        OutputFidelity(
            name=name,
            identical=distance.equal,
            cosine=distance.cosine,
            sqnr_db=_noise_db(distance),
            exact_sqnr_db=_noise_db(reference.get(name)),
            max_abs=distance.max_abs or 0.0,
        )
        for name, distance in found.items()
    )
    if not outputs:
        return make_unknown("no output is a float tensor of the same shape in both models")
    return Fidelity(status="measured", source=source, samples=len(few), sizes=sizes, outputs=outputs)


def refusal(path: Path, feeds: Iterable[Arrays], *, levels: Iterable[str]) -> str | None:
    """Why the runtime does not open a model at one of its levels, or does not run it; None when it does."""
    few = list(itertools.islice(feeds, 1))
    try:
        for level in levels:
            _outputs(path, few, level=level)
    except (RunFailedError, ModelFileError) as error:
        return error.message.replace(f"`{path}`", "the result").replace(str(path), "the result")
    return None


def _outputs(path: Path, feeds: Iterable[Arrays], *, level: str = "all") -> list[dict[str, Any]]:
    with WinMLSession(path, target=CPU, section=replace(UNTIMED, optimization_level=level)) as session:
        # A quantized model may take float16.
        return [session.run_arrays(cast(feed, session.inputs, source="the sample")) for feed in feeds]


def _distances(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, Distance]:
    """How far each output is from what it was, over the values of all samples."""
    pairs: dict[str, list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]] = {}
    for before, after in zip(expected, found, strict=True):
        for name, value in before.items():
            if _comparable(value, after[name]):
                pairs.setdefault(name, []).append((value.ravel(), after[name].ravel()))
    return {name: distance_of(*map(np.concatenate, zip(*values, strict=True))) for name, values in pairs.items()}


def _comparable(original: Any, quantized: Any) -> bool:
    return (
        isinstance(original, np.ndarray)
        and isinstance(quantized, np.ndarray)
        and original.dtype.kind == "f"
        and original.shape == quantized.shape
    )
