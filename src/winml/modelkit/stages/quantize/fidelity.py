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

from winml.modelkit.core.errors import RunFailedError
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

    def to_json(self, name: str) -> dict[str, Any]:
        lengths = math.sqrt(self.signal * self.other)
        return {
            "name": name,
            "identical": self.noise == 0.0,
            "cosine": self.product / lengths if lengths else None,
            "sqnr_db": 10 * math.log10(self.signal / self.noise) if self.noise and self.signal else None,
            "max_abs": self.max_abs,
        }


def measure(original: Path, quantized: Path, feeds: Iterable[Arrays], *, source: str) -> dict[str, Any]:
    """Cosine, signal to quantization noise and largest difference per output, or why that cannot be said."""
    few = list(itertools.islice(feeds, SAMPLES))
    unknown = {"status": "unknown", "source": source, "samples": len(few), "outputs": []}
    try:
        with WinMLSession(original, target=CPU) as session:
            expected = [session.run(feed) for feed in few]
        with WinMLSession(quantized, target=CPU) as session:
            found = [session.run(_typed(feed, session.inputs)) for feed in few]
    except RunFailedError as error:
        return {**unknown, "reason": f"it cannot be run on the CPU here: {error.message}"}
    sums: dict[str, _Sums] = {}
    for before, after in zip(expected, found, strict=True):
        for name, value in before.items():
            if _comparable(value, after[name]):
                sums.setdefault(name, _Sums()).add(value, after[name])
    if not all(math.isfinite(total.noise) for total in sums.values()):
        return {**unknown, "reason": "an output is NaN or infinite"}
    outputs = [total.to_json(name) for name, total in sums.items()]
    if not outputs:
        return {**unknown, "reason": "no output is a float tensor of the same shape in both models"}
    return {"status": "measured", "reason": None, "source": source, "samples": len(few), "outputs": outputs}


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
