"""Pages of real runs in a real browser: light, dark, on a phone and on paper."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from chromium import Chromium

import page_checks
from winml.modelkit.render.pages.html import document, page_html
from winml.modelkit.render.pages.page import figures
from winml.modelkit.reporting.command import ReportRequest, make_page, report
from winml.modelkit.reporting.runs import Run, read_known_findings, read_run

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.posix("Chromium is talked to through pipes of POSIX"),
    pytest.mark.xdist_group("chromium"),
]

BEFORE = Path(__file__).parents[1] / "goldens" / "before"
REPORTED = (
    "perf.json", "perf_op_trace.json", "compare.json", "eval.json", "search", "stopped-search", "sweep", "matrix",
    "contribution", "int8",
)  # fmt: skip


def _written(folder: Path, text: str) -> str:
    place = folder / "page.html"
    place.write_text(text, encoding="utf-8")
    return place.as_uri()


@pytest.mark.parametrize("name", REPORTED)
def test_a_page_is_right_in_every_view(name: str, browser: Chromium, tmp_path: Path) -> None:
    run = read_run(BEFORE / name)
    page = make_page(run)
    address = _written(tmp_path, page_html(page, "footer"))
    found = {}
    for view, settings in page_checks.VIEWS.items():
        with browser.page(address, **settings) as shown:  # type: ignore[arg-type]
            wrong = page_checks.complaints(shown)
            if wrong:
                found[view] = wrong
            if figures(page):
                assert shown.run(page_checks.MARKS), "no mark is seen"
    assert found == {}


def test_all_findings_are_right_in_every_view(browser: Chromium, tmp_path: Path) -> None:
    address = _written(tmp_path, page_html(make_page(read_known_findings())))
    for settings in page_checks.VIEWS.values():
        with browser.page(address, **settings) as shown:  # type: ignore[arg-type]
            assert page_checks.complaints(shown) == {}


def test_the_bars_of_a_measurement_are_all_of_its_runs(browser: Chromium, tmp_path: Path) -> None:
    run = read_run(BEFORE / "perf.json")
    counted = sum(len(one.wall_ns) for one in run.value.measurement.rounds)
    bars = "Array.from(document.querySelectorAll('[data-figure=latency] .wide .wk-mark'))"
    with browser.page(_written(tmp_path, page_html(make_page(run)))) as shown:
        said = shown.run(f"{bars}.map(m => m.getAttribute('aria-label'))")
        assert sum(int(one.split()[0]) for one in said) == counted
        # A bar is as high as its runs are many.
        heights = shown.run(f"{bars}.map(m => m.querySelector('rect').getBoundingClientRect().height)")
        per_run = [height / int(one.split()[0]) for height, one in zip(heights, said, strict=True)]
        assert max(per_run) - min(per_run) < 0.05 * max(per_run)


def test_two_traces_side_by_side_are_right_in_every_view(browser: Chromium, tmp_path: Path) -> None:
    paths = (str(BEFORE / "perf_op_trace.json"), str(BEFORE / "small_op_trace.json"))
    address = _written(tmp_path, report(ReportRequest(paths)).text or "")
    for settings in page_checks.VIEWS.values():
        with browser.page(address, **settings) as shown:  # type: ignore[arg-type]
            assert page_checks.complaints(shown) == {}


def test_two_runs_side_by_side_are_right_in_every_view(browser: Chromium, tmp_path: Path) -> None:
    shutil.copy(BEFORE / "perf.json", tmp_path / "other.json")
    made = report(ReportRequest((str(BEFORE / "perf.json"), str(tmp_path / "other.json"))))
    address = _written(tmp_path, made.text or "")
    for settings in page_checks.VIEWS.values():
        with browser.page(address, **settings) as shown:  # type: ignore[arg-type]
            assert page_checks.complaints(shown) == {}


def test_marks_are_reached_by_the_keyboard_and_say_their_values(browser: Chromium, tmp_path: Path) -> None:
    run = read_run(BEFORE / "perf.json")
    with browser.page(_written(tmp_path, page_html(make_page(run)))) as shown:
        said = shown.run(page_checks.MARKS)
        seen = []
        for _ in range(2 * len(said) + 20):
            shown.press("Tab")
            here = shown.run("document.activeElement.matches('.wk-mark') && document.getElementById('tip').textContent")
            if here and (not seen or here != seen[-1]):
                seen.append(here)
        assert seen[: len(said)] == said
        shown.run("document.querySelector('.wide .wk-mark').focus()")
        shown.press("ArrowRight")
        assert shown.run("document.getElementById('tip').textContent") == said[1]
        shown.press("Escape")
        assert shown.run("document.getElementById('tip').hidden")


def test_tables_are_sorted_and_filtered(browser: Chromium, tmp_path: Path) -> None:
    run = read_run(BEFORE / "perf_op_trace.json")
    first = "Array.from(document.querySelectorAll('table.sorts')[0].tBodies[0].rows).map(r => r.cells[0].textContent)"
    with browser.page(_written(tmp_path, page_html(make_page(run)))) as shown:
        before = shown.run(first)
        shown.run("document.querySelector('table.sorts th button').click()")
        assert shown.run(first) == shown.run(f"({first}).sort((a, b) => a.localeCompare(b))")
        shown.run("document.querySelector('table.sorts th button').click()")
        assert sorted(shown.run(first)) == sorted(before)
        assert shown.run("document.querySelector('table.sorts th').getAttribute('aria-sort')") == "descending"


HOSTILE = "<img src=x onerror=alert(1)>\"'><script>window.hit=1</script>\u202egnp.exe\x1b[31m\x00`|[a](javascript:hit)"


def test_hostile_names_are_inert(browser: Chromium, tmp_path: Path) -> None:
    value = read_run(BEFORE / "perf.json").value
    evil = replace(value, model=HOSTILE, warnings=(HOSTILE,), built_for=HOSTILE)
    with browser.page(_written(tmp_path, page_html(make_page(Run("perf", Path("x"), evil)), HOSTILE))) as shown:
        assert shown.run("window.hit") is None
        assert shown.run("document.querySelectorAll('img').length") == 0
        assert shown.run("document.querySelectorAll('script').length") == 1
        assert shown.run("document.body.textContent.includes('\\u202e')") is False
        assert page_checks.complaints(shown) == {}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p class=sentence>text</p><style>p{color:#999}</style>", "console"),
        ("<svg class='wk-figure' aria-label='a' viewBox='0 0 100 20'><text x='0' y='10'>one text</text>"
         "<text x='4' y='11'>another</text></svg>", "overlaps"),
        ("<svg class='wk-figure' aria-label='a' viewBox='0 0 300 20'><g class='wk-grid'><rect width='300' height='20'"
         " fill='#777'/><text x='0' y='15' fill='#888'>grey on grey</text></g></svg>", "contrast"),
        ("<p class='wide-one'>" + "x" * 2000 + "</p>", "overflow"),
        ("<h4>too deep</h4>", "structure"),
        ("<img src='https://192.0.2.1/x.png' alt=''>", "console"),
    ],
)  # fmt: skip
def test_the_checks_find_what_they_are_for(body: str, expected: str, browser: Chromium, tmp_path: Path) -> None:
    whole = f"<header><h1>t</h1></header><main>{body}</main><footer></footer>"
    with browser.page(_written(tmp_path, document("t", whole))) as shown:
        assert expected in page_checks.complaints(shown)


def test_a_page_is_readable_without_its_script(browser: Chromium, tmp_path: Path) -> None:
    run = read_run(BEFORE / "search")
    text = page_html(make_page(run))
    plain = text[: text.rindex("<script>")] + "</body></html>"
    with browser.page(_written(tmp_path, plain)) as shown:
        wrong = page_checks.complaints(shown)
        assert wrong == {}
        assert json.loads(shown.run("JSON.stringify(document.body.innerText.length)")) > 500
