from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from pictures import SVG, WIDTHS, check_picture, marks
from winml.modelkit.render.figures.legend import Key, legend_lines
from winml.modelkit.render.figures.stacks import Part, Stack, stack_figure

KEYS = (Key("supported", "good", "✓"), Key("unsupported", "bad", "✗"))


@pytest.mark.parametrize("width", WIDTHS)
def test_parts_are_as_long_as_their_numbers(width: float) -> None:
    stacks = [
        Stack("cpu", "cpu: 10 supported", (Part(10, "good", "✓"),), "10 of 10"),
        Stack("qnn/npu", "qnn/npu: 8 supported, 2 unsupported", (Part(8, "good", "✓"), Part(2, "bad", "✗")), "8 of 10"),
        Stack("n" * 300, "nothing", (Part(0, "good", "✓"),), "0 of 10"),
    ]
    picture = stack_figure(stacks, "t", width, KEYS)
    texts = check_picture(picture)
    lengths = [float(one.attrib["width"]) for one in ET.fromstring(picture).iter(f"{SVG}rect")]
    assert len(lengths) == 3
    assert lengths[1] / lengths[2] == pytest.approx(4, rel=0.05)
    assert {"cpu", "qnn/npu", "8 of 10", "✓ supported", "✗", "✗ unsupported"} <= set(texts)
    assert marks(picture)[1] == "qnn/npu: 8 supported, 2 unsupported"


def test_rows_without_a_number_are_no_picture() -> None:
    assert stack_figure([], "t") == stack_figure([Stack("a", "a", (), "")], "t") == ""


def test_a_legend_takes_as_many_lines_as_it_needs() -> None:
    keys = [Key(f"provider number {n}", "main", "●") for n in range(9)]
    assert len(legend_lines(keys, 760)) < len(legend_lines(keys, 340)) <= 9
    assert [key for line in legend_lines(keys, 340) for key, _ in line] == keys
    assert legend_lines([], 340) == []
