from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pictures import SVG, WIDTHS, check_picture, marks
from winml.modelkit.render.figures.slope import Slope, slope_figure


def _slope(label: str, before: float, after: float) -> Slope:
    role = "bad" if after > before else "good"
    return Slope(label, f"{label}: {before} to {after}", before, after, f"{before:g}", f"{after:g}", "▲ 2.00 ×", role)


def test_lines_go_from_the_value_before_to_the_one_after() -> None:
    picture = slope_figure([_slope("a", 10, 100), _slope("b", 50, 0)], "t")
    texts = check_picture(picture)
    assert {"a", "b", "10", "100", "50", "0", "before", "after"} <= set(texts)
    places = [float(one.attrib["cy"]) for one in ET.fromstring(picture).iter(f"{SVG}circle")]
    a_before, a_after, b_before, b_after = places
    unit = (b_after - a_after) / 100
    assert (b_after - a_before) / unit == pytest.approx(10, abs=0.5)
    assert (b_after - b_before) / unit == pytest.approx(50, abs=0.5)
    assert marks(picture) == ["a: 10 to 100", "b: 50 to 0"]


def test_on_a_phone_rows_have_lines_of_their_own() -> None:
    picture = slope_figure([_slope("a", 10, 100), _slope("b", 50, 0)], "t", 340)
    assert {"a", "10 → 100", "b", "50 → 0", "▲ 2.00 ×", "○ before", "● after"} <= set(check_picture(picture))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "slopes",
    [
        [_slope("same", 5, 5) for _ in range(12)],
        [_slope("nothing", 0, 0)],
        [_slope("n" * 300, 1e-9, 1e15), _slope("m" * 300, 123456789, 987654321)],
        [_slope(f"group {n}", 10 ** (n % 7), 10 ** (n % 5)) for n in range(30)],
    ],
)  # fmt: skip
def test_extreme_changes_stay_in_the_frame_and_labels_apart(slopes: list[Slope], width: float) -> None:
    check_picture(slope_figure(slopes, "t", width, ("b" * 300, "a" * 300)))


def test_no_change_is_no_picture() -> None:
    assert slope_figure([], "t") == ""
