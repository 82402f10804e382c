"""The nearest known name for a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 200
"""No name is longer, and comparing takes time by the length."""


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
