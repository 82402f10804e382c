from __future__ import annotations

import xml.etree.ElementTree as ET

from winml.modelkit.render.pareto_plot import HEIGHT, WIDTH, Point, scatter

POINTS = [
    Point(0.0, 0.99, "h0", "baseline", front=True, marked=False),
    Point(53.0, 0.98, "h1", "a <b> & c", front=True, marked=True),
    Point(10.0, 0.90, "h2", "worse", front=False, marked=False),
]


def test_every_point_lies_inside_and_the_picture_is_well_formed() -> None:
    picture = ET.fromstring(scatter(POINTS, "time saved, %", "accuracy"))
    circles = picture.findall("circle")
    assert len(circles) == 3
    for circle in circles:
        assert 0 < float(circle.attrib["cx"]) < WIDTH
        assert 0 < float(circle.attrib["cy"]) < HEIGHT
    assert "a <b> & c" in (circles[1].findtext("title") or "")


def test_the_line_joins_the_front() -> None:
    picture = ET.fromstring(scatter(POINTS, "x", "y"))
    line = picture.find("polyline")
    assert line is not None
    assert len(line.attrib["points"].split()) == 2


def test_a_single_point_has_room_around_it() -> None:
    picture = ET.fromstring(scatter(POINTS[:1], "x", "y"))
    assert picture.find("circle") is not None


def test_no_point_is_said() -> None:
    assert "no trial" in scatter([], "x", "y")
