"""Inputs of a model: made from its shapes with a seed, or read from an .npz file; needs numpy only, never onnx."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.graph import npz
from winml.modelkit.graph.sizes import is_batch, match_sizes, missing_size_error, name_dims, open_dims, with_batch

Dim = int | str | None
Arrays = dict[str, npt.NDArray[Any]]

_DTYPES: dict[str, str] = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int8)": "int8",
    "tensor(int16)": "int16",
    "tensor(int32)": "int32",
    "tensor(int64)": "int64",
    "tensor(uint8)": "uint8",
    "tensor(uint16)": "uint16",
    "tensor(uint32)": "uint32",
    "tensor(uint64)": "uint64",
    "tensor(bool)": "bool",
    "tensor(string)": "str",
}
MAX_INPUT_BYTES = 8 * 2**30


class Input(Protocol):
    """What has to be known of an input to make or check its value."""

    @property
    def name(self) -> str: ...

    @property
    def dtype(self) -> str:
        """The numpy name of its type; `str` for text."""
        ...

    @property
    def shape(self) -> tuple[Dim, ...]: ...


@dataclass(frozen=True)
class InputSpec:
    """An input as the runtime reports it; a dimension is a number, a symbol, or None when the model is silent."""

    name: str
    type: str
    shape: tuple[Dim, ...]

    @property
    def dtype(self) -> str:
        """The numpy name of its type."""
        if self.type not in _DTYPES:
            raise DataError(
                f"input `{self.name}` has type {self.type}, which is not supported",
                hint="wrap the model so that its inputs are plain tensors",
            )
        return _DTYPES[self.type]


def input_spec(name: str, dtype: str, shape: tuple[Dim, ...]) -> InputSpec:
    """An input of an element type as people write it, as `float32` or `string`."""
    by_name = {word: kind for kind, word in _DTYPES.items()} | {"string": "tensor(string)"}
    return InputSpec(name, by_name.get(dtype, f"tensor({dtype})"), shape)


@dataclass(frozen=True)
class InputRequest:
    """How synthetic inputs are made."""

    dims: dict[str, int] = field(default_factory=dict)
    batch_size: int | None = None
    int_ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Lowest and highest value per input; the empty name means every integer input."""
    seed: int | tuple[int, ...] = 0
    float_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Lowest and highest value per input of other numbers, which lie in [0, 1) unless given."""


def resolve_dims(specs: Sequence[Input], asked: InputRequest) -> dict[str, int]:
    """The size of every open dimension: as requested, or 1 for a batch; raises for others without one."""
    dims = with_batch(specs, match_sizes(specs, asked.dims), asked.batch_size)
    missing = {name: places for name, places in open_dims(specs).items() if name not in dims}
    unknown = [name for name, places in missing.items() if not is_batch(name, places)]
    if unknown:
        raise missing_size_error(unknown)
    return {**dict.fromkeys(missing, 1), **dims}


def _int_range(spec: Input, dtype: np.dtype[Any], asked: InputRequest) -> tuple[int, int]:
    low, high = asked.int_ranges.get(spec.name, asked.int_ranges.get("", (0, 1)))
    limits = np.iinfo(dtype)
    if low < limits.min or high > limits.max:
        raise RequestError(f"range {low}:{high} does not fit input `{spec.name}` of type {dtype}")
    return low, high


def _fill(spec: Input, shape: tuple[int, ...], asked: InputRequest, rng: np.random.Generator) -> npt.NDArray[Any]:
    if spec.dtype == "str":
        return np.full(shape, "text", dtype=object)
    dtype = np.dtype(spec.dtype)
    if dtype.kind == "f":
        lowest, highest = asked.float_ranges.get(spec.name, (0.0, 1.0))
        drawn = lowest + (highest - lowest) * rng.random(shape, dtype=np.float32)
        return np.asarray(drawn, dtype)  # a single number too
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    low, high = _int_range(spec, dtype, asked)
    return rng.integers(low, high, shape, dtype=dtype, endpoint=True)


def _check_names(specs: Sequence[Input], asked: InputRequest) -> None:
    names = {s.name for s in specs}
    for name in asked.int_ranges:
        if name and name not in names:
            raise RequestError(f"the model has no input `{name}`", hint=did_you_mean(name, names))


def synthetic(specs: Sequence[Input], asked: InputRequest) -> Arrays:
    """Inputs of the model's shapes: numbers in their range (0 to 1 unless given)."""
    _check_names(specs, asked)
    dims = resolve_dims(specs, asked)
    rng = np.random.default_rng(asked.seed)
    made: Arrays = {}
    for spec in specs:
        shape = tuple(dims[d] if isinstance(d, str) else d for d in name_dims(spec.name, spec.shape))
        nbytes = int(np.prod(shape, dtype=object)) * (8 if spec.dtype == "str" else np.dtype(spec.dtype).itemsize)
        if nbytes > MAX_INPUT_BYTES or min(shape, default=0) < 0:
            raise DataError(f"input `{spec.name}` of shape {list(shape)} would take {nbytes / 2**30:.1f} GiB")
        made[spec.name] = _fill(spec, shape, asked, rng)
    return made


