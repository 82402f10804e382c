"""Git repositories inside a contribution: any program that asks git about such a folder takes orders from them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"(?:\.git|git~[0-9]+)[ .]*(?::.*)?")
"""`.git`, and what Windows takes for the same name."""
_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""What macOS leaves out of names."""
_BARE = ({"head", "objects", "refs"}, {"head", "commondir"})
"""Names by which git takes a folder for a repository."""


def repositories_inside(folder: Path) -> Iterator[str]:
    """Paths below a folder that git would take for a repository, or for a way to one; links are not followed."""
    for place, folders, files in os.walk(folder, onerror=_fail):
        below = Path(place).relative_to(folder)
        names = {name: _plain(name) for name in (*folders, *files)}
        yield from ((below / name).as_posix() for name, plain in names.items() if _LINK.fullmatch(plain))
        if any(bare <= set(names.values()) for bare in _BARE):
            yield below.as_posix()


def _plain(name: str) -> str:
    return name.translate(_IGNORED).casefold()


def _fail(error: OSError) -> None:
    """A folder that cannot be listed may hold anything."""
    raise error
