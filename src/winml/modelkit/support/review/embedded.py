"""Git repositories inside a contribution: git run in such a folder executes their configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_LINK = re.compile(r"(?:\.git|git~[0-9]+)[ .]*(?::.*)?")
"""`.git`, and names that Windows treats as the same."""
_IGNORED = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""Characters that macOS ignores in names."""
_BARE = ({"head", "objects", "refs"}, {"head", "commondir"})
"""Names by which git recognizes a folder as a repository."""


def repositories_inside(folder: Path) -> Iterator[str]:
    """Paths below a folder that git would treat as a repository, or as a link to one; links are not followed."""
    for place, folders, files in os.walk(folder, onerror=_fail):
        below = Path(place).relative_to(folder)
        names = {name: _plain(name) for name in (*folders, *files)}
        yield from ((below / name).as_posix() for name, plain in names.items() if _LINK.fullmatch(plain))
        if any(bare <= set(names.values()) for bare in _BARE):
            yield below.as_posix()


def _plain(name: str) -> str:
    return name.translate(_IGNORED).casefold()


def _fail(error: OSError) -> None:
    """Raise: a folder that cannot be listed may contain anything."""
    raise error
