"""What a search says: the champion, words for trials, what was skipped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from search_values import BASELINE, EVERYTHING, H0, H1, OTHERS, WINNER, accuracy, search
from winml.modelkit.render.autoconfig import autoconfig_text, skipped_text
from winml.modelkit.render.pages.autoconfig import autoconfig_page
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.render.screen import Screen, columns_of, made_for
from winml.modelkit.render.wrap import fit
from winml.modelkit.search.trial import Note


def test_the_headline_has_the_name_of_the_model_and_milliseconds_before_and_after() -> None:
    lines = autoconfig_text(EVERYTHING).splitlines()
    assert lines[:4] == [
        "digits.onnx on cpu · searched for latency in 75 s",
        f"champion h1  {WINNER}",
        "  3.02x faster (2.87 … 3.18): 0.594 ms instead of 1.78 ms",
        "  accuracy 0.9920 (0.0020 lower) · 162.6 KiB instead of 605.7 KiB",
    ]
    assert lines[-2:] == [
        "* Pareto-optimal in speed, accuracy and size",
        "9 of thousands of configs tried; the budget is used up",
    ]


def test_every_trial_has_its_word_and_a_reason_where_numbers_do_not_tell() -> None:
    rows = {line.split()[0]: line for line in autoconfig_text(EVERYTHING).splitlines() if line.startswith("  h")}
    words = {"h0": "baseline", "h1*": "confirmed", "h2": "no gain", "h3": "slower", "h4": "probably slower",
             "h5": "screened out", "h6": "inaccurate", "h7": "failed (build)", "h8": "same graph"}  # fmt: skip
    assert {name: line[9:].split("  ")[0] for name, line in rows.items()} == words
    assert rows["h2"].rstrip().endswith("KiB")
    assert "same speed" in rows["h2"]
    assert "1.25x slower  (1.20 … 1.30)" in rows["h3"]
    assert rows["h4"].endswith("probably slower: why")
    assert rows["h5"].endswith("3.0 times slower in a probe of 3 runs")
    made = autoconfig_page(EVERYTHING)
    for page in (page_markdown(made), page_html(made)):
        assert all(word in page for word in words.values())
        assert "KEEP" not in page
        assert "digits.onnx on cpu" in page


def test_a_cosine_is_agreement_and_a_metric_keeps_its_name() -> None:
    agreeing = [replace(one, accuracy=accuracy(0.9991, None, "agreement")) for one in (H0, H1)]
    text = autoconfig_text(search(*agreeing, gate=BASELINE.gate, pareto=("h1",)))
    assert "agreement 0.9991 ·" in text
    assert "* Pareto-optimal in speed, agreement and size" in text
    assert "accura" not in text
    known = H0.accuracy
    assert known is not None
    named = [replace(one, accuracy=replace(known, metric="f1")) for one in (H0, H1)]
    assert "  f1 0.9940 (unchanged) ·" in autoconfig_text(search(*named))


@pytest.mark.parametrize(("kind", "words"), [("task", "accurate enough"), ("agreement", "agrees with the given model")])
def test_a_search_without_a_gain_says_so(kind: Any, words: str) -> None:
    gate = replace(BASELINE.gate, limits=replace(BASELINE.gate.limits, kind=kind))
    text = autoconfig_text(search(H0, OTHERS[0], gate=gate))
    assert f"no gain: no config tried is faster and {words}; the baseline stays\n" in text


def note(kind: Any, source: str, level: str = "on") -> Note:
    return Note(kind=kind, knob="optimize.x", level=level, source=source, reason="")


def test_what_was_skipped_is_told_by_reason() -> None:
    notes = [note("skip", "graph")] * 49 + [
        note("skip", "cpu-101"),
        note("blocked", "cpu-102"),
        note("skip", "cpu-102"),
    ]
    assert skipped_text([*notes, note("boost", "graph"), note("order", "cpu-001")], "latency") == (
        "52 settings skipped: 49 do not apply to this graph, 3 ruled out by findings cpu-101, cpu-102"
    )
    assert skipped_text([note("skip", "npu-006")], "latency") == "1 setting skipped: 1 ruled out by finding npu-006"
    assert skipped_text([note("order", "npu-006")], "latency") == ""
    others = [note("skip", "data"), note("skip", "target"), note("skip", "objective"), note("blocked", "graph")]
    assert skipped_text([*others, note("skip", "objective")], "size") == (
        "5 settings skipped: 1 needs calibration data, 1 is not supported by the target, 2 do not change the size, "
        "1 may not apply to this graph"
    )


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("decorated", [False, True])
def test_nothing_is_wider_than_the_terminal_and_no_word_is_broken(width: int, decorated: bool) -> None:
    with made_for(Screen(width, decorated)):
        text = fit(autoconfig_text(EVERYTHING))
    assert max(map(columns_of, text.splitlines())) <= width
    shown = text.split()
    for word in ("confirmed", "screened", "inaccurate", "faster", "quantize.scheme=dynamic"):
        assert any(word in one for one in shown), word
    assert "the same graph and session as h0" in " ".join(shown)


def test_a_narrow_terminal_keeps_state_config_and_speed() -> None:
    with made_for(Screen(80)):
        lines = autoconfig_text(EVERYTHING).splitlines()
    head = next(line for line in lines if line.startswith("  trial"))
    assert head.split()[:4] == ["trial", "state", "config", "speed"]
    assert any(line.strip().startswith("not shown: 95 %") for line in lines)
