"""Rows that are divided in the same kinds of parts, as how many nodes each target takes."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.canvas import FONT, WIDE, Canvas, is_narrow
from winml.modelkit.render.figures.legend import Key, draw_legend, legend_height
from winml.modelkit.render.figures.text_size import shorten, text_width

_MOST_LABEL = 220.0
_BAR = 20.0


@dataclass(frozen=True)
class Part:
    """A part of a row; drawn faint where `faint` tells two of one colour apart."""

    value: float
    role: str
    glyph: str
    faint: bool = False


@dataclass(frozen=True)
class Stack:
    """A row of the picture."""

    label: str
    description: str
    parts: tuple[Part, ...]
    text: str


def stack_figure(stacks: Sequence[Stack], title: str, width: float = WIDE, keys: Sequence[Key] = ()) -> str:
    """The picture; an empty text without rows. All rows are as long as the whole of the longest."""
    longest = max((sum(part.value for part in stack.parts) for stack in stacks), default=0.0)
    if longest <= 0:
        return ""
    narrow = is_narrow(width)
    top = legend_height(keys, width) + 2
    right = 14 + max(text_width(stack.text, FONT) for stack in stacks)
    labels = [shorten(stack.label, width - right if narrow else _MOST_LABEL, FONT) for stack in stacks]
    left = 0.0 if narrow else 14 + max(text_width(label, FONT) for label in labels)
    end = width if narrow else width - right
    height = 2 * _BAR + 8 if narrow else _BAR + 12
    canvas = Canvas(width, top + height * len(stacks))
    draw_legend(canvas, keys, 0)
    for number, (stack, label) in enumerate(zip(stacks, labels, strict=True)):
        y = top + height * number
        bar = y + _BAR - 2 if narrow else y
        baseline = y + FONT if narrow else y + _BAR / 2 + FONT * 0.35
        canvas.text(0, baseline, label)
        canvas.text(width, baseline, stack.text, anchor="end")
        with canvas.mark(stack.description):
            x = left
            for part in stack.parts:
                length = part.value / longest * (end - left)
                if length <= 0:
                    continue
                with canvas.group(f"wk-{part.role}"):
                    canvas.add(
                        "rect", x=x, y=bar, width=max(length - 1, 0.5), height=_BAR,
                        class_="wk-tint" if part.faint else "wk-solid",
                    )  # fmt: skip
                    if length >= 2 * FONT:
                        with canvas.group("wk-on" if part.faint else "wk-paper"):
                            canvas.text(x + length / 2, bar + _BAR / 2 + FONT * 0.35, part.glyph, anchor="middle")
                x += length
    return canvas.svg(title)
