"""Sizes of dimensions that a model leaves open: what they are called, and what is known of them.

Needs nothing but the standard library: the parent of `winml perf` asks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import parse_json
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.values import AtLeast

Shape = tuple[int | str, ...]
SizeSource = Literal["given", "data", "metadata", "processor", "config", "graph", "other arm", "batch"]
_LARGEST = 2**31 - 1
INPUTS_KEY = "winml.inputs"
"""Metadata of an ONNX file: `{"sizes", "ranges"}`, the sizes it is used with and the whole numbers its inputs take.

One key, since the runtime keeps several in no particular order, and the bytes of a file are its identity.
"""

_RANK = "[]"
_PLACE = re.compile(r"(?P<name>.*)\[(?P<index>\d+)\]", re.DOTALL)
_BATCH_LETTERS = ("n", "b", "bs", "bsz")
_LENGTH = re.compile(
    r"seq|len|time|frame|sample|token|height|width|past|total|patch|point|roi|box|node|edge|channel|step|word|char"
    r"|position|pixel|feature|^[hwtlc]$"
)
_EXAMPLES = (
    (re.compile(r"height|width|^[hw]$|image|pixel"), 224),
    (re.compile(r"sample|audio|wave"), 16000),
    (re.compile(r"seq|len|token|past|total"), 128),
)

SHIFTED_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Families that count positions from the one after the padding id."""


class SizedInput(Protocol):
    """What has to be known of an input to find its sizes."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> Sequence[int | str | None]: ...


@dataclass(frozen=True)
class DimPlace:
    """Where an open dimension is."""

    input: str
    index: int
    rank: int

    def __str__(self) -> str:
        return f"{self.input}[{self.index}]"


@dataclass(frozen=True)
class Size:
    """The size of an open dimension, and how it is known."""

    size: Annotated[int, AtLeast(1)]
    source: SizeSource
    reason: str


BATCH = Size(1, "batch", "a batch of one, the default")


def name_dims(name: str, shape: Iterable[int | str | None]) -> Shape:
    """The shape with a name for every open dimension: one without its own goes by its place, as `x[2]`."""
    return tuple(
        dim if (isinstance(dim, str) and dim) or (isinstance(dim, int) and dim >= 0) else f"{name}[{index}]"
        for index, dim in enumerate(shape)
    )


def open_dims(inputs: Iterable[SizedInput]) -> dict[str, tuple[DimPlace, ...]]:
    """The open dimensions by name, with the places where they occur."""
    found: dict[str, tuple[DimPlace, ...]] = {}
    for value in inputs:
        for index, dim in enumerate(name_dims(value.name, value.shape)):
            if isinstance(dim, str):
                found[dim] = (*found.get(dim, ()), DimPlace(value.name, index, len(value.shape)))
    return found


def is_batch(name: str, places: Iterable[DimPlace]) -> bool:
    """Whether a dimension counts samples, so that 1 is a fair default.

    Its name says so, or it comes first of several and its name says nothing else. A letter such as `N` means the batch
    only in the first place: elsewhere it is as often the length of a signal.
    """
    places = tuple(places)
    word = name.casefold()
    if _says_batch(word):
        return "batch" in word or any(place.index == 0 for place in places)
    if _PLACE.fullmatch(name) is None and _LENGTH.search(word):
        return False
    return any(place.index == 0 and place.rank > 1 for place in places)


def _says_batch(name: str) -> bool:
    word = name.casefold()
    return "batch" in word or word in _BATCH_LETTERS


def shape_words(name: str, sizes: Sequence[int]) -> dict[str, int]:
    """A whole shape as sizes by place, with the number of dimensions under `NAME[]`."""
    return {**{f"{name}[{index}]": size for index, size in enumerate(sizes)}, f"{name}{_RANK}": len(sizes)}


def merge_sizes(dims: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Sizes of dimensions and whole shapes, by the words that `match_sizes` takes; raises for two sizes of one."""
    found = dict(dims)
    for name, shape in shapes.items():
        words = {name: shape[0]} if len(shape) == 1 else shape_words(name, shape)
        for word, size in words.items():
            if found.setdefault(word, size) != size:
                raise RequestError(f"`{word}` is given two sizes: {found[word]} and {size}")
    return found


def match_sizes(inputs: Sequence[SizedInput], dims: Mapping[str, int]) -> dict[str, int]:
    """Sizes by the names of open dimensions, from names and places that a user gave; raises for what does not fit."""
    opened = open_dims(inputs)
    shapes = {value.name: name_dims(value.name, value.shape) for value in inputs}
    found: dict[str, int] = {}
    for word, size in dims.items():
        if word not in opened and word.endswith(_RANK) and word.removesuffix(_RANK) in shapes:
            shape = shapes[word.removesuffix(_RANK)]
            if len(shape) != size:
                raise RequestError(
                    f"input `{word.removesuffix(_RANK)}` has {len(shape)} dimensions but got {size} sizes",
                    hint=f"it is [{', '.join(map(str, shape))}]",
                )
            continue
        name = word if word in opened else _at(word, size, shapes, opened)
        if name is not None and found.setdefault(name, size) != size:
            raise RequestError(f"dimension `{name}` is given two sizes: {found[name]} and {size}")
    return found


