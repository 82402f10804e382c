"""The report of searches of several models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from drawn import HOSTILE, NARROW, check_page, figure_of, marks_of, rows_of, table_of
from search_values import H1, search
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.render.pages.page import figures
from winml.modelkit.render.pages.sweep import sweep_page
from winml.modelkit.search.result import Champion, SweepResult, SweepRow

BEST = search(H1).champion
assert BEST is not None


def _row(name: str, factor: float | None, *, status: Any = "KEEP_CONFIRMED", message: str = "it crashed") -> SweepRow:
    champion: Champion | None = None
    error = ErrorObject(code="run-failed", message=message, hint="look at it", exit=1)
    if factor is not None and BEST is not None:
        bounds = (factor * 0.9, factor * 1.1) if status == "KEEP_CONFIRMED" else None
        champion = replace(BEST, factor=factor, speedup=factor, speedup_interval=bounds, status=status)
    return SweepRow(
        model=f"/m/{name}.onnx", folder=f"/out/{name}", error=None if champion else error, champion=champion,
        trials=0 if champion is None else 7, node=None,
    )  # fmt: skip


def _sweep(*rows: SweepRow, total: int | None = None, **given: Any) -> SweepResult:
    return SweepResult(folder="/out", models=rows, total=len(rows) if total is None else total, notes=(), next="open x",
                       **given)  # fmt: skip


ROWS = (_row("a", 1.5), _row("b", 2.5), _row("c", 1.0, status="BASELINE_IS_BEST"), _row("d", None))


def test_the_answer_counts_models_that_gained_failed_and_wait() -> None:
    page = sweep_page(_sweep(*ROWS, total=6))
    assert page.answer == (
        "2 of 6 models got a config that is proven faster, by 1.50x to 2.50x; 1 without a gain; 1 failed; "
        "2 not searched yet."
    )
    assert page.state == "partial"
    assert sweep_page(_sweep(*ROWS[:2])).state == "confirmed"
    assert sweep_page(_sweep(ROWS[2])).state == "no gain"
    assert sweep_page(_sweep(ROWS[3])).state == "failed"
    assert sweep_page(_sweep(total=3)).state == "pending"
    check_page(page)


def test_every_model_is_a_row_the_best_first_with_its_interval() -> None:
    figure = figure_of(sweep_page(_sweep(*ROWS)), "models")
    label = H1.label
    assert marks_of(figure.draw(NARROW)) == [
        f"b.onnx: 2.50x (2.25 … 2.75), confirmed, {label}, 7 trials",
        f"a.onnx: 1.50x (1.35 … 1.65), confirmed, {label}, 7 trials",
        f"c.onnx: 1.00x, no gain, {label}, 7 trials",
    ]
    assert figure.sentence == "b.onnx gains most: 2.50x. Lines are 95 % intervals of fresh rounds."


def test_failures_are_told_with_their_errors() -> None:
    page = sweep_page(_sweep(*ROWS))
    assert rows_of(table_of(page, "Models that failed")) == [("d.onnx", "run-failed", "it crashed", "look at it")]
    assert rows_of(table_of(page, "Models"))[-1] == ("d.onnx", "failed", "", "", "", "", "", "d")


def test_a_search_by_count_has_factors_without_speeds() -> None:
    assert BEST is not None
    counted = replace(ROWS[0], champion=replace(BEST, factor=1.4, speedup=None, speedup_interval=None))
    page = sweep_page(_sweep(counted))
    assert page.answer.startswith("1 of 1 model got a config that is proven better by the objective, by 1.40x")
    assert figure_of(page, "models").sentence == "a.onnx gains most: 1.40x."
    check_page(page)


def test_hundreds_of_models_and_hostile_names() -> None:
    rows = [_row(f"m{i}", 1 + i / 100) for i in range(400)] + [_row(HOSTILE, 9.0), _row("z", None, message=HOSTILE)]
    page = sweep_page(_sweep(*rows))
    figure = figure_of(page, "models")
    assert figure.sentence.endswith("The 30 models that gain most are drawn, of 401.")
    assert len(marks_of(figure.draw(NARROW))) == 30
    assert "<script>alert" not in check_page(page)
    assert not figures(sweep_page(_sweep(_row("d", None))))