def from_npz(path: Path, specs: Sequence[Input]) -> Arrays:
    """The arrays of an .npz file, checked against the model's names, types and shapes before their values are read."""
    try:
        with npz.open_archive(path) as archive:
            stored = npz.headers(archive)
            source = str(path)
            named = [_find_array(stored, spec, source) for spec in specs]
            check_sample(sum(array.nbytes for array in named), f"the inputs in `{path}`")
            symbols: dict[str, int] = {}
            for spec, array in zip(specs, named, strict=True):
                _check_shape(spec, array.shape, symbols, source)
            return fitting({a.name: npz.read_array(archive, a) for a in named}, specs, source=source)
    except FileNotFoundError as error:
        raise DataError(f"input data not found: `{path}`", hint=near_path(path)) from error


def _find_array(arrays: Mapping[str, npz.StoredArray], spec: Input, source: str) -> npz.StoredArray:
    if spec.name not in arrays:
        raise _no_array(spec, arrays, source)
    return arrays[spec.name]


def _no_array(spec: Input, names: Iterable[str], source: str) -> DataError:
    return DataError(
        f"{source} has no array for input `{spec.name}`", hint=f"it has: {', '.join(sorted(names)) or 'none'}"
    )


def fitting(arrays: Mapping[str, npt.NDArray[Any]], specs: Sequence[Input], *, source: str) -> Arrays:
    """The arrays the model takes, each of the right type and shape; an error names the first that is not."""
    symbols: dict[str, int] = {}
    taken: Arrays = {}
    for spec in specs:
        if spec.name not in arrays:
            raise _no_array(spec, arrays, source)
        array = arrays[spec.name]
        wanted = np.dtype(object if spec.dtype == "str" else spec.dtype)
        if spec.dtype == "str" and array.dtype.kind in "US":
            array = array.astype(object)
        if array.dtype != wanted:
            raise DataError(f"input `{spec.name}` must be {wanted} but {source} has {array.dtype}")
        _check_shape(spec, array.shape, symbols, source)
        taken[spec.name] = np.ascontiguousarray(array)
    return taken


def _check_shape(spec: Input, shape: tuple[int, ...], symbols: dict[str, int], source: str) -> None:
    wanted = f"[{', '.join(map(str, name_dims(spec.name, spec.shape)))}]"
    fits = len(shape) == len(spec.shape) and all(
        not isinstance(d, int) or d == n for d, n in zip(spec.shape, shape, strict=True)
    )
    if not fits:
        raise DataError(f"input `{spec.name}` must have shape {wanted} but {source} has {list(shape)}")
    for dim, size in zip(name_dims(spec.name, spec.shape), shape, strict=True):
        if isinstance(dim, str) and symbols.setdefault(dim, size) != size:
            raise DataError(
                f"dimension `{dim}` is {symbols[dim]} in one input and {size} in input `{spec.name}` of {source}"
            )


def symbol_sizes(specs: Sequence[Input], arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, int]:
    """The size each symbolic dimension has in these inputs."""
    return {
        dim: size
        for spec in specs
        for dim, size in zip(name_dims(spec.name, spec.shape), arrays[spec.name].shape, strict=True)
        if isinstance(dim, str)
    }
