"""Lines broken between words."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from winml.modelkit.render.screen import END, STYLES, Screen, columns_of, made_for
from winml.modelkit.render.wrap import fit, words, wrap, wrap_line


def test_the_lines_that_follow_are_indented_further() -> None:
    line = "  hazard cpu-101: the model has operators that this runtime runs slowly"
    assert wrap_line(line, 40) == [
        "  hazard cpu-101: the model has",
        "    operators that this runtime runs",
        "    slowly",
    ]


def test_a_line_that_fits_is_unchanged() -> None:
    assert wrap_line("  p90  9.02 ms     p99  11.4 ms", 40) == ["  p90  9.02 ms     p99  11.4 ms"]


def test_a_number_stays_with_its_unit_and_a_dot_ends_a_line() -> None:
    assert words("conv 12 % · 8.41 ms (95 %)") == ["conv", "12 % ·", "8.41 ms", "(95 %)"]
    assert wrap("it took 8.41 ms", 11) == ["it took", "8.41 ms"]


def test_a_word_is_cut_only_when_it_is_wider_than_the_line() -> None:
    assert wrap("a bbbbbbbbbbbb c", 8) == ["a", "bbbbbbbb", "bbbb c"]


def test_a_path_is_cut_after_its_separators() -> None:
    assert wrap("in /home/user/models/model.onnx", 18) == ["in", "/home/user/models/", "model.onnx"]
    assert wrap(r"in C:\users\models\model.onnx", 16) == ["in", "C:\\users\\models\\", "model.onnx"]


def test_a_style_ends_at_the_end_of_a_line_and_starts_again() -> None:
    good = STYLES["good"]
    assert wrap(f"{good}kept and confirmed{END} now", 9) == [
        f"{good}kept and{END}",
        f"{good}confirmed{END}",
        "now",
    ]


def test_wide_characters_count_twice_and_accents_not_at_all() -> None:
    assert columns_of("日本") == 4
    assert columns_of("e\u0301") == 1
    assert wrap("日本 日本", 5) == ["日本", "日本"]


def test_without_a_terminal_lines_have_no_limit() -> None:
    line = "word " * 100
    assert fit(line) == line
    with made_for(Screen(20)):
        assert max(map(len, fit(line).split("\n"))) <= 20


@settings(deadline=None)
@given(st.text("abc/ ·5%…日", max_size=80), st.integers(8, 40))
def test_no_line_is_too_wide_and_every_word_is_there(text: str, width: int) -> None:
    lines = wrap_line(text, width)
    assert max(map(columns_of, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())
