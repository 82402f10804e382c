from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pictures import SVG, WIDTHS, check_picture, marks
from winml.modelkit.render.figures.bars import Bar, bar_figure
from winml.modelkit.render.figures.legend import Key

KEYS = (Key("CPU", "main", "●"), Key("QNN", "violet", "■"))


def _lengths(picture: str) -> list[float]:
    return [float(one.attrib["width"]) for one in ET.fromstring(picture).iter(f"{SVG}rect")]


def test_bars_are_as_long_as_their_values_and_the_rest_has_none() -> None:
    bars = [
        Bar("a", "a: 80", 80.0, ("80 %", "80 %")),
        Bar("b", "b: 20", 20.0, ("20 %", "100 %")),
        Bar("zero", "zero: 0", 0.0, ("0 %", "100 %")),
        Bar("3 more", "3 more: 5", None, ("5 %", "")),
    ]
    for width in WIDTHS:
        picture = bar_figure(bars, "t", width, heads=("share", "together"), keys=KEYS)
        texts = check_picture(picture)
        first, second = _lengths(picture)
        assert first / second == pytest.approx(4, rel=0.02)
        assert {"a", "80 %", "3 more", "share", "together", "● CPU", "■ QNN"} <= set(texts)
        assert marks(picture) == ["a: 80", "b: 20", "zero: 0", "3 more: 5"]


def test_a_value_above_zero_is_seen_however_small_it_is() -> None:
    bars = [Bar("a", "a", 1.0, ("",)), Bar("b", "b", 1e-9, ("",))]
    assert _lengths(bar_figure(bars, "t"))[1] > 1


@pytest.mark.parametrize(
    "bars",
    [
        [Bar("x" * 300, "x", 1.0, ("100.0 %", "100.0 %"), "y" * 300, "main", "■")],
        [Bar(f"row {n}", "r", float(n), (f"{n:,} ms",), "d", faint=n % 2 == 0) for n in range(60)],
        [Bar("unknown", "u", None, ("unknown",))],
        [Bar("all zero", "z", 0.0, ("0", "0", "0"))],
    ],
)
@pytest.mark.parametrize("width", WIDTHS)
def test_extreme_rows_stay_in_the_frame(bars: list[Bar], width: float) -> None:
    check_picture(bar_figure(bars, "t", width, heads=("a", "b"), keys=[*KEYS, *KEYS, *KEYS, *KEYS]))


def test_no_rows_are_no_picture() -> None:
    assert bar_figure([], "t") == ""
