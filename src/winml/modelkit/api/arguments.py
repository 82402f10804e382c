"""What Python callers give, as commands take it; each raises an error that names the argument."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from winml.modelkit.core.errors import RequestError

if TYPE_CHECKING:
    import numpy.typing as npt
    from onnx import ModelProto

    from winml.modelkit.ep.trust import Trust

    PathLike: TypeAlias = str | os.PathLike[str]
    ModelLike: TypeAlias = PathLike | ModelProto
    """A path, a build folder, a Hugging Face model (`ORG/NAME`, or its folder), or a model in memory."""
    Arrays: TypeAlias = Mapping[str, npt.ArrayLike]
    DataLike: TypeAlias = PathLike | Arrays | Sequence[Arrays]
    """A file or folder, `random`, arrays whose first dimension counts samples, or one mapping per sample."""
    Dims: TypeAlias = Mapping[str, int]
    Shapes: TypeAlias = Mapping[str, Sequence[int]]
    EPOptions: TypeAlias = Mapping[str, str | int]
    Words: TypeAlias = str | Sequence[str]
    """One word or several."""


def is_proto(given: object) -> bool:
    """Whether something is an `onnx.ModelProto`; onnx is not imported for that."""
    onnx = sys.modules.get("onnx")
    return onnx is not None and isinstance(given, onnx.ModelProto)


def write_proto(model: Any, path: Path) -> Path:
    """Write a model in memory to a new file, and return it."""
    from winml.modelkit.graph import files, walk

    if any(tensor.data_location == tensor.EXTERNAL for tensor in walk.tensors(model)):
        raise RequestError(
            "the model in memory names files that hold its weights, and not where they are",
            hint="give the path of the model, or read it with its data: `onnx.load(path)`",
        )
    files.save(model, path)
    return path


def path_of(given: object, name: str) -> str:
    """A path or id as text."""
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str) or not given:
        kind = "is empty" if given == "" else f"must be a path but is of type `{type(given).__name__}`"
        raise RequestError(f"`{name}` {kind}")
    return given


def sizes_of(dims: Dims | None, shapes: Shapes | None) -> dict[str, int]:
    """Sizes of dynamic dimensions by name or position."""
    from winml.modelkit.graph.sizes import merge_sizes

    at_least(1, **dict(dims or {}))
    for name, shape in (shapes or {}).items():
        at_least(1, **{f"{name}[{place}]": size for place, size in enumerate(shape)})
    return merge_sizes(dims or {}, {name: tuple(shape) for name, shape in (shapes or {}).items()})


def options_of(ep_options: EPOptions | None) -> dict[str, str]:
    """Options of an execution provider as texts."""
    return {name: str(value) for name, value in (ep_options or {}).items()}


def trust_of(names: Iterable[str]) -> Trust:
    """What `trust_options` lets documents set."""
    from winml.modelkit.ep.trust import Trust

    return Trust(frozenset([names] if isinstance(names, str) else names))


def words_of(given: Words | None) -> tuple[str, ...]:
    """One word or several."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)


def at_least(limit: float, /, **numbers: float | None) -> None:
    """Raise for the first number that is below a limit."""
    for name, number in numbers.items():
        if number is not None and number < limit:
            raise RequestError(f"`{name}` must be at least {limit:g} but got {number:g}")


def more_than_zero(**numbers: float | None) -> None:
    """Raise for the first number that is not greater than 0."""
    for name, number in numbers.items():
        if number is not None and not number > 0:
            raise RequestError(f"`{name}` must be greater than 0 but got {number:g}")


def needs(given: object, name: str, /, **options: object) -> None:
    """Raise for the first option that is given without the argument it is about."""
    for option, value in options.items():
        if given is None and value is not None:
            raise RequestError(f"`{option}` needs `{name}`")


def one_of(known: Iterable[str], /, **words: str | None) -> None:
    """Raise for the first word that is not known."""
    from winml.modelkit.core.suggest import did_you_mean

    known = tuple(known)
    for name, word in words.items():
        if word is not None and word not in known:
            raise RequestError(f"`{name}` cannot be `{word}`", hint=did_you_mean(word, known))


def text_of(path: PathLike | None) -> str | None:
    """A path that may be missing as text."""
    return None if path is None else os.fspath(path)


def check_output(output: PathLike | None) -> str | None:
    """The path of an output, raised before any work when it cannot be written to."""
    if output is None:
        return None
    from winml.modelkit.store import atomic

    atomic.check_place(Path(output))
    return os.fspath(output)


def require_output(output: PathLike) -> str:
    """The path of an output that has to be given."""
    checked = check_output(path_of(output, "output"))
    assert checked is not None
    return checked


def require_new_file(output: PathLike, *, overwrite: bool) -> Path:
    """The path of a file to write, raised before any work when it cannot be written or would replace one."""
    place = Path(require_output(output)).absolute()
    if place.is_dir():
        raise RequestError(f"output `{output}` is a directory", hint="name a file")
    if place.exists() and not overwrite:
        raise RequestError(f"output file exists: `{output}`", hint="`overwrite=True` replaces it")
    return place
