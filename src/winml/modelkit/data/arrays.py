"""From one sample's value to the input of a model: type, batch dimension, shape, no NaN."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.limits import read_sample
from winml.modelkit.graph.inputs import Arrays, Dim, Input, form_of
from winml.modelkit.graph.npz import read_header
from winml.modelkit.graph.sizes import name_dims


@dataclass(frozen=True)
class PlainInput:
    """An input as part of another: one choice of several, one frame of a video."""

    name: str
    dtype: str
    shape: tuple[Dim, ...]


def without_axis(spec: Input, axis: int) -> PlainInput:
    """The input without one of its axes."""
    return PlainInput(spec.name, spec.dtype, (*spec.shape[:axis], *spec.shape[axis + 1 :]))


def read_array(path: Path) -> npt.NDArray[Any]:
    """The numbers of a .npy file, which is no larger than a sample may be."""
    return decode_array(read_sample(path, f"`{path}`"), f"`{path}`")


def decode_array(content: bytes, named: str) -> npt.NDArray[Any]:
    """The numbers of the content of a .npy file."""
    stream = io.BytesIO(content)
    try:
        stored = read_header(stream, named)
        values = stream.read()
        if len(values) != stored.nbytes or stored.dtype.kind not in "fiub":
            raise ValueError("its size does not match its shape, or it holds no numbers")
    except ValueError as error:
        raise DataError(f"{named} is not a .npy file of numbers: {error}") from error
    order: Literal["F", "C"] = "F" if stored.column_major else "C"
    return np.frombuffer(values, stored.dtype).reshape(stored.shape, order=order)


def _convert_type(value: npt.NDArray[Any], spec: Input, where: str) -> npt.NDArray[Any]:
    """The value in the input's type: wider or narrower numbers of one kind are the same numbers, others are not."""
    if spec.dtype == "str":
        if value.dtype.kind not in "UO":
            raise DataError(f"input `{spec.name}` is text but {where} has {value.dtype}")
        return value.astype(object)
    wanted = np.dtype(spec.dtype)
    whole = {value.dtype.kind, wanted.kind} <= set("iu")
    if not whole and not np.can_cast(value.dtype, wanted, "same_kind"):
        raise DataError(f"input `{spec.name}` must be {wanted} but {where} has {value.dtype}")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise DataError(
            f"{where} has NaN or infinite values for input `{spec.name}`", hint="remove or repair it in the data"
        )
    if whole and value.size:
        limits = np.iinfo(wanted)
        if int(value.min()) < limits.min or int(value.max()) > limits.max:
            raise DataError(f"{where} has values for input `{spec.name}` that do not fit {wanted}")
    with np.errstate(over="ignore"):
        typed = value.astype(wanted)
    if wanted.kind == "f" and not np.isfinite(typed).all():
        raise DataError(f"{where} has values for input `{spec.name}` that do not fit {wanted}")
    return typed


def as_input(value: Any, spec: Input, where: str) -> Any:
    """The value as the model takes it, with a batch dimension of 1 where the model has one more than the sample.

    A single value of a table fills an input of any rank that holds one, as `[N, 1]` of a scikit-learn column. The
    elements of a sequence lie along the first dimension of the sample.
    """
    form = form_of(spec)
    if form.endswith("sequence"):
        return [_convert_type(np.asarray(element), spec, where) for element in value]
    typed = _convert_type(np.asarray(value), spec, where)
    if form == "optional":
        return typed
    holds_one = not typed.ndim and all(dim == 1 or not isinstance(dim, int) for dim in spec.shape)
    shaped = typed[np.newaxis] if typed.ndim == len(spec.shape) - 1 else typed
    shaped = typed.reshape((1,) * len(spec.shape)) if holds_one else shaped
    fits = shaped.ndim == len(spec.shape) and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(spec.shape, shaped.shape, strict=True)
    )
    if not fits:
        wanted = f"[{', '.join(map(str, name_dims(spec.name, spec.shape)))}]"
        raise DataError(
            f"input `{spec.name}` must have shape {wanted} but {where} has {list(shaped.shape)}",
            hint="samples are run one at a time; fix the batch of the model at 1 or leave it open"
            if spec.shape and isinstance(spec.shape[0], int) and spec.shape[0] > 1
            else None,
        )
    return np.asarray(shaped, order="C")  # `ascontiguousarray` gives a single number a dimension


def as_inputs(values: Mapping[str, npt.NDArray[Any]], specs: Sequence[Input], where: str) -> Arrays:
    """The values of one run."""
    return {spec.name: as_input(values[spec.name], spec, where) for spec in specs}


def as_steps(values: Mapping[str, npt.NDArray[Any]], specs: Sequence[Input], where: str) -> list[Arrays]:
    """The values of one run after the other: the first dimension of an array counts steps.

    An array with fewer dimensions than its input (and one that has none) is the same in every step.
    """
    for spec in specs:
        if form_of(spec).endswith("sequence"):
            raise DataError(f"input `{spec.name}` is a sequence, which a model with state cannot have in data")
    counts = {spec.name: len(values[spec.name]) for spec in specs if _has_steps(values[spec.name], spec)}
    if len(set(counts.values())) > 1:
        words = ", ".join(f"`{name}` {count}" for name, count in counts.items())
        raise DataError(f"{where} has different numbers of steps: {words}")
    count = next(iter(counts.values()), 0)
    if not count:
        raise DataError(
            f"{where} is not a sequence: no array has a dimension for its steps",
            hint="the first dimension of a sample counts the steps, as in an array [samples, steps, ...]",
        )
    return [
        {
            spec.name: as_input(values[spec.name][step] if spec.name in counts else values[spec.name], spec, where)
            for spec in specs
        }
        for step in range(count)
    ]


def _has_steps(value: npt.NDArray[Any], spec: Input) -> bool:
    return value.ndim >= max(1, len(spec.shape))
