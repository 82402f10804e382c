"""How far the outputs of a quantized model are from those of the original, on a few samples, on the CPU."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.errors import DataError, RunFailedError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.graph.inputs import Arrays, InputSpec
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.stages.quantize.runnable import CPU

SAMPLES = 4
"""Enough to see that a model is broken; `winml eval` says how good it is."""


@dataclass
class _Sums:
    """Sums over the values of one output."""

    signal: float = 0.0
    other: float = 0.0
    product: float = 0.0
    noise: float = 0.0
    max_abs: float = 0.0

    def add(self, original: npt.NDArray[Any], quantized: npt.NDArray[Any]) -> None:
        a, b = original.astype(np.float64).ravel(), quantized.astype(np.float64).ravel()
        self.signal += float(a @ a)
        self.other += float(b @ b)
        self.product += float(a @ b)
        self.noise += float((a - b) @ (a - b))
        self.max_abs = max(self.max_abs, float(np.abs(a - b).max(initial=0.0)))

    @property
    def sqnr_db(self) -> float | None:
        """None when there is no noise or no signal."""
        return 10 * math.log10(self.signal / self.noise) if self.noise and self.signal else None

    def to_json(self, name: str, exact: _Sums | None) -> dict[str, Any]:
        lengths = math.sqrt(self.signal * self.other)
        return {
            "name": name,
            "identical": self.noise == 0.0,
            "cosine": self.product / lengths if lengths else None,
            "sqnr_db": self.sqnr_db,
            "exact_sqnr_db": None if exact is None else exact.sqnr_db,
            "max_abs": self.max_abs,
        }


def skipped(source: str, reason: str) -> dict[str, Any]:
    return {"status": "skipped", "reason": reason, "source": source, "samples": 0, "outputs": []}


def unknown(source: str, reason: str) -> dict[str, Any]:
    return {**skipped(source, reason), "status": "unknown"}


def measure(
    original: Path, quantized: Path, feeds: Iterable[Arrays], *, source: str, exact: bool = False
) -> dict[str, Any]:
    """Cosine, signal to quantization noise and largest difference per output, or why that cannot be said.

    With `exact` the quantized model is run once more with its pairs computed in float. What is lost against that is
    lost by the integer kernels of this processor, not by quantization: without VNNI, x86-64 adds pairs of products in
    16 bits, which saturate.
    """
    few = list(itertools.islice(feeds, SAMPLES))
    try:
        expected = _outputs(original, few)
        found = _sums(expected, _outputs(quantized, few))
        reference = _sums(expected, _outputs(quantized, few, level="disable")) if exact else {}
    except (RunFailedError, DataError) as error:
        return unknown(source, f"it cannot be run on the CPU here: {error.message}")
    if not all(math.isfinite(total.noise) for total in found.values()):
        return unknown(source, "an output is NaN or infinite")
    outputs = [total.to_json(name, reference.get(name)) for name, total in found.items()]
    if not outputs:
        return unknown(source, "no output is a float tensor of the same shape in both models")
    return {"status": "measured", "reason": None, "source": source, "samples": len(few), "outputs": outputs}


def _outputs(path: Path, feeds: Iterable[Arrays], *, level: str = "all") -> list[dict[str, Any]]:
    with WinMLSession(path, target=CPU, section=SessionSection(optimization_level=level)) as session:
        return [session.run(_typed(feed, session.inputs)) for feed in feeds]


def _sums(expected: list[dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, _Sums]:
    sums: dict[str, _Sums] = {}
    for before, after in zip(expected, found, strict=True):
        for name, value in before.items():
            if _comparable(value, after[name]):
                sums.setdefault(name, _Sums()).add(value, after[name])
    return sums


def _typed(feed: Arrays, inputs: Iterable[InputSpec]) -> Arrays:
    """The inputs in the types the quantized model takes, which may be float16."""
    return {spec.name: feed[spec.name].astype(spec.dtype if spec.dtype != "str" else object) for spec in inputs}


def _comparable(original: Any, quantized: Any) -> bool:
    return (
        isinstance(original, np.ndarray)
        and isinstance(quantized, np.ndarray)
        and original.dtype.kind == "f"
        and original.shape == quantized.shape
    )
