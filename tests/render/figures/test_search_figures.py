"""Pictures of searches, matrices, findings and checks, from ordinary and from extreme data."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET

import pytest

from drawn import HOSTILE, SVG, WIDTHS, check_picture, marks_of
from winml.modelkit.render.figures.canvas import WIDE, Canvas
from winml.modelkit.render.figures.checks import Check, check_figure
from winml.modelkit.render.figures.course import MOST_STEPS, Step, bundle, course_figure
from winml.modelkit.render.figures.dots import DotRow
from winml.modelkit.render.figures.evidence import CLAIMED, EvidenceRow, evidence_figure
from winml.modelkit.render.figures.heatmap import MOST_COLUMNS, HeatCell, HeatColumn, HeatRow, heatmap_figure
from winml.modelkit.render.figures.legend import Key
from winml.modelkit.render.figures.pareto import Point, front, pareto_figure

STYLES = ("good", "bad", "unsure", "quiet")
KEYS = [Key("✓", "published", "good"), Key("✗", "failed, timed out", "bad"), Key("·", "pending", "plain")]


def _step(label: str, seconds: float, value: float | None = None, *, proven: bool = False) -> Step:
    style = "good" if proven else "unsure" if value is not None else "quiet"
    return Step(label, f"{label}: {value}", seconds, style, "kept" if proven else "no gain", value, proven)


def _line(picture: str) -> list[tuple[float, float]]:
    points = next(ET.fromstring(picture).iter(f"{SVG}polyline")).attrib["points"].split()
    return [(float(x), float(y)) for x, y in (point.split(",") for point in points)]


def test_the_line_of_a_course_rises_only_where_a_gain_is_proven() -> None:
    steps = [_step("preparation", 10), _step("h0", 10), _step("h1", 10, 3.0), _step("h2", 10, 1.5, proven=True),
             _step("h3", 10, 1.2, proven=True), _step("h4", 10, 2.0, proven=True)]  # fmt: skip
    picture = course_figure(steps, 1.0, "times as fast", "title", log=True)
    points = _line(picture)
    heights = [y for _, y in points]
    assert len(set(heights)) == 3, "the baseline, h2 and h4"
    assert heights == sorted(heights, reverse=True), "it only rises"
    ends = [float(one.attrib["cx"]) for one in ET.fromstring(picture).iter(f"{SVG}circle")]
    corner = points[1][0]
    assert corner == pytest.approx(ends[1]), "it rises when h2 has ended"
    assert points[-1][0] == pytest.approx(WIDE - 20)
    assert len(marks_of(picture)) == 6


def test_the_axis_of_a_course_has_the_unit_of_its_length() -> None:
    for seconds, word in ((30.0, "seconds"), (600.0, "minutes"), (30_000.0, "hours")):
        texts = check_picture(course_figure([_step("h0", seconds)], 1.0, "gain", "title"))
        assert word in texts


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("number", [1, 2, 30, 5000])
def test_courses_of_any_length_are_readable(width: float, number: int) -> None:
    chance = random.Random(number)
    steps = [
        Step(f"h{i}", f"h{i}", chance.expovariate(0.1), STYLES[i % 4], "no gain",
             chance.lognormvariate(0, 1) if i % 4 < 3 else None, i % 4 == 0)
        for i in range(number)
    ]  # fmt: skip
    picture = course_figure(steps, 1.0, "times as fast as the baseline", "title", width, log=True)
    check_picture(picture)
    assert len(marks_of(picture)) <= MOST_STEPS


def test_bundled_steps_keep_all_time_and_the_best_proven_gain() -> None:
    steps = [_step(f"h{i}", 1.0, float(i), proven=i == 7) for i in range(1000)]
    made = bundle(steps)
    assert len(made) <= MOST_STEPS
    assert sum(step.seconds for step in made) == 1000
    assert made[0].value == 7.0
    assert made[0].description.startswith("h0 to h8: 8 no gain, 1 kept; best h7")
    assert bundle(steps[:5]) == steps[:5]


def test_reused_trials_that_took_no_time_are_still_marks() -> None:
    steps = [_step("h0", 0.0), _step("h1", 0.0, 2.0, proven=True)]
    picture = course_figure(steps, 1.0, "gain", "title")
    check_picture(picture)
    assert len(marks_of(picture)) == 2


def test_less_may_be_better_upwards() -> None:
    points = [Point(1.0, 600.0, "baseline", ""), Point(2.0, 160.0, "h1", ""), Point(0.8, 159.0, "h2", ""),
              Point(1.5, 600.0, "h3", "")]  # fmt: skip
    assert [p.name for p in front(points, less_is_better=True)] == ["h2", "h1"]
    assert [p.name for p in front(points)] == ["h3", "h1"]


@pytest.mark.parametrize("width", WIDTHS)
def test_values_that_hardly_differ_have_ticks_that_do(width: float) -> None:
    points = [Point(1.0, 0.99999, "h0", "x"), Point(1.5, 0.9999901, "h1", "x", marked=True)]
    texts = check_picture(pareto_figure(points, "times as fast", "agreement", width, log=True))
    ticks = [text for text in texts if re.fullmatch(r"[\d.]+", text)]
    assert len(set(ticks)) == len(ticks)
    assert max(map(float, ticks)) <= 2.0
    assert not [tick for tick in ticks if 1.0 < float(tick) < 1.1], "no agreement is above 1"


def test_the_chosen_config_has_a_name_in_any_crowd() -> None:
    chance = random.Random(3)
    points = [Point(chance.gauss(2, 0.02), chance.gauss(0.99, 0.0005), f"h{i}", "x", (1.8, 2.2), (0.98, 1.0))
              for i in range(40)]  # fmt: skip
    points.append(Point(2.0, 0.99, "h99", "x", (1.8, 2.2), (0.98, 1.0), marked=True))
    assert "h99" in check_picture(pareto_figure(points, "times as fast", "accuracy", log=True))


def test_a_label_keeps_off_lines_and_above_an_axis() -> None:
    canvas = Canvas(200, 100)
    canvas.take_line([(0, 50), (200, 50)])
    assert canvas.label(100, 50, "h1", lowest=60)
    box = canvas.boxes[-1]
    assert box.bottom <= 49
    assert not any(box.meets(other) for other in canvas.boxes[:-1])


def _map(models: int, targets: int) -> tuple[list[HeatColumn], list[HeatRow]]:
    columns = [HeatColumn((f"ep{i}", "npu", "w8a16"), f"ep{i}/npu w8a16") for i in range(targets)]
    rows = [
        HeatRow(f"org/model-{m}", tuple(
            None if (m + t) % 11 == 0 else HeatCell(STYLES[(m * t) % 4], f"model-{m} for ep{t}", "786 KiB")
            for t in range(targets)
        ))
        for m in range(models)
    ]  # fmt: skip
    return columns, rows


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("models", "targets"), [(1, 1), (3, 8), (25, 8), (4, MOST_COLUMNS)])
def test_maps_are_readable_at_every_width(width: float, models: int, targets: int) -> None:
    columns, rows = _map(models, targets)
    picture = heatmap_figure(columns, rows, KEYS, "title", width)
    texts = check_picture(picture)
    assert len(marks_of(picture)) == sum(cell is not None for row in rows for cell in row.cells)
    assert {f"{key.glyph} {key.text}" for key in KEYS} <= set(texts)
    # Every column is named: above it, or by a number that the legend explains.
    named = "ep0" in texts
    assert named or f"{targets} ep{targets - 1}/npu w8a16" in texts
    assert all(any(text.startswith(glyph) for text in texts) for glyph in "✓")


def test_a_cell_has_its_size_where_there_is_room_and_its_glyph_everywhere() -> None:
    columns, rows = _map(2, 3)
    assert "✓ 786 KiB" in check_picture(heatmap_figure(columns, rows, KEYS, "title"))
    columns, rows = _map(2, 20)
    texts = check_picture(heatmap_figure(columns, rows, KEYS, "title", 340))
    assert "✓ 786 KiB" not in texts
    assert texts.count("✓") > 2


def _evidence(value: float, low: float, high: float, claimed: tuple[float | None, float | None] | None) -> EvidenceRow:
    return EvidenceRow(DotRow("model", f"model: {value}", value, f"{value} ✓", (low, high), (), "good"), claimed)


def test_what_is_claimed_is_a_band_behind_its_row() -> None:
    rows = [_evidence(2.0, 1.9, 2.1, (1.5, None)), _evidence(0.5, 0.4, 0.6, (None, 1.0)), _evidence(1, 0.9, 1.1, None)]
    picture = evidence_figure(rows, "times as fast", "t", keys=[CLAIMED], line=(1.0, "same speed"), log=True)
    texts = check_picture(picture)
    assert {"same speed", "▒ what is claimed"} <= set(texts)
    root = ET.fromstring(picture)
    bands = [one.attrib for one in root.iter(f"{SVG}rect") if one.attrib["class"] == "wk-band"]
    dots = [float(one.attrib["cx"]) for one in root.iter(f"{SVG}circle")]
    assert len(bands) == 2
    for band, dot in zip(bands, dots, strict=False):
        left = float(band["x"])
        assert left <= dot <= left + float(band["width"]), "both measurements agree with their claims"
    assert float(bands[0]["y"]) < float(bands[1]["y"])


@pytest.mark.parametrize("width", WIDTHS)
def test_extreme_evidence_stays_in_the_frame(width: float) -> None:
    rows = [
        _evidence(0.008, 1e-12, 1e12, (None, 1.0)), _evidence(1.0, 1.0, 1.0, (0.95, 1.05)),
        EvidenceRow(DotRow(HOSTILE, HOSTILE, 1.02, "1.02x faster ~", None, (), "open"), (1.43, None)),
    ]  # fmt: skip
    picture = evidence_figure(rows, "times as fast", HOSTILE, width, keys=[CLAIMED, *KEYS], line=(1.0, "same speed"),
                              log=True)  # fmt: skip
    check_picture(picture)
    assert "<script>" not in picture


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("number", [1, 4, 23])
def test_checks_stand_beside_one_another_as_far_as_there_is_room(width: float, number: int) -> None:
    checks = [Check(f"check-{i}", "passed", STYLES[i % 4], f"check-{i}: passed") for i in range(number)]
    picture = check_figure(checks, "title", width)
    texts = check_picture(picture)
    assert marks_of(picture) == [check.description for check in checks]
    assert sum(text.endswith(f"check-{i}") for i in range(number) for text in texts) >= number


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_are_text_in_every_picture(width: float) -> None:
    row = HeatRow(HOSTILE, (HeatCell("bad", HOSTILE, HOSTILE),))
    pictures = [
        course_figure([Step(HOSTILE, HOSTILE, 1.0, "good", "kept", 2.0, True)], 1.0, HOSTILE[:40], HOSTILE, width),
        heatmap_figure([HeatColumn((HOSTILE, "npu"), HOSTILE)], [row], [Key("✗", HOSTILE, "bad")], HOSTILE, width),
        check_figure([Check(HOSTILE, HOSTILE, "bad", HOSTILE)], HOSTILE, width),
    ]  # fmt: skip
    for picture in pictures:
        check_picture(picture)
        assert "<script>" not in picture
        assert "\x1b" not in picture
        assert "\u202e" not in picture


def test_nothing_to_show_is_no_picture() -> None:
    assert course_figure([], 1.0, "x", "t") == heatmap_figure([], [], [], "t") == check_figure([], "t") == ""
    assert evidence_figure([], "x", "t") == heatmap_figure([HeatColumn(("a",), "a")], [], [], "t") == ""
