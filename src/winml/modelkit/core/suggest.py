"""The nearest known name for a misspelt one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

_LONGEST = 200
"""No name is longer, and comparing takes time by the length."""
_MOST_FILES = 2000
"""How many names of a folder are compared at most."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` probably means, or None when nothing is near."""
    import difflib  # only needed on the way to an error

    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name[:_LONGEST].casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def near_names(name: str, known: Iterable[str], count: int = 3) -> str | None:
    """A hint with the few known names nearest to `name`; None when nothing is near."""
    import difflib

    folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name[:_LONGEST].casefold(), sorted(folded), n=count, cutoff=0.5)
    if not close:
        return None
    return f"did you mean {' or '.join(f'`{folded[c]}`' for c in close)}?"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known name and lists the rest."""
    names = sorted(known)
    near = nearest(name, names)
    listed = ", ".join(f"`{n}`" for n in names) or "none"
    return f"did you mean `{near}`? known: {listed}" if near else f"known: {listed}"


def near_path(path: str | os.PathLike[str], otherwise: str | None = None) -> str | None:
    """A hint with the existing path that a missing one probably means; `otherwise` when nothing is near."""
    missing = Path(path)
    try:
        if missing.exists():
            return otherwise
        # The first part that does not exist is the one that may be misspelt.
        for folder in reversed(missing.parents):
            if folder.is_dir():
                continue
            near = _near_file(folder)
            meant = None if near is None else near / missing.relative_to(folder)
            return f"did you mean `{meant}`?" if meant is not None and meant.exists() else otherwise
        near = _near_file(missing)
    except (OSError, ValueError):  # not readable, or no name that the system takes
        return otherwise
    return otherwise if near is None else f"did you mean `{near}`?"


def _near_file(missing: Path) -> Path | None:
    """The name in the same folder that is nearest; endings count less, because most files of a folder share one."""
    with os.scandir(missing.parent) as found:
        names = [entry.name for entry in islice(found, _MOST_FILES)]
    stem = nearest(missing.stem, [Path(name).stem for name in names])
    if stem is None:
        return None
    alike = [name for name in names if Path(name).stem.casefold() == stem.casefold()]
    return missing.with_name(nearest(missing.name, alike) or alike[0])
