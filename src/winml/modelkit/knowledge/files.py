"""Knowledge files: JSON read strictly, so that an error names the file and the field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from winml.modelkit.core import values
from winml.modelkit.core.errors import DataError, RequestError, UnavailableError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.location import knowledge_root
from winml.modelkit.core.suggest import near_path

T = TypeVar("T")


def read(path: Path, make: Callable[[Any], T]) -> T:
    """The value in a file; a DataError names the path and the first invalid field."""
    try:
        value = read_json(path)
    except FileNotFoundError as error:
        raise DataError(f"file not found: `{path}`", hint=near_path(path)) from error
    except OSError as error:
        raise UnavailableError(f"`{path}` cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DataError(f"`{path}` is not JSON: {error}") from error
    try:
        return make(value)
    except RequestError as error:
        raise DataError(f"`{path}`: {error.message}", hint=error.hint) from error


def load(path: Path, form: type[T]) -> T:
    """The value of a class in a file."""
    return read(path, lambda value: values.read(form, value))


def knowledge_folder(given: str | None) -> Path:
    """Where the user's knowledge is written; it need not exist yet."""
    folder = knowledge_root() if given is None else Path(given).absolute()
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"`{folder}` is not a folder", hint=near_path(folder))
    return folder


def json_files(folder: Path) -> Iterator[Path]:
    """The JSON files of a folder by name; a missing folder has none."""
    return iter(sorted(folder.glob("*.json"))) if folder.is_dir() else iter(())


_NUMBERS = re.compile(r"\[\s+(-?\d[-+.\deE,\s]*?)\s+\]")


def text(value: object) -> bytes:
    """A value formatted for these files: indented, with lists of numbers on one line."""
    indented = json.dumps(values.to_json(value), indent=2, ensure_ascii=False, allow_nan=False)
    return (_NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", indented) + "\n").encode()
