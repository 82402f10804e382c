"""The models of a matrix: from the lines of a list to names that are unique in folders and feeds."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path

from winml.modelkit.core.build_folder import MODEL, source_name
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.location import expand
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.feed import names

KEYS = ("task", "priority", "name", "calibration")
EARLIER = {"data": "calibration"}
"""Keys of an earlier release, and what they are written as now."""


@dataclass(frozen=True)
class MatrixModel:
    """A model to build; not read yet."""

    source: str
    """A path, or an id of a hub."""
    name: str
    """The name it is published under."""
    task: str | None = None
    priority: str | None = None
    data: str | None = None
    """Calibration data of its own."""

    @property
    def slug(self) -> str:
        return names.slug(self.name, self.task)

    @cached_property
    def folder(self) -> str:
        """Its folder below the output folder; also its package, unless all share one."""
        return names.package(self.name, self.task)

    @property
    def is_exported(self) -> bool:
        """Whether it is not ONNX yet, so that its task decides how it is exported."""
        path = Path(self.source)
        return not path.is_file() and not (path / MODEL).is_file()


def make_model(source: str, base: Path, *, where: str = "", **about: str | None) -> MatrixModel:
    """The model of a path relative to `base` if that exists, otherwise of a hub id."""
    path = expand(Path(base, source))
    data = about.pop("calibration", None)
    name = about.pop("name", None)
    try:
        exists = path.exists()
    except OSError as error:  # not a valid name on this system
        raise RequestError(f"{where}`{path.name:.80}` is not a valid file name: {error.strerror}") from error
    if exists:
        model = MatrixModel(str(path), name or _file_name(path, source), **about)
    elif _is_path(source):
        raise RequestError(f"{where}model not found: `{source}`", hint=near_path(path))
    else:
        model = MatrixModel(source, name or source, **about)
    if data is None:
        return model
    samples = expand(Path(base, data))
    if not samples.exists():
        raise RequestError(f"{where}calibration data not found: `{data}`", hint=near_path(samples))
    return MatrixModel(model.source, model.name, model.task, model.priority, str(samples))


def _is_path(word: str) -> bool:
    """Whether a name that does not exist can only be a path; `org/name/file.onnx` may be a file of a hub."""
    return word.startswith((".", "/", "~")) or (word.endswith(".onnx") and word.count("/") < 2) or "\\" in word


def _file_name(path: Path, word: str) -> str:
    """The name of a model: from the source of its build, from its file, or from its folder if that was given too."""
    folder = path if path.is_dir() else path.parent
    if path.is_dir() or path.name == MODEL:
        try:
            built_from = source_name(folder)
        except ValueError as error:
            raise RequestError(str(error), hint="name the model in the list: `name=NAME`") from error
        if built_from is not None:
            return built_from
    named_folder = Path(word).parent.name
    return named_folder if path.stem == "model" and named_folder not in ("", ".", "..") else path.stem


def parse_list(
    text: str, base: Path, *, source: str, on_note: Callable[[str], None] = lambda _: None
) -> list[MatrixModel]:
    """The models of a list: `MODEL [task=T] [priority=P0] [name=N] [calibration=FILE]` per line, `#` starts a comment.

    A key of an earlier release is reported once.
    """
    found = []
    earlier: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        where = f"`{source}` line {number}: "
        words = _words(line, where)
        if words:
            about = _about(words[1:], where, earlier)
            found.append(make_model(words[0], base, where=where, **about))
    for key in sorted(earlier):
        on_note(f"`{source}`: the key `{key}=` is now written `{EARLIER[key]}=`; the next release drops the old form")
    if not found:
        raise RequestError(f"`{source}` lists no models", hint="write one per line: `MODEL [task=T] [priority=P0]`")
    return found


def _words(line: str, where: str) -> list[str]:
    """The words of a line; quotes keep spaces, backslashes are kept for Windows paths."""
    reader = shlex.shlex(line, posix=True)
    reader.whitespace_split, reader.escape = True, ""
    try:
        return list(reader)
    except ValueError as error:
        raise RequestError(f"{where}{str(error).lower()}", hint="a quote is missing") from error


def _about(words: Iterable[str], where: str, earlier: set[str]) -> dict[str, str | None]:
    """What a line says about its model; keys of an earlier release are added to `earlier`."""
    about: dict[str, str | None] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise RequestError(f"{where}expected KEY=VALUE but got `{word}`", hint=f"keys: {', '.join(KEYS)}")
        if key in EARLIER:
            earlier.add(key)
            key = EARLIER[key]
        if key not in KEYS:
            raise RequestError(f"{where}unknown key `{key}`", hint=did_you_mean(key, KEYS))
        if key in about:
            raise RequestError(f"{where}`{key}` is given twice")
        about[key] = value
    return about


def of_priority(models: list[MatrixModel], priority: str | None) -> list[MatrixModel]:
    """The models of a priority, ignoring case; raises with the known priorities when there are none."""
    if priority is None:
        return models
    chosen = [m for m in models if (m.priority or "").casefold() == priority.casefold()]
    if not chosen:
        known = sorted({m.priority for m in models if m.priority})
        raise RequestError(
            f"no model has the priority `{priority}`", hint=f"priorities in the list: {', '.join(known) or 'none'}"
        )
    return chosen


def check_models(models: list[MatrixModel]) -> tuple[MatrixModel, ...]:
    """Return the models; raises when there are none, one is listed twice, or two would get the same name."""
    if not models:
        raise RequestError("no models", hint="name some with `--models FILE`, `--model M` or `--sample`")
    seen: dict[tuple[str, str | None], MatrixModel] = {}
    slugs: dict[str, MatrixModel] = {}
    for model in models:
        if (model.source, model.task) in seen:
            raise RequestError(f"model `{model.source}` is listed twice", hint="remove one of them")
        seen[model.source, model.task] = model
        other = slugs.setdefault(model.folder, model)
        if other is not model:
            raise RequestError(
                f"`{other.source}` and `{model.source}` would both be called `{model.folder}`",
                hint="give one of them another name in the list: `name=NAME`",
            )
    return tuple(models)
