"""A picture that is being drawn: SVG elements, and the boxes of its texts, so that labels find a free place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.plain_text import html as escape
from winml.modelkit.render.figures.scale import Scale, tick_labels
from winml.modelkit.render.figures.text_size import shorten, text_width

Anchor = Literal["start", "middle", "end"]
FONT = 13.0
"""Size of labels in pixels at the natural width."""
SMALL = 12.0

WIDE = 760.0
"""Width of a picture on a screen, in its own pixels."""
HALF = 520.0
"""Of one of two pictures side by side."""
NARROW = 340.0
"""On a phone: labels have a line of their own there."""


def is_narrow(width: float) -> bool:
    """Whether labels beside a picture would leave no room for it."""
    return width < 480


@dataclass(frozen=True)
class Box:
    """A rectangle that is taken."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether two boxes share a pixel."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def inside(self, width: float, height: float) -> bool:
        """Whether it lies in a picture."""
        return self.left >= 0 and self.top >= 0 and self.right <= width and self.bottom <= height


def text_box(x: float, y: float, text: str, anchor: Anchor = "start", size: float = FONT) -> Box:
    """Where a text with this baseline lies."""
    width = text_width(text, size)
    left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
    return Box(left, y - size * 0.8, left + width, y + size * 0.25)


def _label_places(x: float, y: float, distance: float, size: float) -> Iterator[tuple[float, float, Anchor, bool]]:
    """Where a text may stand beside a point, the nearest first, and whether it is so far that a line leads to it."""
    for ring in (1.0, 2.2, 3.6):
        away, up, down = distance * ring, -distance * ring * 0.6, distance * ring * 0.6 + size * 0.55
        beside: tuple[tuple[float, float, Anchor], ...] = (
            (away, size * 0.28, "start"), (-away, size * 0.28, "end"),
            (0.0, -away, "middle"), (0.0, away + size * 0.6, "middle"),
            (away, up, "start"), (away, down, "start"), (-away, up, "end"), (-away, down, "end"),
        )  # fmt: skip
        for right, below, anchor in beside:
            yield x + right, y + below, anchor, ring > 2.0


