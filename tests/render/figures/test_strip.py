from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pictures import SVG, WIDTHS, check_picture, marks
from winml.modelkit.render.figures.legend import Key
from winml.modelkit.render.figures.strip import MOST_PIECES, Piece, strip_figure

KEYS = (Key("CPU", "main", "●"), Key("QNN", "violet", "■"))


def _piece(label: str, count: int, role: str = "violet", *, first: bool = False) -> Piece:
    return Piece(label, f"{count} operators: {label}", count, ((role, 1.0),), "■", first)


def test_pieces_stand_in_order_and_a_small_one_is_seen() -> None:
    pieces = [_piece("4 operators", 4), _piece("Cast", 1, "main", first=True), _piece("9995 operators", 9995)]
    for width in WIDTHS:
        picture = strip_figure(pieces, "t", width, KEYS)
        texts = check_picture(picture)
        rects = [(float(r.attrib["x"]), float(r.attrib["width"])) for r in ET.fromstring(picture).iter(f"{SVG}rect")]
        assert [x for x, _ in rects] == sorted(x for x, _ in rects)
        assert min(length for _, length in rects) > 3
        assert {"Cast", "● CPU", "■ QNN", "first operator", "last"} <= set(texts)
        assert marks(picture)[1] == "1 operators: Cast"


@pytest.mark.parametrize("width", WIDTHS)
def test_names_that_find_no_place_are_not_written(width: float) -> None:
    pieces = [_piece(f"a long name of piece {n}", 1, first=n % 2 == 1) for n in range(MOST_PIECES)]
    texts = check_picture(strip_figure(pieces, "t", width, KEYS))
    named = [text for text in texts if text.startswith("a long")]
    assert 1 <= len(named) < MOST_PIECES
    assert any(int(text.split()[-1]) % 2 == 1 for text in named)


def test_a_piece_of_several_eps_is_divided() -> None:
    piece = Piece("", "operators 1 to 10: 8 on QNN, 2 on CPU", 10, (("violet", 0.8), ("main", 0.2)))
    picture = strip_figure([piece], "t")
    check_picture(picture)
    high, low = (float(r.attrib["height"]) for r in ET.fromstring(picture).iter(f"{SVG}rect"))
    assert high / low == pytest.approx(4, rel=0.05)


def test_nothing_that_ran_is_no_picture() -> None:
    assert strip_figure([], "t") == ""
