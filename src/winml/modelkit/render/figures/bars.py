"""Values as horizontal bars, the largest first: a name, what it is, the bar, and columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, SMALL, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.text_size import shorten, text_width

_GAP = 14.0
_HEAD = 20.0
_MOST_LABEL = 0.34
"""Part of the width that names may take."""
_FEW_PIXELS = 1.5
"""The bar of a value above zero is at least so long."""


@dataclass(frozen=True)
class Bar:
    """A row of the picture."""

    label: str
    description: str
    """What the mark says, with exact values."""
    value: float | None
    """None for a row without a bar: the rest, or what is not known."""
    texts: tuple[str, ...]
    """Numbers beside the bar, one per column."""
    detail: str = ""
    """A second line below the label."""
    role: str = "main"
    glyph: str = ""
    faint: bool = False
    """Drawn as an outline: counted, but not done in this run."""


def bar_figure(
    bars: Sequence[Bar], title: str, width: float = WIDE, *, heads: Sequence[str] = (), keys: Sequence[Key] = ()
) -> str:
    """The picture; an empty text without rows. `heads` name the columns of numbers."""
    if not bars:
        return ""
    narrow = is_narrow(width)
    two_lines = any(bar.detail for bar in bars)
    columns = _columns(bars, heads)
    top = legend_height(keys, width) + (_HEAD if any(heads) else 0.0)
    height = (56.0 if two_lines else 40.0) if narrow else (40.0 if two_lines else 26.0)
    canvas = Canvas(width, top + height * len(bars) + 2)
    draw_legend(canvas, keys, 0)
    for right, head in zip(_right_edges(columns, width), heads, strict=False):
        canvas.text(right, top - 6, head, anchor="end", class_="wk-note", size=SMALL)
    room = width - sum(columns) if narrow else width * _MOST_LABEL
    left = 0.0 if narrow else 8 + min(room, max(_label_width(bar) for bar in bars))
    end = width if narrow else width - sum(columns) - 4
    longest = max((bar.value for bar in bars if bar.value is not None), default=0.0)
    for number, bar in enumerate(bars):
        y = top + height * number
        length = 0.0 if not bar.value or longest <= 0 else max(bar.value / longest * (end - left), _FEW_PIXELS)
        if narrow:
            place, baseline = (left, y + height - 20, 9.0, length), y + FONT
        else:
            place, baseline = (left, y + height / 2 - 8, 16.0, length), y + height / 2 + FONT * 0.35
        first = baseline - (8 if two_lines and not narrow else 0)
        _draw(canvas, bar, room, place, first, baseline, _right_edges(columns, width))
    return canvas.svg(title)


def _columns(bars: Sequence[Bar], heads: Sequence[str]) -> list[float]:
    """Widths of the columns of numbers, with the gap before them."""
    count = max((len(bar.texts) for bar in bars), default=0)
    return [
        _GAP + max(
            *(text_width(bar.texts[i], FONT) for bar in bars if i < len(bar.texts)),
            text_width(heads[i], SMALL) if i < len(heads) else 0.0,
        )
        for i in range(count)
    ]  # fmt: skip


def _right_edges(columns: Sequence[float], width: float) -> list[float]:
    return [width - sum(columns[i + 1 :]) for i in range(len(columns))]


def _label_width(bar: Bar) -> float:
    return max(text_width(_bar_label(bar), FONT), text_width(bar.detail, SMALL))


def _bar_label(bar: Bar) -> str:
    return f"{bar.glyph} {bar.label}" if bar.glyph else bar.label


def _draw(
    canvas: Canvas,
    bar: Bar,
    room: float,
    place: tuple[float, float, float, float],
    first: float,
    baseline: float,
    edges: Sequence[float],
) -> None:
    indent = text_width(f"{bar.glyph} ", FONT) if bar.glyph else 0.0
    with canvas.mark(bar.description, class_=f"wk-mark wk-{bar.role}"):
        x, y, thickness, length = place
        if length:
            canvas.add(
                "rect", x=x, y=y, width=length, height=thickness, rx=1.5, class_="wk-tint" if bar.faint else "wk-solid"
            )
        if bar.glyph:
            canvas.text(0, first, bar.glyph)
        with canvas.group("wk-on"):
            canvas.text(indent, first, shorten(bar.label, room - indent, FONT))
        if bar.detail:
            with canvas.group("wk-soft"):
                canvas.text(indent, first + SMALL + 4, shorten(bar.detail, room - indent, SMALL), size=SMALL)
        for edge, text in zip(edges, bar.texts, strict=False):
            canvas.text(edge, baseline, text, anchor="end")
