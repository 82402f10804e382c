"""Python packages of an environment, read off the names of their metadata folders; nothing is imported.

importlib.metadata costs more than opening a small model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True)
class Distribution:
    """An installed package: its normalised name, its version, and the folder that holds its modules."""

    name: str
    version: str
    folder: str


def normalise_name(name: str) -> str:
    """A name as package indexes compare it: `Foo.Bar_baz` is `foo-bar-baz`."""
    return name.replace("_", "-").replace(".", "-").lower()


def _distributions_in(folder: str) -> Iterator[Distribution]:
    try:
        entries = sorted(os.listdir(folder or "."))  # noqa: PTH208 - names are enough
    except OSError:
        return  # a zip file, or a folder of the path that does not exist
    for entry in entries:
        stem, dot, kind = entry.rpartition(".")
        if dot and kind == "dist-info":
            name, _, version = stem.partition("-")
            yield Distribution(normalise_name(name), version, folder)


def list_distributions(path: Iterable[str]) -> tuple[Distribution, ...]:
    """Every distribution in the folders of a module path, those that are imported first first."""
    return tuple(found for folder in dict.fromkeys(path) for found in _distributions_in(folder))
