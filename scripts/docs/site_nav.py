"""The navigation: what mkdocs.yml says, with patterns in the place of files that come and go."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence
from typing import Any

OPTIONAL = ("tutorial.md", "install.md", "concepts.md", "measurements.md")
"""Pages that have a place of their own when they are there."""


def expand(
    nav: Sequence[Any], pages: Collection[str], *, order: Sequence[str] = (), titles: dict[str, str] | None = None
) -> list[Any]:
    """The entries of `nav` with every pattern, such as `guides/*.md`, replaced by the pages it matches.

    A pattern matches no page that has a place of its own. Pages come by `order`, a list of names without folder and
    ending, then by title. A section without pages is left out, and so is a page of `OPTIONAL` that is missing.
    Pages get their titles here: mkdocs names a page that begins with a comment by its file.
    """
    named = {value for value in _values(nav) if "*" not in value}
    titles = titles or {}

    def rank(page: str) -> tuple[int, str]:
        name = page.rpartition("/")[2].removesuffix(".md")
        return (order.index(name) if name in order else len(order), titles.get(page, page).casefold())

    def matching(pattern: str) -> list[str]:
        depth = pattern.count("/")
        found = [p for p in pages if fnmatch.fnmatch(p, pattern) and p.count("/") == depth and p not in named]
        return sorted(found, key=rank)

    def one(entry: Any) -> list[Any]:
        if isinstance(entry, str):
            found = matching(entry) if "*" in entry else [entry]
            return [{titles[p]: p} if p in titles else p for p in found if p not in OPTIONAL or p in pages]
        (title, value), *_ = entry.items()
        if isinstance(value, str) and "*" not in value:
            return [{title: value} for _ in one(value)]
        inner = [made for item in (value if isinstance(value, list) else [value]) for made in one(item)]
        return [{title: inner}] if inner else []

    return [made for entry in nav for made in one(entry)]


def _values(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inner = entry.values() if isinstance(entry, dict) else entry
    return [value for item in inner for value in _values(item)]
