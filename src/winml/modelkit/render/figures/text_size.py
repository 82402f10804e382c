"""How wide a text is in the fonts that browsers take for `system-ui`: an upper bound, so that labels never touch."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import accumulate

from winml.modelkit.core.plain_text import one_line

_NARROW = frozenset("iljtfrI.,:;'|!()[]{}`´· ")
_WIDE = frozenset("mwMW@%—…")


# A label is measured once for every place that it is tried at.
@lru_cache(maxsize=1024)
def text_width(text: str, size: float) -> float:
    """Pixels that a text takes at most at a font size; DejaVu Sans is the widest of the usual fonts."""
    return size * sum(_width(character) for character in one_line(text))


def _width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.1
    if character in _NARROW:
        return 0.42
    if character in _WIDE:
        return 1.0
    return 0.72 if character.isupper() else 0.65


def shorten(text: str, width: float, size: float) -> str:
    """A text in one line that fits: its middle is replaced by `…`, because names differ at their ends."""
    text = one_line(text)
    if text_width(text, size) <= width:
        return text
    widths = [_width(character) for character in text]
    before = list(accumulate(widths, initial=_width("…")))
    after = list(accumulate(reversed(widths), initial=0.0))
    for kept in range(len(text) - 1, 1, -1):
        head = (kept + 1) // 2
        if size * (before[head] + after[kept - head]) <= width:
            return f"{text[:head]}…{text[len(text) - (kept - head) :]}"
    return "…"
