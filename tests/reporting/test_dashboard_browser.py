"""The dashboard in a real browser: light, dark, on a phone and on paper, and a run that grows while somebody looks."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Chromium, Page

import page_checks
from dashboard_site import BEFORE, HOSTILE, PERF, Site
from winml.modelkit.render.pages import page as blocks
from winml.modelkit.reporting import dashboard as dashboards
from winml.modelkit.reporting.runs import Run

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.posix("Chromium is talked to through pipes of POSIX"),
    pytest.mark.xdist_group("chromium"),
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    for number in range(3):
        (tmp_path / f"perf-{number}.json").write_text(PERF, encoding="utf-8")
    (tmp_path / "cut.json").write_text(PERF[:9000], encoding="utf-8")
    shutil.copytree(BEFORE / "matrix", tmp_path / "matrix")
    content = json.loads(PERF)
    content |= {"model": HOSTILE * 3, "warnings": [HOSTILE]}
    (tmp_path / f"<script>alert(1)<a href='x'>\"{'very-long-' * 15}\u202e\n.json").write_text(
        json.dumps(content), "utf-8"
    )
    started = Site(tmp_path)
    yield started
    started.close()


def _complaints(shown: Page, site: Site) -> dict[str, list[str]]:
    found = page_checks.complaints(shown)
    elsewhere = [address for address in found.pop("requests", []) if not address.startswith(f"http://{site.host}/")]
    return {**found, **({"requests": elsewhere} if elsewhere else {})}


def _wait(shown: Page, condition: str) -> None:
    """Until a condition holds; a page that is being left does not answer."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(AssertionError):
            if shown.run(f"document.readyState === 'complete' && ({condition})"):
                return
        time.sleep(0.05)
    raise AssertionError(f"it did not happen: {condition}")


@pytest.mark.parametrize(
    ("path", "views"),
    [
        ("/", ("light", "dark", "phone", "paper")),
        ("/run/{run}", ("light", "phone")),
        ("/models", ("dark", "phone")),
        ("/findings", ("phone",)),
        ("/?with={run}&q=perf", ("light", "phone")),
    ],
)
def test_a_page_is_right_in_every_view(path: str, views: tuple[str, ...], site: Site, browser: Chromium) -> None:
    address = f"http://{site.host}{path.format(run=site.id('perf-0.json'))}"
    with browser.page(site.server.address):
        pass  # the cookie is there from now on
    found = {}
    for view in views:
        with browser.page(address, **page_checks.VIEWS[view]) as shown:  # type: ignore[arg-type]
            wrong = _complaints(shown, site)
            if wrong:
                found[view] = wrong
            assert shown.run("typeof hit") == "undefined"
    assert found == {}


def test_somebody_finds_two_runs_and_compares_them(site: Site, browser: Chromium) -> None:
    with browser.page(site.server.address) as shown:
        assert shown.run("location.href") == f"http://{site.host}/", "the token is gone from the address"
        assert shown.run("document.cookie") == "", "no script reads the cookie"
        shown.run("document.querySelector('input[type=search]').value = 'perf-'")
        shown.run("document.querySelector('select[name=kind]').value = 'perf'")
        shown.run("document.querySelector('form.ask').requestSubmit()")
        _wait(shown, "document.querySelectorAll('.pick input').length === 3")
        assert shown.run("document.getElementById('compare').disabled")
        shown.run("[0, 2].forEach(i => document.querySelectorAll('.pick input')[i].click())")
        assert shown.run("document.querySelectorAll('.pick input')[1].disabled")
        shown.run("document.getElementById('compare').click()")
        _wait(shown, "document.querySelector('.columns') !== null")
        assert _complaints(shown, site) == {}


def test_answers_come_after_the_list_where_there_are_many(
    site: Site, browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboards, "_ANSWERS_S", 0.0)
    with browser.page(site.server.address) as shown:
        _wait(shown, "Array.from(document.querySelectorAll('.said')).every(cell => cell.textContent)")
        assert "A run takes 0.0847 ms" in shown.run("document.body.textContent")
        assert _complaints(shown, site) == {}


