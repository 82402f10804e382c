from __future__ import annotations

import random
import xml.etree.ElementTree as ET

import pytest

from pictures import SVG, WIDTHS, check_picture, marks
from winml.modelkit.render.figures.canvas import Box
from winml.modelkit.render.figures.treemap import Tile, TileGroup, squarify, treemap_figure


def _area(box: Box) -> float:
    return (box.right - box.left) * (box.bottom - box.top)


def _tile(label: str, value: float) -> Tile:
    return Tile(label, f"{label}: {value}", value, f"{value:.1f} %")


@pytest.mark.parametrize("values", [[1.0], [6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0], [1000.0, *[0.001] * 50]])
def test_areas_are_shares_and_fill_the_frame_without_overlap(values: list[float]) -> None:
    frame = Box(0, 0, 600, 400)
    boxes = squarify(values, frame)
    whole = sum(values)
    assert [_area(box) / _area(frame) for box in boxes] == pytest.approx([value / whole for value in values], abs=1e-9)
    assert all(box.inside(600.001, 400.001) for box in boxes)
    inner = [Box(b.left + 1e-6, b.top + 1e-6, b.right - 1e-6, b.bottom - 1e-6) for b in boxes]
    assert not any(one.meets(other) for n, one in enumerate(inner) for other in inner[n + 1 :])


def test_boxes_are_nearly_square() -> None:
    sides = [(box.right - box.left, box.bottom - box.top) for box in squarify([1.0] * 16, Box(0, 0, 600, 400))]
    assert max(max(a / b, b / a) for a, b in sides) < 2.1


def test_labels_stand_only_where_they_fit() -> None:
    groups = [
        TileGroup("layer.0", (_tile("MatMul", 70.0), _tile("Softmax", 0.01))),
        TileGroup("head", (_tile("Gemm", 30.0),)),
    ]
    picture = treemap_figure(groups, "t")
    texts = check_picture(picture)
    assert {"layer.0", "head", "MatMul", "70.0 %", "Gemm"} <= set(texts)
    assert "Softmax" not in texts
    assert set(marks(picture)) == {"MatMul: 70.0", "Softmax: 0.01", "Gemm: 30.0"}


@pytest.mark.parametrize("width", WIDTHS)
def test_many_tiles_of_any_size_and_name_stay_in_the_frame(width: float) -> None:
    chance = random.Random(3)
    groups = []
    for number in range(15):
        tiles = [_tile("y" * chance.randrange(1, 300), chance.lognormvariate(0, 3)) for _ in range(20)]
        groups.append(TileGroup(f"scope {number} {'x' * chance.randrange(200)}", tuple(tiles)))
    picture = treemap_figure(groups, "t", width)
    check_picture(picture)
    assert len(list(ET.fromstring(picture).iter(f"{SVG}rect"))) == 300


def test_nothing_to_divide_is_no_picture() -> None:
    assert treemap_figure([], "t") == treemap_figure([TileGroup("a", (_tile("b", 0.0),))], "t") == ""
