"""Inputs of a model: made from its shapes with a seed, or read from an .npz file; needs numpy only, never onnx."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.limits import check_sample
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.graph.sizes import is_batch, match_sizes, missing_size_error, name_dims, open_dims, with_batch

if TYPE_CHECKING:
    import zipfile

    from winml.modelkit.graph import npz

Dim = int | str | None
Arrays = dict[str, Any]
"""Values by input: an array; a list of arrays for a sequence; None for an optional input that is left out."""
Form = Literal["tensor", "sequence", "optional", "optional sequence"]

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
_FORMS: tuple[tuple[str, Form], ...] = (
    ("optional(seq(", "optional sequence"),
    ("optional(", "optional"),
    ("seq(", "sequence"),
)


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
    def form(self) -> Form:
        """Whether a value is an array, a list of arrays, or may be left out."""
        return next((form for start, form in _FORMS if self.type.startswith(start)), "tensor")

    @property
    def dtype(self) -> str:
        """The numpy name of its type; that of the elements of a sequence."""
        opening = next((start for start, _ in _FORMS if self.type.startswith(start)), "")
        element = self.type.removeprefix(opening).removesuffix(")" * opening.count("("))
        if element not in _DTYPES:
            raise DataError(
                f"input `{self.name}` has type {self.type}, which numpy arrays cannot hold",
                hint="wrap the model so that it takes float32 or whole numbers and casts them itself"
                if element.startswith("tensor(")
                else "wrap the model so that its inputs are tensors",
            )
        return _DTYPES[element]


def form_of(spec: Input) -> Form:
    """The form of an input; those that are known by name, type and shape alone are tensors."""
    return spec.form if isinstance(spec, InputSpec) else "tensor"


def elements_of(value: Any) -> list[npt.NDArray[Any]]:
    """The arrays of a value: one, those of a sequence, none of what was left out."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def input_spec(name: str, dtype: str, shape: tuple[Dim, ...]) -> InputSpec:
    """An input of a type as people write it, as `float32`, `string` or `sequence(float32)`."""
    return InputSpec(name, _runtime_type(dtype), shape)


def _runtime_type(dtype: str) -> str:
    for word, kind in (("sequence(", "seq("), ("optional(", "optional(")):
        if dtype.startswith(word):
            return f"{kind}{_runtime_type(dtype.removeprefix(word).removesuffix(')'))})"
    by_name = {word: kind for kind, word in _DTYPES.items()} | {"string": "tensor(string)"}
    return by_name.get(dtype, f"tensor({dtype})" if "(" not in dtype else dtype)


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
    placeholders: Mapping[str, Placeholders] = field(default_factory=dict)
    """Words that stand for what another input holds, by the name of their input."""


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
    drawn = rng.integers(low, high, shape, dtype=dtype, endpoint=True)
    return put_placeholders(drawn, asked.placeholders.get(spec.name))


def put_placeholders(ids: npt.NDArray[Any], given: Placeholders | None) -> npt.NDArray[Any]:
    """The ids, beginning with the words that stand for something else; none of the others is that word."""
    if given is None or ids.ndim == 0:
        return ids
    if given.word > np.iinfo(ids.dtype).max:
        raise RequestError(f"word {given.word}, which stands for another input, does not fit ids of type {ids.dtype}")
    made = np.where(ids == given.word, given.word - 1 if given.word else 1, ids).astype(ids.dtype)
    made[..., : given.count] = given.word
    return made


def _check_names(specs: Sequence[Input], asked: InputRequest) -> None:
    names = {s.name for s in specs}
    for name in asked.int_ranges:
        if name and name not in names:
            raise RequestError(f"the model has no input `{name}`", hint=did_you_mean(name, names))


BOXES = "bbox"
"""The input for boxes of words on a page, in every model that has one."""


def synthetic(specs: Sequence[Input], asked: InputRequest) -> Arrays:
    """Inputs of the model's shapes: numbers in their range (0 to 1 unless given)."""
    _check_names(specs, asked)
    dims = resolve_dims(specs, asked)
    rng = np.random.default_rng(asked.seed)
    made: Arrays = {}
    for spec in specs:
        if form_of(spec) != "tensor":
            raise _no_synthetic(spec)
        shape = tuple(dims[d] if isinstance(d, str) else d for d in name_dims(spec.name, spec.shape))
        nbytes = int(np.prod(shape, dtype=object)) * (8 if spec.dtype == "str" else np.dtype(spec.dtype).itemsize)
        if nbytes > MAX_INPUT_BYTES or min(shape, default=0) < 0:
            raise DataError(f"input `{spec.name}` of shape {list(shape)} would take {nbytes / 2**30:.1f} GiB")
        made[spec.name] = _fill(spec, shape, asked, rng)
        if spec.name == BOXES and shape[-1:] == (4,):
            # Left, top, right, bottom: models look up width and height in a table, which has none below 0.
            corners = made[spec.name].reshape(*shape[:-1], 2, 2)
            made[spec.name] = np.sort(corners, axis=-2).reshape(shape)
    return made


