"""Tables aligned by spaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.render.screen import Screen, columns_of, made_for
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


REASON = "the library is there but the device driver of this machine is older than the library needs"
WIDE = [
    ("target", "status", "took", "from", "why"),
    ("qnn/npu", "missing", "1.2 s", "onnxruntime-qnn 2.6.0", REASON),
    ("cpu", "ready", "0.1 s", "onnxruntime 1.31.1", ""),
]


def _on(width: int | None, rows: Sequence[Sequence[str]] = WIDE, **how: Any) -> list[str]:
    with made_for(Screen(width)):
        return table(rows, **how).split("\n")


def test_without_a_terminal_nothing_is_broken_and_nothing_is_dropped() -> None:
    assert _on(None, head=True, drop=(2, 3), below=4) == table(WIDE).split("\n")
    assert _on(200, head=True, drop=(2, 3), below=4) == table(WIDE).split("\n")


def test_a_reason_goes_under_its_row_before_a_column_is_dropped() -> None:
    assert _on(60, head=True, drop=(2, 3), below=4) == [
        "target   status   took   from",
        "qnn/npu  missing  1.2 s  onnxruntime-qnn 2.6.0",
        "  the library is there but the device driver of this machine",
        "  is older than the library needs",
        "cpu      ready    0.1 s  onnxruntime 1.31.1",
    ]


def test_the_least_important_columns_are_dropped_first_and_a_line_says_so() -> None:
    assert _on(45, head=True, drop=(2, 3), below=4) == [
        "target   status   from",
        "qnn/npu  missing  onnxruntime-qnn 2.6.0",
        "  the library is there but the device driver",
        "  of this machine is older than the library",
        "  needs",
        "cpu      ready    onnxruntime 1.31.1",
        "not shown: took (a wider terminal or --json",
        "shows it)",
    ]


def test_a_dropped_column_without_content_is_not_mentioned() -> None:
    rows = [("name", "detail"), ("a" * 38, ""), ("b", "")]
    assert _on(40, rows, head=True, drop=(1,)) == ["name", "a" * 38, "b"]


def test_cells_are_broken_between_words_when_nothing_can_be_dropped() -> None:
    assert _on(40, [("fix", "run the passes again"), ("why", REASON)]) == [
        "fix  run the passes again",
        "why  the library is there but the device",
        "     driver of this machine is older",
        "     than the library needs",
    ]


def test_a_row_whose_words_are_too_wide_has_a_line_per_cell_and_the_others_stay() -> None:
    rows = [("opset", "17"), ("file", "/home/user/models/resnet/model.onnx"), ("digest", "b" * 18), ("size", "1 B")]
    assert _on(24, rows) == [
        "opset  17",
        "file",
        "  /home/user/models/",
        "  resnet/model.onnx",
        "digest",
        "  " + "b" * 18,
        "size   1 B",
    ]


def test_a_line_per_cell_has_the_name_of_its_column() -> None:
    rows = [("model", "digest", "size"), ("a" * 14, "b" * 14, "1 B")]
    assert _on(20, rows, head=True) == ["a" * 14, "  digest:", "  " + "b" * 14, "  size: 1 B"]


LONG = st.text("abcü…·/ 日", min_size=0, max_size=40)


@settings(deadline=None)
@given(
    st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[LONG] * n), min_size=1, max_size=4)),
    st.integers(12, 60),
    st.booleans(),
    st.booleans(),
)
def test_no_line_is_wider_than_the_screen_and_no_text_is_lost(
    rows: list[tuple[str, ...]], width: int, head: bool, decorated: bool
) -> None:
    with made_for(Screen(width, decorated)):
        text = table(rows, indent="  ", head=head, below=len(rows[0]) - 1 if len(rows[0]) > 1 else None)
    assert max(map(columns_of, text.split("\n"))) <= width
    said = Counter("".join(text.split()))
    for row in rows[head:]:
        assert not Counter("".join("".join(row).split())) - said
