"""Tables aligned by spaces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.render.table import table


def test_columns_are_aligned_by_two_spaces_and_lines_end_with_their_last_word() -> None:
    rows = [("target", "status", ""), ("cpu", "ready", "because"), ("qnn/npu", "missing", "")]
    assert table(rows) == (
        "target   status\n"
        "cpu      ready    because\n"
        "qnn/npu  missing"
    )  # fmt: skip


def test_columns_of_numbers_can_be_aligned_to_the_right() -> None:
    assert table([("Conv", "8"), ("Relu", "1024")], right=frozenset({1})) == (
        "Conv     8\n"
        "Relu  1024"
    )  # fmt: skip


def test_every_line_is_indented() -> None:
    assert table([("a", "b"), ("c", "d")], indent="  ") == "  a  b\n  c  d"


def test_no_rows_are_no_text() -> None:
    assert table([]) == ""


def test_rows_of_unequal_length_are_a_bug() -> None:
    with pytest.raises(ValueError):
        table([("a", "b"), ("c",)])


WORD = st.text("abcxyzü…·`/ ", min_size=1, max_size=8).filter(lambda word: word == word.strip())


@settings(deadline=None)
@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[WORD] * width), min_size=1, max_size=5)))
def test_every_cell_starts_where_the_others_of_its_column_start(rows: list[tuple[str, ...]]) -> None:
    lines = table(rows).split("\n")
    assert len(lines) == len(rows)
    start = 0
    for column in zip(*rows, strict=True):
        assert [line[start:].startswith(cell) for line, cell in zip(lines, column, strict=True)] == [True] * len(rows)
        start += max(map(len, column)) + 2