_SEARCH = (BEFORE / "search" / "journal.jsonl").read_bytes().splitlines(keepends=True)


def _page(run: Run) -> blocks.Page:
    """A page of a search with a picture, a table and something folded, whatever the real one has."""
    count = len(run.value.trials)
    marks = "".join(
        f'<g class="wk-mark" tabindex="0" aria-label="trial {n}"><title>t</title></g>' for n in range(count)
    )
    figure = blocks.Figure(
        "course", "Course", "It shows.", lambda width: f'<svg class="wk-figure" aria-label="{count}">{marks}</svg>'
    )
    rows = [(trial.id, trial.label) for trial in run.value.trials]
    table = blocks.table("Trials", ("id", "label"), [*rows, *((f"x{n}", "more") for n in range(20))])
    folded = blocks.Facts("More", (("a", "b"),), f"{count} folded")
    return blocks.Page("autoconfig", "search", f"{count} trials so far.", (figure, table, folded))


def test_a_run_that_grows_is_followed(
    site: Site, browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboards, "make_page", _page)
    folder = tmp_path / "search"
    folder.mkdir()
    (folder / "journal.jsonl").write_bytes(b"".join(_SEARCH[:4]))
    with browser.page(site.server.address) as shown:
        shown.go(f"http://{site.host}/run/{site.id('search')}")
        assert "2 trials so far." in shown.run("document.querySelector('.answer').textContent")
        shown.run("document.querySelector('main > details').open = true")
        shown.run("document.querySelector('.filter').value = 'h1'")
        shown.run("document.querySelectorAll('.wide .wk-mark')[1].focus()")
        with (folder / "journal.jsonl").open("ab") as stream:
            stream.write(_SEARCH[4])
            stream.flush()
            os.fsync(stream.fileno())
        _wait(shown, "document.querySelector('.answer').textContent.includes('3 trials so far.')")
        assert shown.run("document.querySelector('main > details').open"), "it stays open"
        assert shown.run("document.querySelector('.filter').value") == "h1"
        assert shown.run("document.querySelectorAll('table.sorts tbody tr:not([hidden])').length") == 1
        assert shown.run("document.activeElement.getAttribute('aria-label')") == "trial 1"
        assert shown.run("document.querySelectorAll('.wk-mark > title').length") == 0
        shown.run("document.querySelector('table.sorts th button').click()")
        assert shown.run("document.querySelector('table.sorts th').getAttribute('aria-sort')") == "ascending"
        assert "follows the run" in shown.run("document.getElementById('live').textContent")
        shutil.copy(BEFORE / "search" / "autoconfig.json", folder)
        _wait(shown, "document.getElementById('live').textContent === 'The run has ended.'")
        assert _complaints(shown, site) == {}


def test_the_page_of_a_search_shows_its_trials_as_they_come(site: Site, browser: Chromium, tmp_path: Path) -> None:
    folder = tmp_path / "search"
    folder.mkdir()
    (folder / "journal.jsonl").write_bytes(b"".join(_SEARCH[:4]))
    ids = "Array.from(document.querySelectorAll('main td:first-child')).map(cell => cell.textContent)"
    with browser.page(site.server.address) as shown:
        shown.go(f"http://{site.host}/run/{site.id('search')}")
        assert "h1" in shown.run(ids)
        assert "h2" not in shown.run(ids)
        for count in (5, 7):
            (folder / "journal.jsonl").write_bytes(b"".join(_SEARCH[:count]))
            _wait(shown, f"{ids}.includes('h{count // 2}')")
        assert _complaints(shown, site) == {}


def test_a_page_says_when_the_dashboard_is_gone(
    site: Site, browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboards, "make_page", _page)
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "journal.jsonl").write_bytes(b"".join(_SEARCH[:4]))
    with browser.page(site.server.address) as shown:
        shown.go(f"http://{site.host}/run/{site.id('search')}")
        site.server.token = "another"  # as after a new start
        _wait(shown, "document.getElementById('live').textContent.includes('does not answer')")
