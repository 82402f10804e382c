"""Entities in rows of tags, by the rules of CoNLL's script: IOB and IOBES, and forgiving where tags do not fit."""

from __future__ import annotations

from collections.abc import Sequence

OUTSIDE = "O"
_FIRST, _LAST = frozenset("BSU"), frozenset("ESUL")
"""Prefixes that begin an entity, and those that end one; U and L are what others call S and E."""
PREFIXES = _FIRST | _LAST | {"I"}

Entity = tuple[str, int, int]
"""Kind, first word, last word."""


def has_prefix(tag: str) -> bool:
    return len(tag) > 2 and tag[1] == "-" and tag[0] in PREFIXES


def entities(tags: Sequence[str]) -> set[Entity]:
    """The entities of a text. `I-x` that follows nothing of its kind begins one."""
    found: set[Entity] = set()
    before, kind, start = OUTSIDE, "", 0
    for place, tag in enumerate((*tags, OUTSIDE)):
        prefix, named = (tag[0], tag[2:]) if has_prefix(tag) else (OUTSIDE, "")
        goes_on = prefix not in (OUTSIDE, *_FIRST) and named == kind and before not in (OUTSIDE, *_LAST)
        if not goes_on:
            if before != OUTSIDE:
                found.add((kind, start, place - 1))
            start = place
        before, kind = prefix, named
    return found
