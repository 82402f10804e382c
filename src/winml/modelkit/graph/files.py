"""ONNX files on disk: the only place that reads or writes them.

`onnx.load` and `onnx.save` are not used. The first refuses data files that are symbolic links (the Hugging Face cache)
or have a second hard link (a content-addressed store). The second appends to an existing data file, and leaves half
a file behind when it is interrupted.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import onnx
from google.protobuf.message import DecodeError, EncodeError  # type: ignore[import-untyped]  # ships no types
from onnx import GraphProto, ModelProto, TensorProto

from winml.modelkit.core import patience
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError, ModelkitError, RequestError, UnavailableError, is_full, of_system
from winml.modelkit.core.file_names import too_long
from winml.modelkit.core.inside import stays_inside
from winml.modelkit.core.suggest import near_path
from winml.modelkit.graph import walk
from winml.modelkit.graph.tensors import byte_count, content, is_external

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import BinaryIO

    from onnx import FunctionProto, NodeProto, ValueInfoProto

ExternalData = Literal["auto", "always", "never"]

PROTOBUF_LIMIT_BYTES = 2**31 - 1
EMBED_LIMIT_BYTES = 2_000_000_000
"""Past this size `save` writes external data; the margin to `PROTOBUF_LIMIT_BYTES` is for tools that add to a model."""

EXTERNAL_MIN_BYTES = 1024
"""Smaller tensors stay in the model file: shapes and axes are read there by shape inference."""
EXTERNAL_MIN_LIST_BYTES = 64 * 1024
"""The same for lists of int64: sizes of a Split with 128 outputs have 1024 bytes, and the runtime needs them there."""

STREAMED_BYTES = 16 * 2**20
"""From here on weights that nothing changes go from file to file: they are neither in memory nor embedded."""

PAGE_BYTES = 4096
MAP_BYTES = 64 * 1024
"""Windows maps a file only at multiples of 64 KiB, other systems at pages."""

_COPIED_BYTES = 2**20
_LARGE_BYTES = 2**20
"""From here on a tensor is aligned to `MAP_BYTES`; for smaller ones the gaps would cost more than mapping gains."""

_FOREIGN = (
    (0, b"version https://git-lfs", "a Git LFS pointer", "fetch the model itself with `git lfs pull`"),
    (0, b"PK\x03\x04", "a zip archive, as PyTorch writes", "export it to ONNX first"),
    (4, b"ORTM", "in ORT format", "use the ONNX file that it was made from"),
    (0, b"<!DOCTYPE", "a web page", "download the model again"),
    (0, b"<html", "a web page", "download the model again"),
)
"""What people pass instead of an ONNX file: position, first bytes, name, what to do."""


def load(path: str | os.PathLike[str], *, weights: bool = True) -> ModelProto:
    """The model in `path`; with `weights=False` external data is checked but not read."""
    path = Path(path)
    model = _parse(_read(path), path)
    _check_versions(model, path)
    _check_text(model, path)
    extents = _external_extents(model, path)
    if weights:
        _read_extents(extents)
    return model


def read_weights(model: ModelProto, path: str | os.PathLike[str], *, besides: Collection[str] = ()) -> None:
    """Read the data that `load(path, weights=False)` left in files; tensors that `besides` names stay there."""
    extents = _external_extents(model, Path(path))
    _read_extents([extent for extent in extents if extent.tensor.name not in besides])


def external_files(path: str | os.PathLike[str], model: ModelProto | None = None) -> tuple[Path, ...]:
    """The files that belong to the model file `path`: external data, and EPContext binaries that exist.

    `model` saves parsing again; it must come from `load(path, weights=False)`.
    """
    path = Path(path)
    model = load(path, weights=False) if model is None else model
    files = {extent.file for extent in _external_extents(model, path)}
    return tuple(sorted(files.union(context_files(path, model))))


def context_files(path: str | os.PathLike[str], model: ModelProto) -> tuple[Path, ...]:
    """The binaries beside the model file `path` that its EPContext nodes name, if they exist."""
    found = {Path(path).parent / name for node in walk.nodes(model) for name in context_names(node)}
    return tuple(sorted(file for file in found if file.is_file()))


def context_names(node: NodeProto) -> Iterator[str]:
    """The binary that an EPContext node names; nothing for another node, or one that holds its data itself."""
    if node.op_type == "EPContext" and walk.attribute_value(node, "embed_mode", 1) == 0:
        name = str(walk.attribute_value(node, "ep_cache_context", ""))
        if name and stays_inside(name):
            yield name


def read_external(tensor: TensorProto, path: str | os.PathLike[str]) -> bytes:
    """The bytes of one tensor of the model file `path` whose data is in another file."""
    extent = _extent(tensor, Path(path))
    with _os_errors(extent.file, "read"), extent.file.open("rb") as file:
        file.seek(extent.offset)
        return file.read(extent.length)


def save(
    model: ModelProto,
    path: str | os.PathLike[str],
    *,
    external_data: ExternalData = "auto",
    overwrite: bool = False,
    source: str | os.PathLike[str] | None = None,
) -> tuple[Path, ...]:
    """Write the model, all files or none, and return them; equal models give equal bytes.

    External data goes to one file, `<name>.data`. An older `<name>.data` stays when the model needs none: another
    model may use it. What the model has in files beside the model file `source` is copied from there bit by bit, and
    the result then has external data as well, unless it is small.
    """
    path = Path(path)
    data = path.with_name(f"{path.name}.data")
    with _os_errors(path, "written"):
        _check_target(path, overwrite=overwrite)
        if source is not None and any(map(is_external, walk.tensors(model))):
            is_large = sum(map(byte_count, walk.tensors(model))) >= STREAMED_BYTES
            # Tensors inside nodes are read: ONNX Runtime does not take their data through a hard link.
            read_weights(model, source, besides={t.name for t in model.graph.initializer} if is_large else ())
            external_data = "always" if is_large else external_data
        layout = _layout(model, data.name, external_data, None if source is None else Path(source))
        writers: list[tuple[Path, Callable[[BinaryIO], None]]] = [(path, layout.write_model)]
        if layout.placed:
            _check_target(data, overwrite=overwrite)
            writers.insert(0, (data, layout.write_data))
        _write_all(writers)
    return tuple(target for target, _ in reversed(writers))


# --- reading


def _read(path: Path) -> bytes:
    with _os_errors(path, "read"):
        if path.is_dir():
            raise ModelFileError(f"`{path}` is a folder, not a model file", hint=_neighbours_hint(path))
    with _os_errors(path, "read"), path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > PROTOBUF_LIMIT_BYTES:
            raise ModelFileError(
                f"model file `{path}` has {size:,} bytes; an ONNX file is limited to {PROTOBUF_LIMIT_BYTES:,}",
                hint="save the model with its weights as external data",
            )
        return file.read()


def _parse(data: bytes, path: Path) -> ModelProto:
    if not data:
        raise ModelFileError(f"model file `{path}` is empty", hint="export or download the model again")
    try:
        model: ModelProto = ModelProto.FromString(data)
    except DecodeError as error:
        raise _not_a_model(data, path) from error
    for field, there in (
        ("IR version", model.ir_version > 0),
        ("graph", model.HasField("graph")),
        ("opset import", len(model.opset_import) > 0),
    ):
        if not there:
            raise ModelFileError(
                f"`{path}` is not an ONNX model: it has no {field}",
                hint="it is another kind of file or is truncated; export or download the model again",
            )
    return model


def _not_a_model(data: bytes, path: Path) -> ModelFileError:
    for position, start, name, hint in _FOREIGN:
        if data.startswith(start, position):
            return ModelFileError(f"`{path}` is not an ONNX model but {name}", hint=hint)
    end = _end_of_fields(data)
    if end is None:
        return ModelFileError(f"`{path}` is not an ONNX model", hint="export the model to ONNX, or name another file")
    damage = f"truncated after {len(data):,} bytes" if end > len(data) else "damaged"
    return ModelFileError(f"model file `{path}` is {damage}", hint="export, copy or download it again")


def _end_of_fields(data: bytes) -> int | None:
    """Where the fields of a model end, which may be past the end of `data`; None when it starts with others."""
    known = {field.number: 0 if field.cpp_type == field.CPPTYPE_INT64 else 2 for field in ModelProto.DESCRIPTOR.fields}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        if position <= len(data) and known.get(tag >> 3) != tag & 7:
            return None
        value, position = _varint(data, position)
        if tag & 7 == 2:
            position += value
    return position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """A protobuf integer and the position after it, which is past the end when the integer is cut off."""
    value = shift = 0
    while position < len(data):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        shift += 7
        position += 1
        if byte < 0x80:
            return value, position
    return value, len(data) + 1


def _check_versions(model: ModelProto, path: Path) -> None:
    if model.ir_version > onnx.IR_VERSION:
        raise ModelFileError(
            f"model file `{path}` has IR version {model.ir_version}; onnx {onnx.__version__} reads up to "
            f"{onnx.IR_VERSION}",
            hint="update with `pip install -U onnx`, or export the model with an older IR version",
        )
    newest = onnx.defs.onnx_opset_version()
    for entry in model.opset_import:
        if walk.domain_of(entry.domain) == "" and entry.version > newest:
            raise ModelFileError(
                f"model file `{path}` needs opset {entry.version}; onnx {onnx.__version__} knows up to {newest}",
                hint="update with `pip install -U onnx`, or export the model with an older opset",
            )


def _check_text(model: ModelProto, path: Path) -> None:
    # protobuf hands text that is not UTF-8 out as bytes, or raises, when it is read and not when it is parsed
    try:
        damaged = not all(isinstance(text, str) for text in _names(model))
    except UnicodeDecodeError:
        damaged = True
    if damaged:
        raise ModelFileError(
            f"model file `{path}` has names that are not UTF-8 text", hint="export or download the model again"
        )


def _names(model: ModelProto) -> Iterator[object]:
    yield from (model.producer_name, model.producer_version)
    yield from (entry.domain for entry in model.opset_import)
    for graph in walk.graphs(model):
        yield from _value_names(graph)
        for node in graph.node:
            yield from (node.op_type, node.domain, *node.input, *node.output)
            yield from (attribute.name for attribute in node.attribute)
    for tensor in walk.tensors(model):
        yield tensor.name
        for entry in tensor.external_data:
            yield from (entry.key, entry.value)


def _value_names(graph: GraphProto | FunctionProto) -> Iterator[object]:
    if not isinstance(graph, GraphProto):
        yield from (graph.domain, *graph.input, *graph.output, *graph.attribute)
        yield from (entry.domain for entry in graph.opset_import)
        return
    values: Iterable[ValueInfoProto] = (*graph.input, *graph.output, *graph.value_info)
    for value in values:
        yield value.name
        yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)


# --- external data


@dataclass(frozen=True)
class _Extent:
    """Where the data of one tensor is."""

    tensor: TensorProto
    file: Path
    offset: int
    length: int


def _external_extents(model: ModelProto, path: Path) -> list[_Extent]:
    """Where the data of every external tensor is, after checking that it is all there."""
    extents = [_extent(tensor, path) for tensor in walk.tensors(model) if is_external(tensor)]
    sizes: dict[Path, int] = {}
    for extent in extents:
        if extent.file not in sizes:
            sizes[extent.file] = _data_file_size(extent, path)
        if extent.offset + extent.length > sizes[extent.file]:
            raise ModelFileError(
                f"external data file `{extent.file}` has {sizes[extent.file]:,} bytes; tensor "
                f"`{extent.tensor.name}` needs it to reach {extent.offset + extent.length:,}",
                hint="the file is truncated or belongs to another model; copy or download it again",
            )
    return extents


def _extent(tensor: TensorProto, path: Path) -> _Extent:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if not location or not stays_inside(location):
        raise ModelFileError(
            f"tensor `{tensor.name}` of `{path}` has its data in `{location}`, which is not a path inside the "
            "model's folder",
            hint="put the data file beside the model and save the model again",
        )
    try:
        offset, length = int(entries.get("offset") or 0), int(entries.get("length") or byte_count(tensor))
    except ValueError:
        offset = length = -1
    if offset < 0 or length < 0:
        raise ModelFileError(
            f"tensor `{tensor.name}` of `{path}` has offset `{entries.get('offset')}` and length "
            f"`{entries.get('length')}` for its external data; both must be whole numbers from 0",
            hint="export the model again",
        )
    return _Extent(tensor, path.parent / location, offset, length)


def _data_file_size(extent: _Extent, path: Path) -> int:
    with _os_errors(extent.file, "read"):
        if not extent.file.exists():
            raise ModelFileError(
                f"external data file `{extent.file}` of `{path}` does not exist; tensor `{extent.tensor.name}` "
                "needs it",
                hint="copy or download it into the model's folder; its name must stay as it is",
            )
        if not extent.file.is_file() or not _really_inside(extent.file, path):
            raise ModelFileError(
                f"external data `{extent.file}` of `{path}` is not a file in the model's folder",
                hint="put the data file itself beside the model, not a link to another folder",
            )
        return extent.file.stat().st_size


def _really_inside(file: Path, path: Path) -> bool:
    """Whether links keep the data file beside the model, by its name or by the file it links to.

    ONNX Runtime has the same rule: in the Hugging Face cache both files are links into one `blobs` folder.
    """
    real = file.resolve()
    return real.is_relative_to(path.parent.resolve()) or real.is_relative_to(path.resolve().parent)


def _read_extents(extents: list[_Extent]) -> None:
    by_file: dict[Path, list[_Extent]] = {}
    for extent in extents:
        by_file.setdefault(extent.file, []).append(extent)
    for path, wanted in by_file.items():
        with _os_errors(path, "read"), path.open("rb") as file:
            for extent in sorted(wanted, key=lambda extent: extent.offset):
                file.seek(extent.offset)
                extent.tensor.raw_data = file.read(extent.length)
                extent.tensor.ClearField("data_location")
                extent.tensor.ClearField("external_data")


# --- writing


@dataclass(frozen=True)
class _Layout:
    """The bytes of the model file and where tensors are placed in the data file."""

    model: bytes
    placed: tuple[tuple[TensorProto, int], ...] = ()
    source: Path | None = None
    """The model file beside which the data of external tensors is."""

    def write_model(self, file: BinaryIO) -> None:
        file.write(self.model)

    def write_data(self, file: BinaryIO) -> None:
        for tensor, offset in self.placed:
            file.write(bytes(offset - file.tell()))
            if self.source is not None and is_external(tensor):
                _copy_extent(_extent(tensor, self.source), file)
            else:
                file.write(content(tensor))


def _copy_extent(extent: _Extent, target: BinaryIO) -> None:
    left = extent.length
    with extent.file.open("rb") as file:
        file.seek(extent.offset)
        while left:
            chunk = file.read(min(left, _COPIED_BYTES))
            if not chunk:
                raise ModelFileError(
                    f"external data file `{extent.file}` ended while tensor `{extent.tensor.name}` was copied",
                    hint="another program changed it; run it again",
                )
            left -= len(chunk)
            target.write(chunk)


def _layout(model: ModelProto, data_name: str, external_data: ExternalData, source: Path | None) -> _Layout:
    if source is None and any(is_external(tensor) for tensor in walk.tensors(model)):
        raise RequestError(
            "the model has external data that was not loaded, so it cannot be saved",
            hint="load it with its weights",
        )
    if external_data != "always":
        embedded = _serialize(model)
        if embedded is not None:
            return _Layout(embedded)
    if external_data == "never":
        raise RequestError(
            f"the model does not fit into one file of {EMBED_LIMIT_BYTES:,} bytes",
            hint="save it with external data",
        )
    # ONNX Runtime reads external data inside nodes too, but not through a hard link: only when it must be
    for nested in (False, True):
        layout = _external_layout(model, data_name, nested=nested)
        if layout is not None:
            return replace(layout, source=source)
    raise RequestError(
        f"the graph alone, without weights, does not fit into {EMBED_LIMIT_BYTES:,} bytes",
        hint="split the model",
    )


def _serialize(model: ModelProto) -> bytes | None:
    """The bytes of the model file, or None when they pass the limit."""
    embedded = (byte_count(tensor) for tensor in walk.tensors(model) if not is_external(tensor))
    if sum(embedded) > EMBED_LIMIT_BYTES:
        return None
    try:
        data: bytes = model.SerializeToString(deterministic=True)
    except EncodeError:  # past 2 GB; the typed fields of a tensor may need more bytes than its shape says
        return None
    return data if len(data) <= EMBED_LIMIT_BYTES else None


def _external_layout(model: ModelProto, data_name: str, *, nested: bool) -> _Layout | None:
    placed: list[tuple[TensorProto, int]] = []
    end = 0

    def place(source: TensorProto, target: TensorProto, inside: bool) -> None:
        nonlocal end
        size = byte_count(source)
        is_list = source.data_type == TensorProto.INT64 and len(source.dims) <= 1
        least = EXTERNAL_MIN_LIST_BYTES if is_list else EXTERNAL_MIN_BYTES
        is_inner = size < least or source.data_type == TensorProto.STRING or (inside and not nested)
        if is_inner and not is_external(source):
            target.CopyFrom(source)
            return
        step = MAP_BYTES if size >= _LARGE_BYTES else PAGE_BYTES
        offset = -(-end // step) * step
        placed.append((source, offset))
        end = offset + size
        _refer(source, target, {"location": data_name, "offset": offset, "length": size})

    structure = walk.copy_model(model, place)
    data = _serialize(structure)
    return None if data is None else _Layout(data, tuple(placed))


def _refer(source: TensorProto, target: TensorProto, entries: dict[str, str | int]) -> None:
    target.dims.extend(source.dims)
    target.metadata_props.extend(source.metadata_props)
    for field in ("data_type", "name", "doc_string"):
        if source.HasField(field):
            setattr(target, field, getattr(source, field))
    target.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        target.external_data.add(key=key, value=str(value))


def _check_target(path: Path, *, overwrite: bool) -> None:
    if not path.parent.is_dir():
        raise RequestError(f"folder `{path.parent}` does not exist", hint="create it or choose another one")
    if path.is_dir():
        raise RequestError(
            f"`{path}` is a folder; the model needs a file name", hint=f"for example `{path / 'model.onnx'}`"
        )
    if not overwrite and os.path.lexists(path):
        raise RequestError(f"`{path}` exists", hint="choose another name or allow overwriting (`--overwrite`)")


def _write_all(writers: list[tuple[Path, Callable[[BinaryIO], None]]]) -> None:
    """Write under temporary names first, so that an interruption or a full disk changes nothing."""
    with ExitStack() as cleanup:
        moves: list[tuple[Path, Path]] = []
        for target, write in writers:
            temporary = _temporary(target)
            cleanup.callback(patience.discard, temporary)
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            moves.append((temporary, target))
        _move_all(moves)
    _sync_folder(writers[-1][0].parent)


def _move_all(moves: list[tuple[Path, Path]]) -> None:
    """Move files into place in order; when one cannot be moved, those before it are as they were."""
    undo: list[tuple[Path, Path | None]] = []
    try:
        for temporary, target in moves[:-1]:
            undo.append((target, _set_aside(target)))
            patience.replace(temporary, target)
        temporary, target = moves[-1]
        patience.replace(temporary, target)
    except BaseException:
        for target, old in undo:
            target.unlink(missing_ok=True) if old is None else patience.replace(old, target)
        raise
    for _, old in undo:
        if old is not None:
            patience.discard(old)


def _set_aside(target: Path) -> Path | None:
    if not os.path.lexists(target):
        return None
    old = _temporary(target)
    patience.replace(target, old)
    return old


def save_with_data(model: ModelProto, data: Path, path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write a model whose weights are all in the file `data`, which becomes `<name>.data`: they are never in memory."""
    path = Path(path)
    moved = path.with_name(f"{path.name}.data")
    for tensor in walk.tensors(model):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = moved.name
    with _os_errors(path, "written"):
        _check_target(path, overwrite=False)
        _check_target(moved, overwrite=False)
        _move_all([(data, moved)])
        _write_all([(path, _Layout(model.SerializeToString(deterministic=True)).write_model)])
    return path, moved


