"""The file behind `-o`: never overwritten by accident, never half written, also written when the work fails."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from winml.modelkit.cli.console import error_json, say, say_report
from winml.modelkit.core.errors import ModelkitError, RequestError
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import to_json
from winml.modelkit.store import atomic


def _has_samples(error: ModelkitError) -> bool:
    """Whether a failed command has measured something worth keeping."""
    if error.result is not None:
        return bool(getattr(error.result, "has_samples", True))
    details = error.details
    rounds = details.get("unfinished_rounds") or details.get("measurement", {}).get("rounds")
    return bool(rounds or details.get("candidates") or details.get("samples"))


class ResultFile:
    """A JSON file to write at the end; that it can be written is checked before the work starts."""

    def __init__(self, path: str | None, *, overwrite: bool, as_json: bool = False) -> None:
        self._as_json = as_json
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        if self._path.is_dir():
            raise RequestError(f"output `{path}` is a directory", hint="name a file")
        if self._path.exists() and not overwrite:
            raise RequestError(f"output file exists: `{path}`", hint="add `--overwrite` to replace it")
        if not self._path.parent.is_dir():
            raise RequestError(f"output folder not found: `{self._path.parent}`", hint=near_path(self._path.parent))

    def write(self, value: object) -> None:
        """Write the file whole, or not at all."""
        self.write_page(json.dumps(to_json(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def write_page(self, text: str) -> None:
        """Write a result that is not JSON."""
        if self._path is not None:
            atomic.write_bytes(self._path.absolute(), text.encode())

    def say_wrote(self) -> None:
        """Name the file for people."""
        if self._path is not None and not self._as_json:
            say("wrote", str(self._path))

    def say_report(self) -> None:
        """The command that shows the file as a page."""
        if self._path is not None and not self._as_json:
            say_report(str(self._path))

    @contextlib.contextmanager
    def keeping(self, command: str, show: Callable[[Any], None] | None = None) -> Iterator[None]:
        """Write what a failing command measured so far before its error is raised again; `show` prints it."""
        try:
            yield
        except ModelkitError as error:
            measured = _has_samples(error)
            if measured:
                self.write(error_json(command, error))
            if measured and show is not None and not self._as_json:
                show(error.details if error.result is None else error.result)
            if measured and self._path is not None:
                say("note", f"the measurements so far are in {self._path}")
            raise
