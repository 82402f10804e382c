"""The model file that a command writes: checked before the work, put in place as a whole after it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import near_path
from winml.modelkit.store import atomic


def check(output: Path, model: Path, *, overwrite: bool) -> None:
    """Raise when the result cannot be written there."""
    if output.is_dir():
        raise RequestError(f"output `{output}` is a directory", hint="name a file")
    if not output.parent.is_dir():
        raise RequestError(
            f"output folder not found: `{output.parent}`",
            hint=near_path(output.parent, "create it or choose another one"),
        )
    if output.exists():
        if output.samefile(model):
            raise RequestError(f"output `{output}` is the model itself", hint="choose another name")
        if not overwrite:
            raise RequestError(f"output file exists: `{output}`", hint="add `--overwrite` to replace it")


@contextlib.contextmanager
def stage_output(output: Path, *, overwrite: bool) -> Iterator[Path]:
    """A path in a folder beside `output`; its files move there when the block succeeds and are removed when it fails.

    A worker may be ended at any moment, so it must not write where its leftovers would remain.
    """
    folder = atomic.temporary_name(output.parent)
    try:
        try:
            folder.mkdir()
            yield folder / output.name
            _move(folder, output, overwrite=overwrite)
        except OSError as error:
            raise atomic.write_error(error, output) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(folder: Path, output: Path, *, overwrite: bool) -> None:
    """Move the files of a model into place, the model itself last: it names the others."""
    files = sorted(folder.iterdir(), key=lambda file: file.name == output.name)
    for file in files:
        if not overwrite and (output.parent / file.name).exists():
            raise RequestError(
                f"output file exists: `{output.parent / file.name}`", hint="add `--overwrite` to replace it"
            )
    for file in files:
        atomic.replace(file, output.parent / file.name)
