"""Where rows of a table come from: what every kind of file answers, and fields within columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

Row = dict[str, Any]

DEEPEST = 16
"""How deep a field may lie in a column."""


class Table(Protocol):
    """Rows in an order, read one at a time."""

    @property
    def names(self) -> list[str]:
        """The columns, and the fields in them as `column.field`."""
        ...

    @property
    def count(self) -> int: ...

    def rows(self, columns: Collection[str] | None, indices: Sequence[int] | None) -> Iterator[tuple[int, Row]]:
        """Rows with their numbers: all, or those with these ascending ones; of files by columns, only those columns."""
        ...

    def holds_files(self, column: str) -> bool:
        """Whether the values of a column are files themselves, and not the names of some."""
        ...


def name_fields(row: Mapping[str, Any]) -> list[str]:
    """The columns of a row, each with the fields in it after it."""
    return list(_name_fields(row, "", DEEPEST))


def _name_fields(row: Mapping[str, Any], before: str, deeper: int) -> Iterator[str]:
    for name, value in row.items():
        yield f"{before}{name}"
        if isinstance(value, Mapping) and deeper:
            yield from _name_fields(value, f"{before}{name}.", deeper - 1)


def add_fields(row: Row, wanted: Collection[str]) -> Row:
    """The row with the wanted fields of its columns beside them."""
    for name in wanted:
        if "." in name and name not in row:
            row[name] = _field(row, name)
    return row


def _field(row: Mapping[str, Any], name: str) -> Any:
    """What lies at `column.field` of a row; None where nothing does. A column may have a dot in its own name."""
    if name in row:
        return row[name]
    for place, letter in enumerate(name):
        inside = row.get(name[:place]) if letter == "." else None
        if isinstance(inside, Mapping) and (found := _field(inside, name[place + 1 :])) is not None:
            return found
    return None