def _temporary(target: Path) -> Path:
    return target.with_name(f".winml-{secrets.token_hex(8)}.tmp")


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there; the file system orders its own changes
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- errors of the system


@contextmanager
def _os_errors(path: Path, action: Literal["read", "written"]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _refusal(error, path, action) from error


def _refusal(error: OSError, path: Path, action: Literal["read", "written"]) -> ModelkitError:
    translated = of_system(error, path, writing=action == "written")
    if translated is not None and (is_full(error) or too_long(path)):
        return translated
    if action == "read" and error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
        return ModelFileError(
            f"model file `{path}` does not exist", hint=near_path(path, _neighbours_hint(path.parent))
        )
    if isinstance(error, PermissionError):
        return UnavailableError(
            f"`{path}` cannot be {action}: permission denied",
            hint="change the permissions, or close the program that has the file open",
        )
    return UnavailableError(
        f"`{path}` cannot be {action}: {error.strerror or error}", hint="check the disk and the path"
    )


def _neighbours_hint(folder: Path) -> str:
    """A hint with the models of a folder, if it can be listed."""
    try:
        names = sorted(file.name for file in folder.iterdir() if file.suffix == ".onnx")
    except OSError:  # only a hint: a folder that cannot be listed has none to name
        names = []
    listed = ", ".join(f"`{name}`" for name in names[:5])
    return f"the folder `{folder}` has {listed}" if listed else "check the path of the model file"
