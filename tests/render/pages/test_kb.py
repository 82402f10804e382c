"""The report about findings: by target, with their evidence against what they claim."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from drawn import HOSTILE, NARROW, check_page, check_picture, figure_of, marks_of, rows_of, table_of
from winml.modelkit.core.distance import Distance
from winml.modelkit.core.evidence import DistanceEvidence, OutputDistances
from winml.modelkit.findings import kb_command
from winml.modelkit.findings.result import EvidenceGain, KbReport, ReplayRow, ReportEntry
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.kb import kb_page
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.render.pages.page import Group, figures, walk


@cache
def _shipped() -> KbReport:
    """What ships with the package."""
    return kb_command.report(None, "page.html")


def _entry(name: str) -> ReportEntry:
    return next(entry for entry in _shipped().entries if entry.finding.id == name)


def _report(*entries: ReportEntry, gaps: Any = ()) -> KbReport:
    return KbReport(file="page.html", entries=entries, gaps=gaps)


@pytest.fixture(autouse=True)
def _no_own_knowledge(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("WINML_KNOWLEDGE", str(tmp_path / "none"))


def test_the_page_of_all_findings_is_whole() -> None:
    text = check_page(kb_page(_shipped()))
    assert len(text) < 300_000
    for entry in _shipped().entries:
        assert text.count(f'id="{entry.finding.id}"') == 1, "a link to a finding finds it"
    assert len(page_markdown(kb_page(_shipped()))) > 1000


def test_findings_stand_by_target_and_single_models_are_folded() -> None:
    text = page_html(kb_page(_shipped()))
    for target in ("cpu", "qnn-npu", "qnn-gpu", "dml-gpu", "any-ep"):
        assert f'<h2 id="{target}">' in text
        assert f'href="#{target}"' in text
    folded = text.index("findings on a single model")
    assert text.index('id="cpu-001"') < folded < text.index('id="cpu-007"')


def test_the_answer_and_the_table_count_by_status() -> None:
    shipped = _shipped()
    page = kb_page(shipped)
    statuses = [entry.finding.status for entry in shipped.entries]
    assert page.answer.startswith(f"{len(statuses)} findings ({statuses.count('confirmed')} confirmed, ")
    assert f"{len(shipped.gaps)} gaps" in page.answer
    counted = {row[0]: row[1] for row in rows_of(table_of(page, "Findings by target"))}
    assert counted["cpu"] == str(sum(entry.target == "cpu" for entry in shipped.entries))
    assert counted["any EP"] == str(sum(entry.target is None for entry in shipped.entries))
    assert len(rows_of(table_of(page, "Gaps"))) == len(shipped.gaps)
    assert kb_page(_report()).answer == "No findings."
    check_page(kb_page(_report()))


def test_the_status_is_a_badge_beside_the_title() -> None:
    page = kb_page(_report(_entry("cpu-101")))
    group = next(b for b in walk(page.blocks) if isinstance(b, Group) and b.anchor == "cpu-101")
    assert group.state == "confirmed"
    assert '<span class="state good"><span aria-hidden="true">✓</span> confirmed</span></h3>' in page_html(page)


def test_samples_are_drawn_with_their_interval_against_the_claimed_gain() -> None:
    entry = _entry("cpu-101")
    figure = figure_of(kb_page(_report(entry)), "evidence-cpu-101")
    assert figure.sentence == "2 of 2 measurements support what is claimed of them. Lines are 95 % intervals."
    gain = entry.gains[0]
    assert gain is not None
    assert gain.interval_pct is not None
    low, high = (1 / (1 - bound / 100) for bound in gain.interval_pct)
    factor = 1 / (1 - gain.gain_pct / 100)
    mark = marks_of(figure.draw(NARROW))[0]
    assert f"{factor:.2f}x faster ({low:.2f} … {high:.2f}), supported, {entry.finding.evidence[0].run}" in mark
    assert {"▒ what is claimed", "✓ supports it", "same speed"} <= set(check_picture(figure.draw(NARROW)))


def test_recorded_medians_are_held_against_their_own_claims() -> None:
    sentence = figure_of(kb_page(_report(_entry("cpu-001"))), "evidence-cpu-001").sentence
    assert sentence == (
        "0 of 3 measurements support what is claimed of them; 2 do not; 1 cannot tell. Lines are 99 % intervals. "
        "One that lies in what is claimed proves nothing where times drift by as much without a change."
    )
    text = figure_of(kb_page(_report(_entry("npu-001"))), "evidence-npu-001").sentence
    assert text.startswith("3 of 7 measurements support")


def test_distances_are_held_against_the_claimed_bound() -> None:
    figure = figure_of(kb_page(_report(_entry("npu-105"))), "distance-npu-105")
    assert figure.sentence == (
        "2 of 2 comparisons support what is claimed of them. Claimed: relative error of the outputs at least 1e-05."
    )
    entry = _entry("npu-107")
    page = kb_page(_report(entry))
    assert "does not support" in " ".join(check_picture(figure_of(page, "distance-npu-107").draw(NARROW)))
    found = next(e for e in entry.finding.evidence if isinstance(e, DistanceEvidence))
    unknown = Distance(same_shape=False, equal=False, max_abs=None, cosine=None, relative=None)
    blind = replace(found, data=OutputDistances(outputs=(unknown,)))
    entry = replace(entry, finding=replace(entry.finding, evidence=(blind,)), judged=(None,), gains=(None,))
    assert not [f for f in figures(kb_page(_report(entry))) if f.name.startswith("distance")]


def test_a_finding_without_numbers_has_no_picture_and_one_of_an_older_version_no_gains() -> None:
    assert figures(kb_page(_report(_entry("cpu-003")))) == []
    old = replace(_entry("cpu-101"), gains=())
    assert figures(kb_page(_report(old))) == []
    check_page(kb_page(_report(old)))


def test_evidence_and_replays_are_folded_behind_their_count() -> None:
    entry = replace(_entry("cpu-101"), outcomes=(ReplayRow(answer="holds", reason="59 % saved", run="today"),))
    page = kb_page(_report(entry))
    rows = rows_of(table_of(page, "2 pieces of evidence"))
    assert [row[4] for row in rows] == list(entry.judged)
    assert rows_of(table_of(page, "1 replay")) == [("holds", "today", "59 % saved")]


def test_texts_of_findings_are_inert() -> None:
    entry = _entry("cpu-101")
    samples = entry.finding.evidence[0]
    bad = replace(
        entry.finding, title=HOSTILE, observation=HOSTILE, caveats=(HOSTILE,), falsified_by=(HOSTILE,), source=HOSTILE,
        evidence=(replace(samples, model=HOSTILE, run=HOSTILE, shows=HOSTILE),),
    )  # fmt: skip
    page = kb_page(_report(replace(entry, target=HOSTILE, finding=bad, judged=(HOSTILE,), gains=entry.gains[:1])))
    assert "<script>alert" not in check_page(page)


def test_a_gain_that_nothing_is_claimed_of_is_told_so() -> None:
    entry = _entry("cpu-101")
    plain = EvidenceGain(gain_pct=0.0, interval_pct=None, level=0.95, claimed_pct=None, answer=None)
    figure = figure_of(kb_page(_report(replace(entry, gains=(plain, plain)))), "evidence-cpu-101")
    assert figure.sentence == "0 of 2 measurements support what is claimed of them."
    assert "· nothing is claimed of it" in check_picture(figure.draw(NARROW))
