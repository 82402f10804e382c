"""The page of a trace diff: what is drawn is what the diff holds, in one unit each."""

from __future__ import annotations

import pytest

from pictures import HOSTILE, check_figure, check_page, marks
from traces import CPU, QNN, chain, operator, trace
from winml.modelkit.core import plain_text
from winml.modelkit.measuring.trace import TraceDiffResult
from winml.modelkit.measuring.trace_diff import TraceDiff, diff
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.page import Cell, Facts, Figure, Table
from winml.modelkit.render.pages.trace_diff import diff_sentence, trace_diff_blocks, trace_diff_page


def _page_of(found: TraceDiff) -> TraceDiffResult:
    return TraceDiffResult(before="runs/a_op_trace.json", after="runs\\b_op_trace.json", diff=found)


def _figures(found: TraceDiff) -> dict[str, Figure]:
    return {one.name: one for one in trace_diff_blocks(found) if isinstance(one, Figure)}


def _tables(found: TraceDiff) -> dict[str, Table]:
    return {one.title: one for one in trace_diff_blocks(found) if isinstance(one, Table)}


BEFORE = trace(
    *chain([100.0, 50.0]), operator("soft", "Softmax", 40.0), operator("old", "Cast", 30.0),
    summary={"end_to_end_us": 300.0},
)  # fmt: skip
AFTER = trace(
    *chain([300.0, 50.0]), operator("soft", "Softmax", 10.0), operator("new", "Transpose", 20.0),
    summary={"end_to_end_us": 450.0},
)  # fmt: skip


def test_slopes_have_the_values_of_the_groups_and_say_what_is_not_there() -> None:
    found = _figures(diff(BEFORE, AFTER))["changes"]
    texts = check_figure(found)
    assert {"Conv", "100", "300", "▲ 3.00 ×", "Softmax", "40.0", "10.0", "▼ 0.25 ×"} <= set(texts)
    assert {"▲ new", "▼ gone"} <= set(texts)
    assert texts.count("not there") == 2
    said = marks(found.draw(340))
    assert said[0].startswith("Conv: before 100.0 µs, after 300.0 µs; 1 Conv is slower")
    assert "Transpose: before not there, after 20.0 µs" in " ".join(said)
    assert found.sentence.startswith(
        "Conv: from 100.0 µs to 300.0 µs. All groups together: 220.0 µs more and 60.0 µs less."
    )
    assert found.values is not None
    deltas = {row.cells[0]: row.cells[4].sort for row in found.values.rows if isinstance(row.cells[4], Cell)}
    assert deltas["Softmax"] == pytest.approx(-30.0)


def test_the_answer_is_the_whole_run_and_the_most_notable_reason() -> None:
    page = trace_diff_page(_page_of(diff(BEFORE, AFTER)))
    assert page.title == "From a_op_trace.json to b_op_trace.json"
    assert page.answer.startswith(
        "A run takes 450.0 µs and took 300.0 µs (1.50 times). Most notable: 1 Conv is slower ("
    )
    assert page.state is None
    check_page(page)


def test_the_same_trace_twice_changed_nothing() -> None:
    page = trace_diff_page(_page_of(diff(BEFORE, BEFORE)))
    assert page.answer.endswith("No operator changed notably.")
    assert page.state == "no change"
    assert check_page(page) == {}


def test_moved_operators_in_two_units_are_listed_but_never_drawn_on_one_axis() -> None:
    moved = trace(*(operator(one.op_path, one.type, 9000.0, ep=QNN) for one in BEFORE.operators), ep="qnn")
    found = diff(BEFORE, moved)
    assert _figures(found) == {}
    assert "4 operators went to another EP." in diff_sentence(found)
    rows = _tables(found)["What changed"].rows
    assert {row.cells[1] for row in rows} == {"moved to QNN"}
    operators = _tables(found)["Operators that differ"]
    assert operators.folded == "4 operators of 4 differ"
    assert {"100.0 µs", "9,000.0 cycles"} <= {
        cell.text for row in operators.rows for cell in row.cells if isinstance(cell, Cell)
    }


def test_cycles_and_time_have_pictures_of_their_own() -> None:
    before = trace(operator("a", "Conv", 100.0, ep=QNN), operator("q", "QuantizeLinear", 10.0))
    after = trace(operator("a", "Conv", 700.0, ep=QNN), operator("q", "QuantizeLinear", 90.0))
    found = _figures(diff(before, after))
    assert list(found) == ["changes", "changes-us"]
    assert "Cycles are no time" in found["changes"].sentence
    assert "7.00 ×" in " ".join(check_figure(found["changes"]))
    assert "9.00 ×" in " ".join(check_figure(found["changes-us"]))
    totals = next(one for one in trace_diff_blocks(diff(before, after)) if isinstance(one, Facts))
    assert ("operators in cycles", "before 100.0 cycles, after 700.0 cycles (7.00 times)") in totals.pairs
    assert ("a whole run", "before unknown, after unknown") in totals.pairs


def test_many_changes_are_counted_and_hostile_names_are_inert() -> None:
    kinds = [f"{HOSTILE}{n}" for n in range(60)]
    sides = [trace(*(operator(f"{kind}/{'x' * 300}", kind, (n + 1.0) * (n % 7 + 1 if side else 4.0), ep=CPU)
                     for n, kind in enumerate(kinds))) for side in (0, 1)]  # fmt: skip
    found = diff(*sides)
    page = trace_diff_page(plain_text.values(_page_of(found)))
    check_page(page)
    assert "groups that changed less are not drawn" in _figures(found)["changes"].sentence
    assert any(title.endswith("smaller changes") for title in _tables(found))


def test_hundreds_of_changes_make_a_small_page() -> None:
    before = trace(*(operator(f"n{n}", f"Kind{n % 150}", 10.0 + n) for n in range(600)))
    after = trace(*(operator(f"n{n}", f"Kind{n % 150}", 20.0 + (n * 7) % 100) for n in range(600)))
    found = diff(before, after)
    assert len(page_html(trace_diff_page(_page_of(found)))) < 150_000
    assert "; the 100 that differ most" in str(_tables(found)["Operators that differ"].folded)
