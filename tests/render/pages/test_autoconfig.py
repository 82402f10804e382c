"""The report of a search: the answer first, every number as in the result, what is boring folded."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from pictures import HOSTILE, NARROW, check_page, figure_of, marks, rows_of, table_of
from search_values import EVERYTHING, H0, H1, OTHERS, accuracy, search, trial, verdict
from winml.modelkit.core.latency import Interval
from winml.modelkit.render.pages.autoconfig import autoconfig_page
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.render.pages.page import Group, Table, figures, walk
from winml.modelkit.search.result import SearchResult, SearchTime, TrialResult
from winml.modelkit.search.trial import Note, TrialArtifact

NOTHING = "it changes nothing in this model"
NOTES = (
    *(Note(kind="skip", knob=f"optimize.pass_{i}", level="on", source="graph", reason=NOTHING) for i in range(46)),
    Note(kind="skip", knob="optimize.rms", level="on", source="graph", reason="needs opset 23; the model has 17"),
    Note(kind="skip", knob="session.level", level="off", source="cpu-102", reason="slower (cpu-102, confirmed)"),
    Note(kind="boost", knob="optimize.fuse", level="on", source="graph", reason="it changes 9 nodes"),
)  # fmt: skip
TIME = SearchTime(budget_s=100.0, preparation_s=5.0, delivery_s=2.0)


def _timed(seconds: float, one: TrialResult, **given: Any) -> TrialResult:
    return replace(one, seconds=seconds, choice={"quantize.scheme": "int8"}, **given)


def test_the_answer_is_the_champion_with_everything_it_gains_and_costs() -> None:
    page = autoconfig_page(EVERYTHING)
    assert (page.kind, page.title, page.state) == ("autoconfig", "digits.onnx on cpu", "confirmed")
    assert page.answer == (
        "h1 is 3.02x faster (2.87 … 3.18): 0.594 ms instead of 1.78 ms; accuracy 0.9920 (0.0020 lower); "
        "162.6 KiB instead of 605.7 KiB."
    )
    assert page.command == EVERYTHING.next
    check_page(page)


def test_rounds_of_the_race_are_dots_where_the_journal_has_them() -> None:
    rounds = {"h1": (2.9, 3.0, 3.1), "h99": (1.0, 1.0)}
    drawn, without = (figure_of(autoconfig_page(EVERYTHING, found), "trials") for found in (rounds, {}))
    assert drawn.draw(NARROW).count("<circle") == without.draw(NARROW).count("<circle") + 3
    assert "rounds of the race" in drawn.sentence
    assert "rounds of the race" not in without.sentence
    check_page(autoconfig_page(EVERYTHING, rounds))


@pytest.mark.parametrize(
    ("result", "state", "words"),
    [
        (search(H0, OTHERS[0]), "no gain",
         "No gain: no config tried is faster and accurate enough; the baseline stays."),
        (search(H0, champion=None, finished=False), "undecided", "No champion: the search is not finished."),
        (search(H0, replace(H1, confirmation=None), champion=None, finished=False), "undecided",
         "No champion: the search is not finished; the best so far is h1, 2.94x faster (2.50 … 3.33), which is not "
         "confirmed."),
    ],
)  # fmt: skip
def test_a_search_without_a_champion_says_so(result: SearchResult, state: str, words: str) -> None:
    page = autoconfig_page(result)
    assert (page.answer, page.state) == (words, state)
    check_page(page)


def test_what_the_champion_changes_comes_before_everything_else() -> None:
    why = Note(kind="boost", knob="quantize.scheme", level="int8", source="graph", reason="it changes 9 nodes")
    best = replace(H1, choice={"quantize.scheme": "int8", "session.nchwc": "off"}, because=(why,),
                   changes={"quantize": {"mode": "static", "op_types": None}})  # fmt: skip
    page = autoconfig_page(search(H0, best))
    first = page.blocks[0]
    assert isinstance(first, Table)
    assert first.title == "What h1 changes"
    assert rows_of(first) == [("quantize.scheme", "int8", "it changes 9 nodes (graph)"), ("session.nchwc", "off", "")]
    text = page_html(page)
    assert "<dt>quantize.mode</dt><dd>static</dd><dt>quantize.op_types</dt><dd>none</dd>" in text
    assert text.index("What h1 changes") < text.index('data-figure="trials"')


def test_every_measured_config_is_a_row_with_its_interval_and_state() -> None:
    figure = figure_of(autoconfig_page(EVERYTHING), "trials")
    assert marks(figure.draw(NARROW)) == [
        "h1 quantize.scheme=int8, optimize.conv_add_activation_fusion=on: 3.02x faster (2.87 … 3.18), confirmed",
        "h2 optimize.opset=19: same speed (0.99 … 1.01), no gain",
        "h4 optimize.opset=23: 1.05x slower (1.01 … 1.09), probably slower",
        "h3 optimize.opset=21: 1.25x slower (1.20 … 1.30), slower",
    ]
    assert figure.sentence == (
        "1 of 4 measured configs is proven faster, h1 most: 3.02x faster (2.87 … 3.18). "
        "4 more without a number: 1 screened out, 1 inaccurate, 1 failed, 1 same graph."
    )
    without = figure_of(autoconfig_page(search(H0, OTHERS[1])), "trials")
    assert without.sentence == "None of 1 measured config is proven faster."


def test_the_front_has_what_no_other_beats_in_the_two_numbers_that_are_drawn() -> None:
    # h2 is on the front of the result only because of its size.
    between = Interval(low=0.98, high=1.0, level=0.95)
    small = TrialArtifact(digest="sha256:2", fingerprint=None, bytes=1000)
    others = (
        trial("h2", "small", "measured", verdict("DISCARD", -20, -25, -15), artifact=small,
              accuracy=replace(accuracy(0.95, 0.04), interval=between)),
        trial("h3", "exact", "measured", verdict("KEEP", 30.0, 25.0, 35.0), accuracy=accuracy(0.9938, 0.0)),
    )  # fmt: skip
    page = autoconfig_page(search(H0, H1, *others, pareto=("h0", "h1", "h2", "h3")))
    front = figure_of(page, "front")
    assert front.title == "Gain and accuracy"
    assert front.sentence == (
        "3 of 4 configs are beaten by no other in gain and accuracy at once: baseline, h3, h1. "
        "Thin lines are 95 % intervals."
    )
    assert "h2: small 1.20x slower (1.15 … 1.25) 0.9500" in marks(front.draw(NARROW))
    sizes = figure_of(page, "size-front")
    assert sizes.sentence.startswith("2 of 4 configs are beaten by no other in gain and size at once: h2, h1.")
    assert any(mark.startswith("baseline: 605.7 KiB") for mark in marks(sizes.draw(NARROW)))
    assert "Beaten by no other in gain, accuracy and size at once: h0, h1, h2, h3." in (
        table_of(page, "Trials").note or ""
    )


def test_a_config_that_seems_better_than_the_champion_is_named_as_not_proven() -> None:
    better = trial("h2", "fast", "measured", verdict("INCONCLUSIVE", 80, -9, 95), accuracy=accuracy(0.999, 0.0))
    sentence = figure_of(autoconfig_page(search(H0, H1, better)), "front").sentence
    assert "The champion h1 is the best of those whose gain is proven." in sentence


def test_numbers_that_are_alike_have_no_picture() -> None:
    same = [replace(one, accuracy=accuracy(0.99400001, 0.0), artifact=None) for one in (H0, H1)]
    names = [figure.name for figure in figures(autoconfig_page(search(*same)))]
    assert names == ["trials", "course"]


def test_what_was_counted_is_a_share_and_has_no_front_of_sizes() -> None:
    counted = [replace(one, verdict=replace(one.verdict, metric=None, interval_pct=None), confirmation=None, times=None)
               for one in (OTHERS[0], H1) if one.verdict]  # fmt: skip
    page = autoconfig_page(search(H0, *counted, objective="size"))
    assert {figure.name for figure in figures(page)} == {"trials", "front", "course"}
    assert "saved" in table_of(page, "Trials").head
    assert "h1 quantize.scheme=int8, optimize.conv_add_activation_fusion=on: +66.0 %, kept" in marks(
        figure_of(page, "trials").draw(NARROW)
    )
    check_page(page)


def test_the_course_has_every_second_and_every_trial() -> None:
    trials = (_timed(20.0, H0), _timed(30.0, H1), _timed(9.0, OTHERS[5]), _timed(50.0, OTHERS[1], reused_from="/old"))
    result = search(*trials, seconds=70.0, time=TIME, ended="the budget is used up")
    figure = figure_of(autoconfig_page(result), "course")
    assert figure.sentence == "3 configs in 70 s; h1 led from 55 s on. Why it ended: the budget is used up."
    assert marks(figure.draw(NARROW)) == [
        "preparation: 5.0 s",
        "h0 baseline: baseline, 20.0 s",
        f"h1 {H1.label}: confirmed, 3.02x faster (2.87 … 3.18), 30.0 s",
        "h7 quantize.scheme=fp16: failed (build), 9.0 s",
        "h3 optimize.opset=21: slower, 1.25x slower (1.20 … 1.30), taken from an earlier search",
        "further rounds of the best and their confirmation: 6.0 s, drawn at the end",
    ]
    assert figure.values is not None
    assert rows_of(figure.values)[2:4] == [
        ("h1", "confirmed", "30.0", "55.0", "3.02x"),
        ("h7", "failed", "9.0", "64.0", ""),
    ]
    stopped = figure_of(autoconfig_page(replace(result, finished=False, ended="not finished")), "course")
    assert stopped.sentence.endswith("It has not ended: not finished.")


def test_the_table_has_every_trial_the_best_first_and_the_champion_marked() -> None:
    table = table_of(autoconfig_page(EVERYTHING), "Trials")
    assert [row[0] for row in rows_of(table)] == ["h1", "h2", "h0", "h4", "h3", "h5", "h6", "h7", "h8"]
    assert [row.marked for row in table.rows] == [True, *[False] * 8]
    assert rows_of(table)[0] == (
        "h1", "confirmed", "quantize.scheme=int8, optimize.conv_add_activation_fusion=on", "3.02x faster (2.87 … 3.18)",
        "0.594", "0.9920", "162.6 KiB",
    )  # fmt: skip
    reasons = rows_of(table_of(autoconfig_page(EVERYTHING), "Reasons"))
    assert ("h7", "failed (build)", "quantize.scheme=fp16", "the runtime refused it") in reasons


def test_settings_that_do_nothing_are_folded_behind_their_count_and_rare_reasons_come_first() -> None:
    page = autoconfig_page(search(H0, H1, insight=NOTES))
    titles = [block.title for block in page.blocks if isinstance(block, Table | Group)]
    assert titles.index("Trials") < titles.index("Skipped settings") < titles.index("Reordered settings")
    folded = table_of(page, "47 settings do not apply to this graph")
    assert rows_of(folded)[0] == ("optimize.rms=on", "graph", "needs opset 23; the model has 17")
    assert len(folded.rows) == 47
    assert rows_of(table_of(page, "1 setting ruled out by finding cpu-102"))[0][1] == "cpu-102"
    moved = table_of(page, "Reordered settings")
    assert moved.folded == "1 setting moved to another place in the order"
    text = page_html(page)
    assert text.index('data-figure="course"') < text.index(NOTHING)


def test_a_long_search_is_folded_aggregated_and_says_so() -> None:
    chance = random.Random(1)
    many = [
        trial(f"h{i}", f"optimize.opset={i}", "measured", verdict("DISCARD", g := chance.gauss(0, 20), g - 5, g + 5),
              accuracy=accuracy(round(chance.uniform(0.9, 1), 4), 0.0), reason="r", seconds=3.0,
              artifact=TrialArtifact(digest="sha256:1", fingerprint=None, bytes=chance.randrange(10**6)))
        for i in range(2, 1500)
    ]  # fmt: skip
    result = search(H0, H1, *many, seconds=5000.0)
    page = autoconfig_page(result)
    assert figure_of(page, "trials").sentence.endswith("The best 20 are drawn.")
    assert len(marks(figure_of(page, "trials").draw(NARROW))) == 20
    assert figure_of(page, "front").sentence.endswith("200 of 1500 configs are drawn.")
    assert "Neighbours of 1502 steps are drawn as one." in figure_of(page, "course").sentence
    assert len(table_of(page, "Trials").rows) == 20
    assert len(table_of(page, "1480 more trials").rows) == 1480
    for figure in figures(page):
        assert len(figure.draw(NARROW)) < 150_000, figure.name
    assert len(page_markdown(page)) < 65_536


def test_hostile_names_are_text() -> None:
    bad = replace(H1, label=HOSTILE, choice={HOSTILE: HOSTILE}, changes={HOSTILE: {HOSTILE: HOSTILE}}, reason=HOSTILE)
    note = Note(kind="skip", knob=HOSTILE, level=HOSTILE, source="graph", reason=HOSTILE)
    result = search(H0, bad, model=f"/m/{HOSTILE}", notes=(HOSTILE,), insight=(note,), ended=HOSTILE)
    text = check_page(autoconfig_page(result))
    assert "<script>alert" not in text


def test_a_search_that_measured_nothing_has_a_page() -> None:
    page = autoconfig_page(search(champion=None, finished=False, trials=()))
    assert not figures(page)
    check_page(page)
    only = autoconfig_page(search(replace(H0, accuracy=None, artifact=None), champion=None, finished=False))
    assert [figure.name for figure in figures(only)] == ["course"]
    check_page(only)


def test_every_block_that_a_reader_does_not_ask_for_is_folded() -> None:
    page = autoconfig_page(search(H0, H1, insight=NOTES))
    opened = [block.title for block in walk(page.blocks) if isinstance(block, Table) and block.folded is None]
    assert opened == ["Trials"]
