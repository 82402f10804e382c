"""Compares the outputs of two versions of a model on seeded inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from winml.modelkit.building.optimize.result import SeededInputs, Verification
from winml.modelkit.building.optimize.workspace import nameless
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.graph.inputs import Arrays, InputRequest, InputSpec, synthetic
from winml.modelkit.graph.trial import stated_placeholders, trial_sizes, whole_ranges
from winml.modelkit.session.output_arrays import as_array
from winml.modelkit.session.session import WinMLSession

ROUNDING = 1e-3
"""Largest difference, relative to the largest number of an output, that reordered arithmetic may cause."""
APPROXIMATION = 5e-2
"""The same for passes that are approximations by nature."""
_ABSOLUTE = 1e-5
_SIZES = (2, 3, 4, 8, 16, 32, 64, 128, 1)
"""Sizes of symbolic dimensions that are tried until two of them run."""


@dataclass(frozen=True)
class Sample:
    """Inputs, and the outputs of the model for them."""

    seeded: SeededInputs
    inputs: Arrays = field(repr=False)
    outputs: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Reference:
    """Samples of the model before the passes, or the reason why there are none."""

    samples: tuple[Sample, ...]
    reason: str | None = None

    @property
    def seeded(self) -> tuple[SeededInputs, ...]:
        return tuple(sample.seeded for sample in self.samples)


def reference(model: Path, *, seed: int, dims: Mapping[str, int]) -> Reference:
    """Run the model on seeded inputs: positive and mixed numbers, two sizes of every symbolic dimension."""
    try:
        with _session(model) as session:
            samples = tuple(_samples(session, model, seed, dims))
            if any(not _equal(sample.outputs, session.run(sample.inputs)) for sample in samples):
                return Reference((), "the outputs of the model change from run to run")
    except ModelkitError as error:
        return Reference((), nameless(error, model))
    return Reference(samples)


def _session(model: Path) -> WinMLSession:
    # Without optimizations of its own the runtime runs what the file holds.
    return WinMLSession(model, target=Target("cpu", "cpu"), section=SessionSection(optimization_level="disable"))


def _samples(session: WinMLSession, model: Path, seed: int, dims: Mapping[str, int]) -> Iterator[Sample]:
    """The first samples that run; the error of the last attempt when none does."""
    specs = session.inputs
    asked = InputRequest(
        seed=seed, int_ranges=whole_ranges(model, specs), placeholders=stated_placeholders(model, specs)
    )
    failure: ModelkitError | None = None
    sizes_done = 0
    for sizes in trial_sizes(model, specs, dims, _SIZES, small_first=True):
        try:
            made = list(_run_samples(session, specs, replace(asked, dims=sizes)))
        except ModelkitError as error:
            failure = error
            continue
        yield from made
        sizes_done += 1
        if sizes_done == 2:
            break
    if sizes_done == 0 and failure is not None:
        raise failure


def _run_samples(session: WinMLSession, specs: Sequence[InputSpec], asked: InputRequest) -> Iterator[Sample]:
    positive, sizes = synthetic(specs, asked), asked.dims
    yield Sample(SeededInputs(sizes, "0 to 1"), positive, session.run(positive))
    if any(array.dtype.kind == "f" for array in positive.values()):
        mixed = {
            # Arithmetic makes a number of an array without dimensions.
            name: np.asarray(array * 2 - 1, array.dtype) if array.dtype.kind == "f" else array
            for name, array in positive.items()
        }
        yield Sample(SeededInputs(sizes, "-1 to 1"), mixed, session.run(mixed))


def compare(before: Reference, model: Path, *, tolerance: float) -> Verification:
    """How far the model's outputs are from the reference; an error when the runtime refuses the model."""
    if before.reason is not None:
        return Verification(status="not run", reason=before.reason, tolerance=tolerance)
    worst_abs = worst_rel = 0.0
    with _session(model) as session:
        for sample in before.samples:
            for name, after in session.run(sample.inputs).items():
                absolute, relative = _distance(sample.outputs.get(name), after)
                worst_abs, worst_rel = max(worst_abs, absolute), max(worst_rel, relative)
    return Verification(
        status="passed" if worst_rel <= tolerance else "failed",
        max_abs=_finite(worst_abs),
        max_rel=_finite(worst_rel),
        tolerance=tolerance,
        runs=before.seeded,
    )


def refusal(before: Reference, reason: str, *, tolerance: float) -> Verification:
    """The answer for a model that the runtime refuses although it took the one before."""
    message = f"the runtime refuses the result: {reason}"
    return Verification(status="failed", reason=message, tolerance=tolerance, runs=before.seeded)


def _finite(value: float) -> float | None:
    """JSON has no infinity: what has no distance has null."""
    return value if np.isfinite(value) else None


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(_distance(value, other[name])[0] == 0 for name, value in one.items())


def _distance(before: Any, after: Any) -> tuple[float, float]:
    """The largest difference, absolute and relative to the largest number before; infinite where none exists."""
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [_distance(one, other) for one, other in zip(before, after, strict=True)]
        return max((pair[0] for pair in pairs), default=0.0), max((pair[1] for pair in pairs), default=0.0)
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        return _distance(as_array(before), as_array(after))
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        same = type(before) is type(after) and bool(before == after)
        return (0.0, 0.0) if same else (np.inf, np.inf)
    if before.shape != after.shape or before.dtype != after.dtype:
        return np.inf, np.inf
    return _array_distance(before, after)


def _array_distance(before: npt.NDArray[Any], after: npt.NDArray[Any]) -> tuple[float, float]:
    if before.dtype.kind not in "fc":
        return (0.0, 0.0) if np.array_equal(before, after) else (np.inf, np.inf)
    wide = np.complex128 if before.dtype.kind == "c" else np.float64
    one, other = before.astype(wide), after.astype(wide)
    finite = np.isfinite(one)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True) or not np.isfinite(other[finite]).all():
        return np.inf, np.inf
    if not finite.any():
        return 0.0, 0.0
    absolute = float(np.abs(one[finite] - other[finite]).max())
    scale = float(np.abs(one[finite]).max())
    return absolute, max(0.0, absolute - _ABSOLUTE) / max(scale, _ABSOLUTE)
