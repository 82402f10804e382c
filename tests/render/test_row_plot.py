"""Plots with a row for each thing that was measured."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from winml.modelkit.render.row_plot import WIDTH, Bar, bars, dots


def _places(picture: str) -> list[int]:
    """Where dots are drawn, from left to right as they were given."""
    return [int(x) for x in re.findall(r"M(\d+) \d+h0", picture)]


def test_every_value_is_a_dot_inside_the_picture_and_larger_ones_lie_further_right() -> None:
    picture = dots([("first", [1.0, 2.0, 3.0]), ("second", [2.0])], "ms")
    ET.fromstring(picture)
    first, middle, last, again = _places(picture)
    assert 0 < first < middle < last < WIDTH
    assert again == middle


def test_the_slowest_runs_are_counted_and_do_not_squeeze_all_others() -> None:
    picture = dots([("one", [1.0 + i / 1000 for i in range(99)] + [50.0])], "ms")
    assert len(_places(picture)) == 99
    assert "1 of 100 runs took longer than 1.1" in picture
    assert max(_places(picture)) - min(_places(picture)) > WIDTH / 2


def test_nothing_measured_is_a_sentence() -> None:
    assert dots([], "ms") == "<p>nothing was measured</p>"
    assert bars([], "%") == "<p>no candidate has an interval</p>"


def test_an_interval_is_drawn_from_end_to_end_and_zero_is_part_of_the_axis() -> None:
    picture = bars([Bar("a", 10.0, 20.0, 30.0, marked=True), Bar("b", -5.0, -2.0, 1.0)], "time saved, %")
    ET.fromstring(picture)
    (a_low, a_high), (b_low, b_high) = (
        (int(low), int(high))
        for low, high in re.findall(r"M(\d+) [\d.]+H(\d+)\" stroke=\"#\w+\" stroke-width", picture)
    )
    zero = int(re.search(r"M(\d+) 4V", picture)[1])  # type: ignore[index]
    assert b_low < zero < b_high < a_low < a_high


def test_labels_are_no_markup_and_long_ones_keep_their_end() -> None:
    picture = bars([Bar("<script>" + "x" * 40 + "/model.onnx", 0.0, 1.0, 2.0)], "%")
    assert "<script" not in picture
    assert "/model.onnx</text>" in picture


def _numbers(picture: str) -> list[str]:
    return re.findall(r'text-anchor="middle">([-\d.]+)<', picture)


def test_the_axis_has_round_numbers() -> None:
    assert _numbers(bars([Bar("a", 44.4, 44.8, 45.2)], "%")) == ["0", "10", "20", "30", "40"]
    assert _numbers(dots([("a", [0.011, 0.019])], "ms")) == ["0.012", "0.014", "0.016", "0.018"]
    assert _numbers(dots([("a", [7.0])], "ms")) == ["6.8", "7", "7.2"]
