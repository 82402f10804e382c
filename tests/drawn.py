"""What every picture and every page has to keep: well formed, inside its frame, no two texts on one another, inert."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from typing import Any

from winml.modelkit.render.figures.canvas import HALF, NARROW, WIDE, Box, text_box
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.render.pages.page import Figure, Page, Table, figures, walk

SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = (WIDE, HALF, NARROW)
HOSTILE = '<script>alert("1")</script>\x1b[31m\u202e\u2066 \x00 `a` | ' + "x" * 300
"""A name with markup, quotes, control characters, marks that turn the direction of reading, and no end."""
_VOID = frozenset({"meta", "br", "hr", "input"})


def texts_of(picture: str) -> list[tuple[str, Box]]:
    """Every text of a picture, and where it lies."""
    found = []
    for one in ET.fromstring(picture).iter(f"{SVG}text"):
        at = one.attrib
        box = text_box(float(at["x"]), float(at["y"]), one.text or "", at["text-anchor"], float(at["font-size"]))  # type: ignore[arg-type]
        found.append((one.text or "", box))
    return found


def check_picture(picture: str) -> list[str]:
    """The texts of a picture, none of which touches another one or leaves the frame; nor does any mark."""
    root = ET.fromstring(picture)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    texts = texts_of(picture)
    # By rows, because a map has hundreds of texts.
    ordered = sorted(texts, key=lambda one: one[1].top)
    for number, (text, box) in enumerate(ordered):
        for other, taken in ordered[number + 1 :]:
            if taken.top >= box.bottom:
                break
            assert not box.meets(taken), f"{text} | {other}"
    assert [text for text, box in texts if not box.inside(width + 1, height)] == []
    for one in root.iter(f"{SVG}circle"):
        assert 0 <= float(one.attrib["cx"]) <= width
        assert 0 <= float(one.attrib["cy"]) <= height
    for one in root.iter(f"{SVG}rect"):
        at = {key: float(one.attrib[key]) for key in ("x", "y", "width", "height")}
        assert at["x"] >= 0
        assert at["y"] >= 0
        assert at["x"] + at["width"] <= width + 1
        assert at["y"] + at["height"] <= height + 1
    assert not [key for one in root.iter() for key in one.attrib if key == "style" or key.startswith("on")]
    return [text for text, _ in texts]


def marks_of(picture: str) -> list[str]:
    """What the marks of a picture say; each can be reached by the keyboard."""
    found = [one for one in ET.fromstring(picture).iter(f"{SVG}g") if "aria-label" in one.attrib]
    assert all(one.attrib["tabindex"] == "0" for one in found)
    return [one.attrib["aria-label"] for one in found]


def figure_of(page: Page, name: str) -> Figure:
    """The picture of that name."""
    return next(figure for figure in figures(page) if figure.name == name)


def table_of(page: Page, title: str) -> Table:
    """The table under that heading, or behind that summary."""
    found = [b for b in walk(page.blocks) if isinstance(b, Table) and title in (b.title, b.folded)]
    assert len(found) == 1, [b.title or b.folded for b in walk(page.blocks) if isinstance(b, Table)]
    return found[0]


def rows_of(table: Table) -> list[tuple[str, ...]]:
    """The texts of a table."""
    return [tuple(cell if isinstance(cell, str) else cell.text for cell in row.cells) for row in table.rows]


class _Structure(HTMLParser):
    """Every element is closed in order; collects attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.links: list[str] = []
        self.attributes: set[str] = set()
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._look(tag, attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self._look(tag, attrs)

    def _look(self, tag: str, attrs: Any) -> None:
        self.scripts += tag == "script"
        for key, value in attrs:
            self.attributes.add(key)
            if key == "id":
                self.ids[value] += 1
            if key in ("href", "src"):
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_page(page: Page) -> str:
    """The page as HTML: all pictures at all widths, elements closed, ids unique, links inside, nothing that runs."""
    names = Counter(figure.name for figure in figures(page))
    assert not [name for name, count in names.items() if count > 1 or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)]
    for figure in figures(page):
        assert figure.sentence.endswith((".", "%"))
        for width in WIDTHS:
            check_picture(figure.draw(width))
    text = page_html(page)
    seen = _Structure()
    seen.feed(text)
    assert seen.open == []
    assert seen.scripts == 1
    assert [name for name, count in seen.ids.items() if count > 1] == []
    assert [link for link in seen.links if link[1:] not in seen.ids] == []
    assert not [name for name in seen.attributes if name == "style" or name.startswith("on")]
    assert "\x1b" not in text
    assert "\u202e" not in text
    markdown = page_markdown(page)
    assert "<script" not in markdown
    assert "\u202e" not in markdown
    return text