def _at(word: str, size: int, shapes: Mapping[str, Shape], opened: Iterable[str]) -> str | None:
    """The name of the dimension at a place; None when it has this size already."""
    match = _PLACE.fullmatch(word)
    name, index = (match["name"], int(match["index"])) if match else (word, 0)
    shape = shapes.get(name)
    if shape is None or (match is None and len(shape) != 1):
        known = [*opened, *shapes]
        raise RequestError(f"the model has no symbolic dimension `{word}`", hint=did_you_mean(word, known))
    if index >= len(shape):
        raise RequestError(f"input `{name}` has {len(shape)} dimensions, so there is no `{word}`")
    dim = shape[index]
    if isinstance(dim, str):
        return dim
    if dim != size:
        raise RequestError(f"`{word}` is fixed at {dim} in the model, so it cannot be {size}")
    return None


def with_batch(inputs: Sequence[SizedInput], dims: Mapping[str, int], batch_size: int | None) -> dict[str, int]:
    """The sizes with the batch size put where the model has its batch; a size given by name comes first."""
    if batch_size is None:
        return dict(dims)
    opened = open_dims(inputs)
    leading = [name_dims(value.name, value.shape)[0] if value.shape else 1 for value in inputs]
    symbols = {dim for dim in leading if isinstance(dim, str)}
    likely = {dim for dim in symbols if is_batch(dim, opened[dim])} or symbols
    named = {dim for dim in likely if _says_batch(dim)} or likely
    if not named:
        fixed = sorted({str(dim) for dim in leading})
        if fixed == [str(batch_size)]:
            return dict(dims)
        raise RequestError(
            f"the model's batch is fixed at {' and '.join(fixed)}, so it cannot be {batch_size}",
            hint="export the model with a dynamic batch axis",
        )
    return {**dict.fromkeys(named, batch_size), **dims}


def metadata_sizes(metadata: Mapping[str, str]) -> dict[str, int]:
    """The sizes that a model file says it was made for; anything else is ignored."""
    value = _read_metadata(metadata, "sizes")
    return {name: size for name, size in value.items() if type(size) is int and size >= 1}


def metadata_ranges(metadata: Mapping[str, str]) -> dict[str, tuple[int, int]]:
    """The least and greatest whole number that a model file says its inputs take."""
    value = _read_metadata(metadata, "ranges")
    return {
        name: (ends[0], ends[1])
        for name, ends in value.items()
        if isinstance(ends, list) and [type(end) for end in ends] == [int, int] and ends[0] <= ends[1]
    }


def metadata_placeholders(metadata: Mapping[str, str]) -> dict[str, Placeholders]:
    """The words that a model file says stand for what another input holds, and how many of them."""
    value = _read_metadata(metadata, "placeholders")
    return {
        name: Placeholders(pair[0], pair[1])
        for name, pair in value.items()
        if isinstance(pair, list) and [type(one) for one in pair] == [int, int]
        if 0 <= pair[0] <= _LARGEST and 1 <= pair[1] <= _LARGEST
    }


def _read_metadata(metadata: Mapping[str, str], part: str) -> dict[str, Any]:
    try:
        value = parse_json(metadata.get(INPUTS_KEY) or "{}")
    except ValueError:  # other tools write metadata too: what is no JSON is not ours
        return {}
    found = value.get(part) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def positions(config: Mapping[str, Any]) -> int | None:
    """The tokens that a model has positions for, by its config.json; None when that says none."""
    found, padding = config.get("max_position_embeddings"), config.get("pad_token_id")
    if type(found) is not int:
        return None
    if config.get("model_type") in SHIFTED_POSITIONS:
        found -= (padding if type(padding) is int else 1) + 1
    return found if found > 0 else None


def missing_size_error(names: Iterable[str]) -> RequestError:
    """The error for dimensions whose size is unknown."""
    missing = list(dict.fromkeys(names))
    listed = ", ".join(f"`{name}`" for name in missing)
    verb = "dimension {} has no size" if len(missing) == 1 else "dimensions {} have no size"
    words = " ".join(f"--dim {quote(name)}={example(name)}" for name in missing)
    return RequestError(
        f"{verb.format(listed)}: only batch dimensions default to 1",
        hint=f"set the size the model is used with, for example `{words}`, a whole shape with `--shape INPUT=N,N`, or "
        "pass real data",
    )


def example(name: str) -> int:
    """A size that a dimension of this name often has, to show how an option is written."""
    return next((size for pattern, size in _EXAMPLES if pattern.search(name.casefold())), 64)


def quote(name: str) -> str:
    """A name as a shell takes it."""
    return name if re.fullmatch(r"[\w.\[\]/:-]+", name) else shell_word(name)
