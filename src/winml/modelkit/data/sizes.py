"""Sizes for the dimensions that a model leaves open: from the user, the model, the files beside it, or its graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, ModelFileError, RunFailedError
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.core.target import Target
from winml.modelkit.data import image_config, processor
from winml.modelkit.graph import sizes as rules
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.signature import Signature, SignatureInput, read_signature
from winml.modelkit.graph.sizes import BATCH, DimPlace, Size
from winml.modelkit.worker.client import Worker

USUAL_TOKENS = 128
"""Tokens of a text where its model allows more and says no number."""
_MODEL_CONFIG = "config.json"
_HEIGHT = ("height", "h", "image_height")
_WIDTH = ("width", "w", "image_width")
_TOKENS = ("sequence", "sequence_length", "seq", "seq_len", "seq_length", "max_length")


@dataclass(frozen=True)
class KnownSizes:
    """The open dimensions of a model with what is known of them."""

    signature: Signature
    sizes: dict[str, Size]
    missing: tuple[str, ...]
    """Those whose size is unknown."""
    ranges: dict[str, tuple[int, int]]
    """Whole numbers that inputs take, as the model says."""
    placeholders: dict[str, Placeholders]
    """Words that stand for what another input holds, as the model says."""

    @property
    def dims(self) -> dict[str, int]:
        return {name: size.size for name, size in self.sizes.items()}

    def require(self) -> KnownSizes:
        """Itself when every dimension has a size."""
        if self.missing:
            raise rules.missing_size_error(self.missing)
        return self


Source = Callable[[], Mapping[str, Size]]
"""Says sizes by the names of dimensions; asked only when some are missing."""


def find(
    path: Path,
    dims: Mapping[str, int],
    *,
    batch_size: int | None = None,
    others: Mapping[str, Size] | None = None,
    worker: Worker | None = None,
) -> KnownSizes:
    """What is known of the open dimensions of the model in a file.

    `dims` are the sizes that the user gave, by name or place; `others` those of a model it is compared with. The graph
    is asked last, in a worker, since reading it costs more than all the rest.
    """
    signature = read_signature(path)
    sources: tuple[Source, ...] = (
        lambda: others or {},
        lambda: _beside(signature.inputs, path),
        lambda: _ask_graph(path, worker),
    )
    return find_in(signature, dims, batch_size=batch_size, sources=sources)


def find_in(
    signature: Signature, dims: Mapping[str, int], *, batch_size: int | None = None, sources: Sequence[Source] = ()
) -> KnownSizes:
    """What is known of the open dimensions of a signature: by its metadata, then by other sources in their order."""
    given = rules.with_batch(signature.inputs, rules.match_sizes(signature.inputs, dims), batch_size)
    opened = rules.open_dims(signature.inputs)
    found = {name: Size(size, "given", "as requested") for name, size in given.items()}
    for source in (lambda: _metadata(signature), *sources):
        missing = [name for name in opened if name not in found and not rules.is_batch(name, opened[name])]
        if missing:
            found |= {name: size for name, size in source().items() if name in missing}
    batches = {name: BATCH for name, places in opened.items() if name not in found and rules.is_batch(name, places)}
    found |= batches
    missing = [name for name in opened if name not in found]
    ordered = {name: found[name] for name in opened if name in found}
    whole = {value.name for value in signature.inputs if value.whole}
    ranges = {name: ends for name, ends in rules.metadata_ranges(signature.metadata).items() if name in whole}
    words = rules.metadata_placeholders(signature.metadata)
    return KnownSizes(
        signature, ordered, tuple(missing), ranges, {name: one for name, one in words.items() if name in whole}
    )


def complete(path: Path, inputs: InputSettings, others: Mapping[str, Size] | None = None) -> InputSettings:
    """The settings with a size for every open dimension of the model, and its source.

    A file whose inputs cannot be read here is left to the runtime, which reports what is wrong with it.
    """
    if inputs.npz is not None:
        return inputs
    try:
        known = find(path, inputs.dims, batch_size=inputs.batch_size, others=others).require()
    except ModelFileError:
        return inputs
    usual = {} if "" in inputs.int_ranges else known.ranges
    return replace(
        inputs,
        dims=known.dims,
        batch_size=None if known.sizes else inputs.batch_size,
        int_ranges={**usual, **inputs.int_ranges},
        sizes=known.sizes,
        placeholders=known.placeholders or None,
    )


def random_data(
    data: DataSection, path: Path, *, given: Mapping[str, int] | None = None, worker: Worker | None = None
) -> DataSection:
    """Random data with a size for every open dimension of the model; other data has its own.

    `given` are the sizes of the user, which come before those that the data has.
    """
    if data.source != RANDOM:
        return data
    try:
        known = find(path, _dims_of(data, read_signature(path), given or {}), worker=worker).require()
    except ModelFileError:
        return data
    return _set_sizes(data, known)


def random_data_in(data: DataSection, signature: Signature, given: Mapping[str, int]) -> DataSection:
    """The same for a model that is not a file yet."""
    if data.source != RANDOM:
        return data
    return _set_sizes(data, find_in(signature, _dims_of(data, signature, given)).require())


def _dims_of(data: DataSection, signature: Signature, given: Mapping[str, int]) -> dict[str, int]:
    asked = rules.match_sizes(signature.inputs, given)
    opened = rules.open_dims(signature.inputs)
    return {**{name: size for name, size in data.dims.items() if name in opened}, **asked}


def _set_sizes(data: DataSection, known: KnownSizes) -> DataSection:
    ranges = {name: (float(low), float(high)) for name, (low, high) in known.ranges.items()}
    placeholders = {**known.placeholders, **(data.placeholders or {})}
    return replace(data, dims=known.dims, ranges={**ranges, **data.ranges}, placeholders=placeholders or None)


def words(sizes: Mapping[str, Size]) -> str:
    """Sizes with where they come from: `height=224 (config.json: image_size)`."""
    return ", ".join(f"{name}={size.size} ({size.reason})" for name, size in sizes.items())


def openable(path: Path, target: Target, folder: Path) -> Path:
    """The file to open on a target: a copy with names where an NPU needs sizes for dimensions that have none."""
    if target.device != "npu":
        return path
    try:
        if not read_signature(path).unnamed:
            return path
    except ModelFileError:
        return path
    with Worker() as worker:
        args = {"path": str(path), "folder": str(folder)}
        return worker.ask(Path, "graph.name_dims", args, what=f"naming the dimensions of `{path.name}`")


def _metadata(signature: Signature) -> dict[str, Size]:
    return {
        name: Size(size, "metadata", "from the metadata of the model")
        for name, size in rules.metadata_sizes(signature.metadata).items()
    }


def _ask_graph(path: Path, worker: Worker | None) -> dict[str, Size]:
    """What the graph fixes; nothing for a graph that cannot be read, so that the missing size is reported."""
    if worker is None:
        with Worker(preload=("winml.modelkit.graph.implied",)) as own:
            return _ask_graph(path, own)
    try:
        return worker.ask(dict[str, Size], "graph.implied", {"path": path}, what=f"reading `{path.name}`")
    except (RunFailedError, ModelFileError):
        return {}


def _beside(inputs: Iterable[SignatureInput], path: Path) -> dict[str, Size]:
    """What the files of a Hugging Face model beside the ONNX file say of its images and texts."""
    found: dict[str, Size] = {}
    config = _read(processor.find(path.parent, _MODEL_CONFIG))
    for value in inputs:
        image, layout = _image_axes(value)
        if image:
            edges = _edges(path.parent, config)
            found |= {name: edges[edge] for edge, name in layout.items() if edge in edges}
        found |= _tokens(value, config)
    return found


def _read(path: Path | None) -> dict[str, Any]:
    try:
        return {} if path is None else processor.read_object(path)
    except DataError:
        return {}


def _image_axes(value: SignatureInput) -> tuple[bool, dict[str, str]]:
    """Whether an input is an image, and the names of its open axes: channels, height, width."""
    if len(value.shape) != 4:
        return False, {}
    last = value.shape[1] not in (1, 3) and value.shape[3] in (1, 3)
    names = ("height", "width", "channels") if last else ("channels", "height", "width")
    axes = dict(zip(names, value.shape[1:], strict=True))
    is_named = str(axes["height"]).casefold() in _HEIGHT and str(axes["width"]).casefold() in _WIDTH
    certain = axes["channels"] in (1, 3) or is_named
    return certain, {edge: name for edge, name in axes.items() if isinstance(name, str)} if certain else {}


def _edges(folder: Path, config: Mapping[str, Any]) -> dict[str, Size]:
    """Channels, height and width of the images that a processor makes, or that a config names."""
    found: dict[str, Size] = {}
    channels = config.get("num_channels")
    if type(channels) is int and channels > 0:
        found["channels"] = Size(channels, "config", f"{_MODEL_CONFIG}: num_channels")
    made = _processor_size(folder)
    named = config.get("image_size")
    edges = [named, named] if isinstance(named, int) else named
    if made is not None:
        reason = image_config.CONFIG
        found |= {"height": Size(made[0], "processor", reason), "width": Size(made[1], "processor", reason)}
    elif isinstance(edges, list) and [type(edge) for edge in edges] == [int, int] and min(edges) > 0:
        reason = f"{_MODEL_CONFIG}: image_size"
        found |= {"height": Size(edges[0], "config", reason), "width": Size(edges[1], "config", reason)}
    return found


def _processor_size(folder: Path) -> tuple[int, int] | None:
    """Height and width that every image has after the steps of the processor; None when they depend on the image."""
    path = processor.find(folder, image_config.CONFIG)
    try:
        steps = None if path is None else image_config.read_steps(path)
    except DataError:
        return None
    if steps is None:
        return None
    return steps.crop or (steps.resize if isinstance(steps.resize, tuple) else None)


def _tokens(value: SignatureInput, config: Mapping[str, Any]) -> dict[str, Size]:
    """The length of a text that a model with a limit for it is used with."""
    longest = rules.positions(config)
    if longest is None or not value.whole or len(value.shape) != 2:
        return {}
    name = value.shape[1]
    if not isinstance(name, str) or (name.casefold() not in _TOKENS and str(DimPlace(value.name, 1, 2)) != name):
        return {}
    reason = f"usual for texts; {_MODEL_CONFIG} allows {longest}"
    return {name: Size(min(USUAL_TOKENS, longest), "config", reason)}
