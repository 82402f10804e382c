"""Evidence against a claim: what each piece of it shows, with its interval, in front of what is claimed of it."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.dots import ROW, DotRow, draw_row, row_scale
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.text_size import shorten, text_width

_MOST_LABEL = 260.0
CLAIMED = Key("▒", "what is claimed", "main")


@dataclass(frozen=True)
class EvidenceRow:
    """A piece of evidence, and the range that it should lie in; None where that has no end."""

    dot: DotRow
    claimed: tuple[float | None, float | None] | None


def evidence_figure(
    rows: Sequence[EvidenceRow],
    axis: str,
    title: str,
    width: float = WIDE,
    *,
    keys: Sequence[Key] = (),
    line: tuple[float, str] | None = None,
    log: bool = False,
) -> str:
    """The picture; an empty text without rows. `line` is a value with its name, `keys` say what glyphs mean."""
    if not rows:
        return ""
    narrow, dots = is_narrow(width), [row.dot for row in rows]
    row_height = ROW + (FONT + 3 if narrow else 0)
    right = 16 + max(text_width(dot.text, FONT) for dot in dots)
    labels = [shorten(dot.label, width - right if narrow else min(_MOST_LABEL, 0.4 * width), FONT) for dot in dots]
    left = 8.0 if narrow else 16 + max(text_width(label, FONT) for label in labels)
    top = 24.0 if line else 6.0
    bottom = top + row_height * len(rows)
    canvas = Canvas(width, bottom + 52 + legend_height(keys, width))
    limits = [bound for row in rows for bound in row.claimed or () if bound is not None]
    scale = row_scale(dots, [*limits, *([line[0]] if line else [])], left, width - (8 if narrow else right), log)
    for number, row in enumerate(rows):
        if row.claimed is None:
            continue
        ends = (scale.low if row.claimed[0] is None else row.claimed[0],
                scale.high if row.claimed[1] is None else row.claimed[1])  # fmt: skip
        first, last = scale.at(ends[0]), scale.at(ends[1])
        y = top + row_height * (number + 1) - ROW
        canvas.add("rect", x=first, y=y + 3, width=max(last - first, 2.0), height=ROW - 6, class_="wk-band")
    canvas.x_axis(scale, bottom, axis + (", logarithmic" if log else ""), top=top, most=4 if narrow else 6)
    if line is not None:
        x, half = scale.at(line[0]), text_width(line[1], FONT) / 2
        canvas.add("path", d=f"M{x:.1f} {top - 4:.1f}V{bottom:.1f}", class_="wk-zero")
        canvas.text(min(max(x, half + 1), width - half - 1), top - 10, line[1], anchor="middle", class_="wk-note")
    for number, (dot, label) in enumerate(zip(dots, labels, strict=True)):
        y = top + row_height * (number + 1) - ROW / 2
        draw_row(canvas, scale, dot, label, top + row_height * number + FONT if narrow else y + FONT * 0.35, y)
    draw_legend(canvas, keys, bottom + 52)
    return canvas.svg(title)
