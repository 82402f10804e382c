"""Pictures of made-up and of extreme data: well formed, inside their frame, no two texts on one another."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET

import pytest

from pictures import SVG, check_picture
from winml.modelkit.render.figures.canvas import Canvas
from winml.modelkit.render.figures.distribution import latency_figure
from winml.modelkit.render.figures.pareto import Point, front, pareto_figure
from winml.modelkit.render.figures.pictures import with_style
from winml.modelkit.render.figures.speedups import SpeedupRow, speedup_figure
from winml.modelkit.render.figures.style import DARK, LIGHT
from winml.modelkit.render.figures.text_size import shorten, text_width


def _points(number: int) -> list[Point]:
    chance = random.Random(number)
    return [
        Point(
            chance.gauss(0, 20), 1 - chance.expovariate(50), f"h{i}", "x",
            (chance.uniform(-200, 0), chance.uniform(0, 200)), (0.9, 1.0),
        )
        for i in range(number)
    ]  # fmt: skip


@pytest.mark.parametrize("number", [1, 2, 7, 40, 300])
def test_configs_are_drawn_without_labels_that_touch(number: int) -> None:
    points = _points(number)
    texts = check_picture(pareto_figure(points, "time saved, %", "accuracy"))
    named = [text for text in texts if text.startswith("h")]
    assert len(named) >= min(number, 3)
    assert {"time saved, %", "accuracy"} <= set(texts)


def test_the_front_has_only_points_that_no_other_beats_in_what_is_drawn() -> None:
    points = [Point(0, 0.99, "h0", ""), Point(53, 0.98, "h1", ""), Point(10, 0.90, "h2", ""), Point(53, 0.98, "h3", "")]
    assert [p.name for p in front(points)] == ["h0", "h1", "h3"]


def test_the_marks_of_a_config_say_its_values_and_names_are_inert() -> None:
    hostile = '<script>alert("1")</script>'
    picture = pareto_figure([Point(53.0, 0.98, hostile, f"{hostile} +53.0 %", marked=True)], "x", "y")
    mark = next(one for one in ET.fromstring(picture).iter(f"{SVG}g"))
    assert mark.attrib["tabindex"] == "0"
    assert mark.attrib["aria-label"] == f"{hostile}: {hostile} +53.0 %"
    assert "<script>" not in picture


def _row(label: str, speedup: float | None, interval: tuple[float, float] | None = None, rounds: int = 3) -> SpeedupRow:
    around = tuple((speedup or 1) * (1 + 0.01 * n) for n in range(rounds))
    return SpeedupRow(label, "KEEP", speedup, interval, around)


def test_candidates_are_drawn_at_their_speed_with_their_interval() -> None:
    picture = speedup_figure([_row("int8", 2.0, (1.9, 2.1)), _row("fp16", 0.5, (0.4, 0.6))], "fp32")
    texts = check_picture(picture)
    assert {"int8", "fp16", "2.00x faster ✓", "2.00x slower ✓", "same speed"} <= set(texts)
    marks = [one.attrib["aria-label"] for one in ET.fromstring(picture).iter(f"{SVG}g")]
    assert marks == [
        "int8: 2.00 times as fast (95 % 1.90 … 2.10), KEEP, 3 rounds",
        "fp16: 0.50 times as fast (95 % 0.40 … 0.60), KEEP, 3 rounds",
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [_row("a" * 300, 1.0)],
        [_row("two rounds", 1.1, (1e-12, 1e12), 2), _row("like the base", 1.0)],
        [_row(f"candidate {n}", 0.01 * 1.7**n, (0.001, 1000.0), 1000) for n in range(20)],
    ],
)
def test_extreme_candidates_stay_in_the_frame(rows: list[SpeedupRow]) -> None:
    check_picture(speedup_figure(rows, "b" * 300))


def test_a_long_tail_has_a_logarithmic_axis() -> None:
    texts = check_picture(latency_figure([1.0] * 90 + [2.0] * 9 + [400.0], {"p50": 1.0, "p90": 2.0, "p99": 2.0}))
    assert "ms per run, logarithmic" in texts
    texts = check_picture(latency_figure([1.0, 1.1, 1.2], {"p50": 1.1, "p90": 1.2, "p99": 1.2}))
    assert "ms per run" in texts
    assert {"p50 1.1 ms", "p90 1.2 ms", "p99 1.2 ms"} <= set(texts)


def test_every_run_is_in_one_bar() -> None:
    chance = random.Random(1)
    samples = [chance.lognormvariate(0, 0.4) for _ in range(5000)]
    picture = latency_figure(samples, {"p50": 1.0})
    marks = [one.attrib["aria-label"] for one in ET.fromstring(picture).iter(f"{SVG}g")]
    assert sum(int(mark.split()[0]) for mark in marks) == 5000
    assert len(picture) < 20_000


def test_nothing_to_show_is_no_picture() -> None:
    assert latency_figure([], {}) == pareto_figure([], "x", "y") == with_style("") == ""
    assert speedup_figure([_row("a", None)], "b") == ""


def test_a_picture_alone_carries_its_style() -> None:
    alone = with_style(pareto_figure(_points(2), "x", "y"))
    style = next(ET.fromstring(alone).iter(f"{SVG}style")).text or ""
    assert "prefers-color-scheme:dark" in style
    assert "http" not in style


def test_a_label_that_finds_no_place_is_not_written() -> None:
    canvas = Canvas(100, 40)
    assert canvas.label(50, 20, "abc")
    assert not canvas.label(50, 20, "a text that is much longer")
    assert len(canvas.boxes) == 1


def test_long_names_keep_both_ends() -> None:
    short = shorten("a-very-long-name-of-a-model.onnx", 120, 13)
    assert short.startswith("a-")
    assert short.endswith(".onnx")
    assert text_width(short, 13) <= 120
    assert shorten("short", 120, 13) == "short"


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    bright, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("shade", [0, 1])
def test_colours_of_text_have_contrast(shade: int) -> None:
    colours = (LIGHT, DARK)[shade]
    named = {name: colour for name, colour in colours.items() if name not in ("paper", "rule", "shade")}
    assert {name: c for name, colour in named.items() if (c := _contrast(colour, colours["paper"])) < 4.5} == {}
