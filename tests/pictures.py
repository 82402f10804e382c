"""What must hold of every picture: well formed, inside its frame, no two texts on one another."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

from winml.modelkit.render.figures.canvas import HALF, NARROW, WIDE, Box, text_box
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.render.pages.page import Figure, Page, figures

SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = (WIDE, HALF, NARROW)
HOSTILE = '<script>alert("1")</script>\'`|\x00\x1b[2J\u202eevil\u2066'
"""A name with markup, quotes, control characters and marks that turn the direction of reading."""


def check_picture(picture: str) -> list[str]:
    """The texts of a picture, after everything that must hold of it was looked at."""
    root = ET.fromstring(picture)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    texts = []
    for one in root.iter(f"{SVG}text"):
        at = one.attrib
        box = text_box(float(at["x"]), float(at["y"]), one.text or "", at["text-anchor"], float(at["font-size"]))  # type: ignore[arg-type]
        texts.append((one.text or "", box))
    touching = [f"{a} | {b}" for (a, one), (b, other) in combinations(texts, 2) if one.meets(other)]
    assert not touching, touching
    outside = [f"{text}: {box}" for text, box in texts if not _is_inside(box, width, height)]
    assert not outside, outside
    for element in root.iter():
        assert "style" not in element.attrib
        assert not any(name.startswith("on") for name in element.attrib)
        if element.tag == f"{SVG}circle":
            assert 0 <= float(element.attrib["cx"]) <= width
            assert 0 <= float(element.attrib["cy"]) <= height
        if element.tag == f"{SVG}rect":
            x, y, wide, high = (float(element.attrib[name]) for name in ("x", "y", "width", "height"))
            box = Box(x, y, x + wide, y + high)
            assert _is_inside(box, width, height), box
    return [text for text, _ in texts]


def _is_inside(box: Box, width: float, height: float) -> bool:
    """Places are written with one decimal."""
    return box.left >= -0.1 and box.top >= -0.1 and box.right <= width + 1 and box.bottom <= height + 1


def check_figure(figure: Figure) -> list[str]:
    """The texts of a picture at its largest width, after all widths were looked at."""
    assert re.fullmatch(r"[a-z0-9-]+", figure.name)
    assert figure.sentence.endswith(".")
    texts = [check_picture(figure.draw(width)) for width in WIDTHS]
    return texts[0]


def check_page(page: Page) -> dict[str, list[str]]:
    """The texts of every picture of a page by its name, after the page was written in every form."""
    names = [figure.name for figure in figures(page)]
    assert len(names) == len(set(names))
    html, markdown = page_html(page), page_markdown(page)
    assert not re.search(r"<[^>]*\sstyle=", html)
    assert "<script>alert" not in html + markdown
    assert not re.search("[\x00\x1b\u202e\u2066]", html + markdown)
    return {figure.name: check_figure(figure) for figure in figures(page)}


def marks(picture: str) -> list[str]:
    """What the marks of a picture say, in order."""
    return [one.attrib["aria-label"] for one in ET.fromstring(picture).iter(f"{SVG}g") if "aria-label" in one.attrib]
