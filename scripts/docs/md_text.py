"""Markdown for generated pages: texts that keep their characters, tables, lists with anchors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`+[^`]+`+)")
_SPECIAL = re.compile(r"([\\*_<>\[\]|#])")


def escape(text: str) -> str:
    """Text that shows as it is written; what stands in backticks stays code."""
    parts = _CODE.split(text)
    return "".join(part if place % 2 else _SPECIAL.sub(r"\\\1", part) for place, part in enumerate(parts))


def code(text: str) -> str:
    """Text as code, also where it has backticks."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def cell(text: str) -> str:
    """Markdown for a cell of a table, which ends at a line break and at a bar."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell(one) for one in line)} |\n" for line in lines)


def fence(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def slug(text: str) -> str:
    """The anchor of a heading, on GitHub and on the site."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def definition(term: str, text: str, anchor: str) -> str:
    """A term as code with what it means; `anchor` is what links name."""
    return f'<a id="{anchor}"></a>{code(term)}\n:   {text}\n'


def page(*blocks: str) -> str:
    """A page of blocks, with an empty line between them."""
    return "\n\n".join(block.rstrip("\n") for block in blocks if block) + "\n"