class Canvas:
    """Collects elements. Texts are escaped here and nowhere else; classes name colours of the page's style."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []
        self.boxes: list[Box] = []
        """Where texts lie."""
        self.taken: list[Box] = []
        """Where marks and lines lie that a label should not touch."""

    def add(self, name: str, content: str | None = None, **attributes: float | str) -> None:
        """An element; underscores in names of attributes are hyphens, `class_` is `class`."""
        written = "".join(f' {_attribute(key)}="{_value(value)}"' for key, value in attributes.items())
        self._parts.append(f"<{name}{written}/>" if content is None else f"<{name}{written}>{escape(content)}</{name}>")

    def text(
        self, x: float, y: float, text: str, *, anchor: Anchor = "start", class_: str = "wk-label", size: float = FONT
    ) -> None:
        """A text; its place is taken from now on."""
        self.boxes.append(text_box(x, y, text, anchor, size))
        self.add("text", text, x=x, y=y, text_anchor=anchor, class_=class_, font_size=size)

    @contextmanager
    def mark(self, description: str, class_: str = "wk-mark") -> Iterator[None]:
        """Elements that are one mark: it can be reached by the keyboard and says its exact values."""
        self._parts.append(
            f'<g class="{class_}" tabindex="0" role="img" aria-label="{escape(description)}">'
            f"<title>{escape(description)}</title>"
        )
        yield
        self._parts.append("</g>")

    @contextmanager
    def group(self, class_: str) -> Iterator[None]:
        """Elements of one colour that are no mark, as the entries of a legend."""
        self._parts.append(f'<g class="{escape(class_)}">')
        yield
        self._parts.append("</g>")

    def label(
        self,
        x: float,
        y: float,
        text: str,
        *,
        distance: float = 9.0,
        class_: str = "wk-label",
        size: float = SMALL,
        lowest: float | None = None,
        over_marks: bool = False,
    ) -> bool:
        """A text beside a point where nothing else is; False when there is no such place, and nothing is written.

        It does not reach below `lowest`, where the numbers of an axis are; `over_marks` is for one that matters so
        much that it may lie on marks and lines, though on no text.
        """
        bottom = self.height if lowest is None else lowest
        obstacles = self.boxes if over_marks else [*self.boxes, *self.taken]
        for x_text, y_text, anchor, far in _label_places(x, y, distance, size):
            box = text_box(x_text, y_text, text, anchor, size)
            if box.inside(self.width, bottom) and not any(box.meets(other) for other in obstacles):
                if far:
                    self.add("path", d=f"M{_value(x)} {_value(y)}L{_value(x_text)} {_value(y_text - size * 0.3)}",
                             class_="wk-leader")  # fmt: skip
                self.text(x_text, y_text, text, anchor=anchor, class_=class_, size=size)
                return True
        return False

    def take(self, left: float, top: float, right: float, bottom: float) -> None:
        """Keep labels out of a rectangle."""
        self.taken.append(Box(left, top, right, bottom))

    def take_line(self, points: Sequence[tuple[float, float]]) -> None:
        """Keep labels off a line."""
        for (x, y), (to_x, to_y) in itertools.pairwise(points):
            pieces = max(1, int(min(abs(to_x - x), abs(to_y - y)) / 4))
            for i in range(pieces):
                ends = [(x + (to_x - x) * part / pieces, y + (to_y - y) * part / pieces) for part in (i, i + 1)]
                (left, right), (top, bottom) = (sorted(values) for values in zip(*ends, strict=True))
                self.take(left - 1, top - 1, right + 1, bottom + 1)

    def x_axis(self, scale: Scale, y: float, title: str, *, top: float | None = None, most: int = 6) -> None:
        """Ticks with numbers below a line, and grid lines up to `top`."""
        for tick, text in _apart(scale, most):
            x = scale.at(tick)
            if top is not None:
                self.add("path", d=f"M{_value(x)} {_value(top)}V{_value(y)}", class_="wk-grid")
            box = text_box(x, y + SMALL + 4, text, "middle", SMALL)
            if box.right <= self.width:
                self.text(x, y + SMALL + 4, text, anchor="middle", class_="wk-tick", size=SMALL)
        self.add("path", d=f"M{_value(scale.start)} {_value(y)}H{_value(scale.end)}", class_="wk-axis")
        self.take_line([(scale.start, y), (scale.end, y)])
        title = shorten(title, self.width, FONT)
        half = text_width(title, FONT) / 2
        middle = min(max((scale.start + scale.end) / 2, half), self.width - half)
        self.text(middle, y + 2 * SMALL + 12, title, anchor="middle", class_="wk-title")

    def y_axis(self, scale: Scale, x: float, title: str, *, right: float | None = None, most: int = 6) -> None:
        """Ticks with numbers left of a line, grid lines up to `right`, and the title above."""
        ticks = scale.ticks(most)
        for tick, text in zip(ticks, tick_labels(ticks), strict=True):
            y = scale.at(tick)
            if right is not None:
                self.add("path", d=f"M{_value(x)} {_value(y)}H{_value(right)}", class_="wk-grid")
            self.text(x - 6, y + SMALL * 0.35, text, anchor="end", class_="wk-tick", size=SMALL)
        self.add("path", d=f"M{_value(x)} {_value(scale.start)}V{_value(scale.end)}", class_="wk-axis")
        self.take_line([(x, scale.start), (x, scale.end)])
        self.text(0, scale.end - 14, shorten(title, self.width, FONT), class_="wk-title")

    def svg(self, title: str) -> str:
        """The picture as an element of a page."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_value(self.width)} {_value(self.height)}" '
            f'role="group" aria-label="{escape(title)}" class="wk-figure">{"".join(self._parts)}</svg>'
        )


def _apart(scale: Scale, most: int) -> list[tuple[float, str]]:
    """Ticks with their texts, as many as have room beside each other; one on an axis that is too short for two."""
    for number in range(most, 1, -1):
        ticks = scale.ticks(number)
        texts = tick_labels(ticks)
        boxes = [text_box(scale.at(tick), 0, text, "middle", SMALL) for tick, text in zip(ticks, texts, strict=True)]
        if not any(one.right + 4 > other.left for one, other in itertools.pairwise(boxes)):
            return list(zip(ticks, texts, strict=True))
    return list(zip(ticks, texts, strict=True))[:1]


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return escape(value)
    return f"{value:.1f}".removesuffix(".0")


def polyline(points: Sequence[tuple[float, float]]) -> str:
    """The points of a line as an attribute."""
    return " ".join(f"{_value(x)},{_value(y)}" for x, y in points)
