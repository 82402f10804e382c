"""Where compiled models go: their names, and the order in which files appear."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from winml.modelkit.core.errors import RequestError
from winml.modelkit.store import atomic
from winml.modelkit.store.objects import Objects
from winml.modelkit.worker.client import Worker


def output_names(models: Sequence[Path]) -> tuple[list[str], list[str]]:
    """`NAME_ctx.onnx` per model, with a number where a name is taken, and a warning for each such case."""
    natural = {f"{model.stem}_ctx.onnx".casefold() for model in models}
    taken: set[str] = set()
    names, warnings = [], []
    for model in models:
        name, number = f"{model.stem}_ctx.onnx", 0
        while name.casefold() in taken or (number and name.casefold() in natural):
            number += 1
            name = f"{model.stem}_{number}_ctx.onnx"
        if number:
            warnings.append(f"`{model}` becomes `{name}`: another model has the same name")
        taken.add(name.casefold())
        names.append(name)
    return names, warnings


def check_free(folder: Path, names: Collection[str], *, overwrite: bool) -> None:
    """Raise when a file exists that may not or cannot be replaced."""
    for name in sorted(names):
        path = folder / name
        if path.is_dir():
            raise RequestError(f"output `{path}` is a directory", hint="name another file")
        if path.exists() and not overwrite:
            raise RequestError(f"output file exists: `{path}`", hint="add `--overwrite` to replace it")


def check_unused(folder: Path, files: Collection[str], *, wrappers: Collection[str]) -> None:
    """Raise when a binary that is about to be replaced belongs to a model that is not."""
    replaced = [name for name in files if name not in wrappers and (folder / name).exists()]
    if not replaced:
        return
    with Worker() as worker:
        args = {"folder": str(folder), "binaries": replaced}
        users = worker.ask(dict[str, list[str]], "compile.users", args, what=f"reading `{folder}`")
    for binary, models in users.items():
        for model in models:
            if model not in wrappers:
                raise RequestError(
                    f"`{folder / model}` uses `{binary}`, which would be replaced", hint="choose another folder"
                )


def deliver(
    objects: Objects, files: Mapping[str, str], *, wrappers: Collection[str], folder: Path, overwrite: bool
) -> None:
    """Make the files appear: what models refer to first, so that no model is ever there without its binary."""
    check_free(folder, files, overwrite=overwrite)
    check_unused(folder, files, wrappers=wrappers)
    try:
        for name in wrappers:
            atomic.remove(folder / name)  # it refers to the binary that is about to be replaced
    except OSError as error:
        raise atomic.write_error(error, folder) from error
    for name in sorted(files, key=lambda n: (n in wrappers, n)):
        objects.link_out(files[name], folder / name)
    atomic.sync_folder(folder)
