"""Parts of a whole as areas, in groups: what a model with many operators spends its time on, at a glance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import SMALL, WIDE, Box, Canvas, is_narrow
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.text_size import shorten

_HEIGHT = 380.0
_HEAD = 19.0
"""Height of the name of a group."""
_SHORTEST = 0.75
"""Part of a name that is left of it where it is shortened; less of it says nothing."""


@dataclass(frozen=True)
class Tile:
    """A part."""

    label: str
    description: str
    value: float
    text: str
    role: str = "main"


@dataclass(frozen=True)
class TileGroup:
    """Parts that belong together."""

    label: str
    tiles: tuple[Tile, ...]

    @property
    def value(self) -> float:
        return sum(tile.value for tile in self.tiles)


def treemap_figure(groups: Sequence[TileGroup], title: str, width: float = WIDE, keys: Sequence[Key] = ()) -> str:
    """The picture; an empty text when there is nothing to divide."""
    groups = sorted((group for group in groups if group.value > 0), key=lambda group: -group.value)
    if not groups:
        return ""
    top = legend_height(keys, width)
    canvas = Canvas(width, top + _HEIGHT * (1.15 if is_narrow(width) else 1.0))
    draw_legend(canvas, keys, 0)
    whole = Box(0, top, width, canvas.height)
    for group, box in zip(groups, squarify([group.value for group in groups], whole), strict=True):
        _draw_group(canvas, group, _shrink(box, 2.0))
    return canvas.svg(title)


def squarify(values: Sequence[float], box: Box) -> list[Box]:
    """Boxes of areas in proportion to positive values, largest first, as square as they get.

    After Bruls, Huizing and van Wijk, Squarified Treemaps.
    """
    whole = sum(values)
    left, area = box, (box.right - box.left) * (box.bottom - box.top)
    areas = [value / whole * area for value in values]
    found: list[Box] = []
    while len(found) < len(areas):
        rest = areas[len(found) :]
        side = min(left.right - left.left, left.bottom - left.top)
        taken = 1
        while taken < len(rest) and _worst(rest[: taken + 1], side) <= _worst(rest[:taken], side):
            taken += 1
        row = rest[:taken]
        found += _row_boxes(row, left)
        left = _without_row(sum(row), left)
    return found


def _worst(row: Sequence[float], side: float) -> float:
    """The ratio of the sides of the least square box in a row along a side."""
    total = sum(row)
    if side <= 0 or total <= 0:
        return float("inf")
    return max(side * side * max(row) / (total * total), total * total / (side * side * min(row)))


def _row_boxes(row: Sequence[float], left: Box) -> Iterator[Box]:
    """A row along the shorter side."""
    wide, high = left.right - left.left, left.bottom - left.top
    depth = sum(row) / min(wide, high) if min(wide, high) > 0 else 0.0
    at = left.top if high <= wide else left.left
    for area in row:
        length = area / depth if depth else 0.0
        yield (
            Box(left.left, at, left.left + depth, at + length)
            if high <= wide
            else Box(at, left.top, at + length, left.top + depth)
        )
        at += length


def _without_row(total: float, left: Box) -> Box:
    wide, high = left.right - left.left, left.bottom - left.top
    depth = total / min(wide, high) if min(wide, high) > 0 else 0.0
    return (
        Box(left.left + depth, left.top, left.right, left.bottom)
        if high <= wide
        else Box(left.left, left.top + depth, left.right, left.bottom)
    )


def _shrink(box: Box, gap: float) -> Box:
    """A box with room around it; a box without an inside for one that is smaller than that."""
    x, y = (box.left + box.right) / 2, (box.top + box.bottom) / 2
    return Box(
        min(box.left + gap / 2, x), min(box.top + gap / 2, y), max(box.right - gap / 2, x), max(box.bottom - gap / 2, y)
    )


def _draw_group(canvas: Canvas, group: TileGroup, box: Box) -> None:
    wide, high = box.right - box.left, box.bottom - box.top
    head = _fitting(group.label, wide - 6)
    if head and high >= 2.2 * _HEAD:
        canvas.text(box.left + 3, box.top + SMALL + 1, head, class_="wk-note", size=SMALL)
        box = Box(box.left, box.top + _HEAD, box.right, box.bottom)
    tiles = sorted((tile for tile in group.tiles if tile.value > 0), key=lambda tile: -tile.value)
    for tile, inner in zip(tiles, squarify([tile.value for tile in tiles], box), strict=True):
        _draw_tile(canvas, tile, _shrink(inner, 1.5))


def _draw_tile(canvas: Canvas, tile: Tile, box: Box) -> None:
    wide, high = max(box.right - box.left, 0.5), max(box.bottom - box.top, 0.5)
    with canvas.mark(tile.description, class_=f"wk-mark wk-{tile.role}"):
        canvas.add("rect", x=box.left, y=box.top, width=wide, height=high, class_="wk-tint")
        texts = [text for text in (_fitting(tile.label, wide - 8), _fitting(tile.text, wide - 8, whole=True)) if text]
        with canvas.group("wk-on"):
            for number, text in enumerate(texts):
                if high >= (number + 1) * (SMALL + 4) + 3:
                    canvas.text(box.left + 4, box.top + SMALL + 1 + number * (SMALL + 4), text, size=SMALL)


def _fitting(text: str, room: float, *, whole: bool = False) -> str:
    """A text, shortened where that still says something; empty where it does not, or is wanted whole."""
    short = shorten(text, room, SMALL) if room > 0 else ""
    return short if short == text or (not whole and len(short) >= _SHORTEST * len(text)) else ""