def _no_synthetic(spec: Input) -> DataError:
    """Nothing says how many elements a sequence has, or whether an optional input is there."""
    form, first = form_of(spec), shell_word(f"{spec.name}[0]")
    kind = f"an optional {spec.dtype} tensor" if form == "optional" else f"{_article(form)} of {spec.dtype} tensors"
    ways = {
        "sequence": f"arrays `{first}`, `{spec.name}[1]` and so on",
        "optional": f"an array `{spec.name}`, or none to leave it out",
        "optional sequence": f"arrays `{first}`, `{spec.name}[1]` and so on, or none to leave it out",
    }
    return DataError(
        f"input `{spec.name}` is {kind}, for which no synthetic value can be made",
        hint=f"give it as data (`winml perf --input-data FILE.npz`), with {ways[form]}",
    )


def _article(form: Form) -> str:
    return f"an {form}" if form.startswith("o") else f"a {form}"


def from_npz(path: Path, specs: Sequence[Input]) -> Arrays:
    """The arrays of an .npz file, checked against the model's names, types and shapes before their values are read."""
    from winml.modelkit.graph import npz  # inputs that are made need no zipfile, which costs 5 ms

    try:
        with npz.open_archive(path) as archive:
            stored = npz.headers(archive)
            source = str(path)
            named = {spec.name: _find_arrays(stored, spec, source) for spec in specs}
            found = [array for arrays in named.values() for array in arrays]
            check_sample(sum(array.nbytes for array in found), f"the inputs in `{path}`")
            symbols: dict[str, int] = {}
            for spec in specs:
                if form_of(spec) == "tensor":
                    _check_shape(spec, named[spec.name][0].shape, symbols, source)
            read = {spec.name: _read_value(archive, spec, named[spec.name]) for spec in specs}
            return fitting(read, specs, source=source)
    except FileNotFoundError as error:
        raise DataError(f"input data not found: `{path}`", hint=near_path(path)) from error


def _find_arrays(arrays: Mapping[str, npz.StoredArray], spec: Input, source: str) -> list[npz.StoredArray]:
    """The array of an input, or those of its elements: `x[0]`, `x[1]` and so on; none of an optional one left out."""
    form = form_of(spec)
    if form.endswith("sequence"):
        numbered = itertools.takewhile(lambda name: name in arrays, (f"{spec.name}[{n}]" for n in itertools.count()))
        elements = [arrays[name] for name in numbered]
        if elements:
            return elements
    if spec.name in arrays:
        return [arrays[spec.name]]
    if form.startswith("optional"):
        return []
    raise _no_array(spec, arrays, source)


def _read_value(archive: zipfile.ZipFile, spec: Input, stored: Sequence[npz.StoredArray]) -> Any:
    from winml.modelkit.graph import npz

    values = [npz.read_array(archive, array) for array in stored]
    if not form_of(spec).endswith("sequence") or not values:
        return values[0] if values else None
    # One array under the name of the input itself has its elements along the first dimension.
    return list(values[0]) if stored[0].name == spec.name else values


def _no_array(spec: Input, names: Iterable[str], source: str) -> DataError:
    return DataError(
        f"{source} has no array for input `{spec.name}`", hint=f"it has: {', '.join(sorted(names)) or 'none'}"
    )


def fitting(arrays: Mapping[str, Any], specs: Sequence[Input], *, source: str) -> Arrays:
    """The values the model takes, each of the right type and shape; an error names the first that is not."""
    symbols: dict[str, int] = {}
    taken: Arrays = {}
    for spec in specs:
        form, value = form_of(spec), arrays.get(spec.name)
        if value is None and form.startswith("optional"):
            taken[spec.name] = None
        elif value is None:
            raise _no_array(spec, arrays, source)
        elif form.endswith("sequence"):
            taken[spec.name] = [_of_type(element, spec, source) for element in value]
        else:
            taken[spec.name] = _of_type(value, spec, source)
            if form == "tensor":
                _check_shape(spec, taken[spec.name].shape, symbols, source)
    return taken


def cast(feed: Mapping[str, Any], specs: Sequence[Input], *, source: str) -> Arrays:
    """The values of the inputs that a model has, in the types that it takes."""
    cast: Arrays = {}
    for spec in specs:
        if spec.name not in feed:
            raise _no_array(spec, feed, source)
        dtype = object if spec.dtype == "str" else spec.dtype
        value = feed[spec.name]
        typed = [element.astype(dtype) for element in elements_of(value)]
        cast[spec.name] = typed if isinstance(value, list) else next(iter(typed), None)
    return cast


def _of_type(value: Any, spec: Input, source: str) -> npt.NDArray[Any]:
    array = np.asarray(value)
    wanted = np.dtype(object if spec.dtype == "str" else spec.dtype)
    if spec.dtype == "str" and array.dtype.kind in "US":
        array = array.astype(object)
    if array.dtype != wanted:
        raise DataError(f"input `{spec.name}` must be {wanted} but {source} has {array.dtype}")
    return np.asarray(array, order="C")  # `ascontiguousarray` gives a single number a dimension


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


def symbol_sizes(specs: Sequence[Input], arrays: Mapping[str, Any]) -> dict[str, int]:
    """The size each symbolic dimension has in these inputs."""
    return {
        dim: size
        for spec in specs
        if form_of(spec) == "tensor"
        for dim, size in zip(name_dims(spec.name, spec.shape), arrays[spec.name].shape, strict=True)
        if isinstance(dim, str)
    }
