"""The report of a matrix: a map of models and targets, what failed, sizes."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import pytest

from drawn import HOSTILE, NARROW, WIDE, check_page, check_picture, figure_of, marks_of, rows_of, table_of
from matrix_values import FAILED, PENDING, TARGETS, make_cell, make_plan, make_status
from winml.modelkit.build_matrix.command import PlanResult, RunResult
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.matrix import matrix_page, state_of
from winml.modelkit.render.pages.page import figures

NO_DATA = "precision `w8a16` needs calibration data\nand more"
CELLS = (
    make_cell("digits", 0),
    make_cell("digits", 1),
    make_cell("bert", 0, **FAILED, error=NO_DATA),
    make_cell("bert", 1, upload_status="failed", error="the registry said 500"),
    make_cell("resnet", 0, **FAILED, error=NO_DATA),
    make_cell("resnet", 1, **PENDING),
)


@pytest.mark.parametrize(
    ("given", "feed", "word"),
    [
        ({}, "f", "published"),
        ({"upload_status": "n/a"}, None, "built"),
        ({"upload_status": "n/a"}, "f", "not published"),
        ({"upload_status": "exists-skipped"}, "f", "already published"),
        ({"upload_status": "timeout"}, "f", "upload failed"),
        ({"build_status": "timeout", "upload_status": "skipped"}, "f", "timeout"),
        ({"build_status": None, "upload_status": "uploaded"}, "f", "published"),
        (FAILED, "f", "failed"),
        (PENDING, None, "pending"),
    ],
)
def test_every_cell_has_one_word(given: dict[str, Any], feed: str | None, word: str) -> None:
    assert state_of(make_cell("m", 0, **given), feed).word == word


def test_the_answer_counts_cells() -> None:
    page = matrix_page(make_status(*CELLS))
    assert (page.kind, page.title, page.state) == ("matrix", "Run 20260609", "failed")
    assert page.answer == "2 of 6 cells are published; 3 failed; 1 pending, 42 s left."
    done = matrix_page(make_status(make_cell("digits", 0, upload_status="n/a"), feed=None))
    assert (done.answer, done.state) == ("1 of 1 cell is built.", "ok")
    check_page(page)
    check_page(done)


def test_the_map_has_a_mark_per_cell_with_state_size_and_error() -> None:
    figure = figure_of(matrix_page(make_status(*CELLS)), "matrix")
    assert marks_of(figure.draw(NARROW)) == [
        "digits for qnn/npu (w8a16): published, 781.2 KiB",
        "digits for qnn/gpu (fp32): published, 781.2 KiB",
        "bert for qnn/npu (w8a16): failed, at load, precision `w8a16` needs calibration data",
        "bert for qnn/gpu (fp32): upload failed, at complete, 781.2 KiB, the registry said 500",
        "resnet for qnn/npu (w8a16): failed, at load, precision `w8a16` needs calibration data",
        "resnet for qnn/gpu (fp32): pending",
    ]
    assert figure.sentence == (
        "3 models for 2 targets: 2 published, 1 pending, 1 upload failed, 2 failed. "
        "Failures are of 2 models on 2 targets."
    )
    texts = check_picture(figure.draw(WIDE))
    assert {"digits", "bert", "resnet", "qnn", "npu", "w8a16", "✓ 781 KiB", "✗", "·", "✓ published"} <= set(texts)


def test_failures_that_have_a_target_or_a_model_in_common_are_said_so() -> None:
    good = [make_cell(name, 1) for name in "abc"]
    one_target = [make_cell(name, 0, **FAILED, error="x") for name in "abc"]
    sentence = figure_of(matrix_page(make_status(*one_target, *good)), "matrix").sentence
    assert sentence.endswith("All failures are on qnn/npu.")
    one_model = [make_cell("a", i, **FAILED, error="x") for i in (0, 1)]
    sentence = figure_of(matrix_page(make_status(*one_model, *good[1:])), "matrix").sentence
    assert sentence.endswith("All failures are of a.")


def test_failures_are_grouped_by_reason() -> None:
    rows = rows_of(table_of(matrix_page(make_status(*CELLS)), "What failed"))
    assert rows == [
        ("2", "failed", "load", "precision `w8a16` needs calibration data", "bert for qnn/npu, resnet for qnn/npu"),
        ("1", "upload failed", "upload", "the registry said 500", "bert for qnn/gpu"),
    ]
    many = [make_cell(f"m{i}", 0, **FAILED, error=None) for i in range(9)]
    row = rows_of(table_of(matrix_page(make_status(*many)), "What failed"))[0]
    assert row[0] == "9"
    assert row[-2] == "no message was kept"
    assert row[-1].endswith("m4 for qnn/npu and 4 more")


def test_sizes_are_told_by_target() -> None:
    cells = [make_cell(f"m{i}", t, bytes=(i + 1) * (1 << 20) * (2 if t else 1)) for i in range(3) for t in (0, 1)]
    figure = figure_of(matrix_page(make_status(*cells)), "sizes")
    assert (
        figure.sentence == "What is built for qnn/gpu fp32 is largest: median 4.0 MiB; for qnn/npu w8a16 it is 2.0 MiB."
    )
    assert marks_of(figure.draw(NARROW))[0] == "qnn/gpu fp32: median 4.0 MiB of 3 models, 2.0 MiB to 6.0 MiB"
    assert figure.values is not None
    assert rows_of(figure.values)[0] == ("qnn/npu w8a16", "3", "1.0 MiB", "2.0 MiB", "3.0 MiB", "6.0 MiB")
    assert "sizes" not in {f.name for f in figures(matrix_page(make_status(make_cell("m", 0, **PENDING))))}


def test_a_model_built_in_two_precisions_for_a_target_has_two_columns() -> None:
    cells = [make_cell("m", 0), replace(make_cell("m", 0), precision="fp16", version="other")]
    figure = figure_of(matrix_page(make_status(*cells)), "matrix")
    assert [mark.split(":")[0] for mark in marks_of(figure.draw(NARROW))] == [
        "m for qnn/npu (w8a16)",
        "m for qnn/npu (fp16)",
    ]
    mixed = [make_cell("m", 0), replace(make_cell("n", 0), precision="fp16")]
    assert "mixed" in check_picture(figure_of(matrix_page(make_status(*mixed)), "matrix").draw(WIDE))


def test_a_plan_is_a_map_of_what_will_be_built() -> None:
    result = PlanResult(
        run_stamp="20260609", cells=tuple(make_plan(cell) for cell in CELLS), notes=("data is missing",)
    )
    page = matrix_page(result)
    assert (page.title, page.answer) == ("Plan of run 20260609", "6 cells to build: 3 models for 2 targets.")
    assert "data is missing" in page_html(page)
    assert marks_of(figure_of(page, "matrix").draw(NARROW))[0] == "digits for qnn/npu (w8a16): planned"
    assert len(rows_of(table_of(page, "Cells"))) == 6
    check_page(page)


def test_a_run_says_what_it_took_and_unknown_is_not_zero() -> None:
    status = make_status(*CELLS, nodes={"node-1": {"cores": 8, "cpu": None}}, cluster="dask://x")
    given = {one.name: getattr(status, one.name) for one in fields(status) if one.name != "action"}
    text = page_html(matrix_page(RunResult(**given, sent_bytes=None, seconds=75.0)))
    assert "<dt>sent to the feed</dt><dd>unknown</dd>" in text
    assert "<dt>took</dt><dd>75 s</dd>" in text
    assert "<dt>node-1</dt><dd>cores 8, cpu unknown</dd>" in text
    assert "<dt>feed</dt><dd>none: cells stay in the folder</dd>" in page_html(
        matrix_page(make_status(make_cell("m", 0), feed=None))
    )


def test_thousands_of_models_are_rows_by_what_became_of_them() -> None:
    chance = random.Random(1)
    cells = []
    for model in range(1000):
        for target in range(len(TARGETS)):
            worse = {**FAILED, "error": f"out of memory in run {chance.randrange(5)}"} if chance.random() < 0.1 else {}
            cells.append(make_cell(f"org/model-{model}", target, **{"bytes": chance.randrange(10**8), **worse}))
    page = matrix_page(make_status(*cells))
    figure = figure_of(page, "matrix")
    assert "Models that came out alike are one row. The 25 most frequent of" in figure.sentence
    marks = marks_of(figure.draw(NARROW))
    assert len(marks) == 25 * 8
    assert " models like org/model-" in marks[0]
    assert "every n-th is a dot" in figure_of(page, "sizes").sentence
    assert table_of(page, "Cells").folded == "200 of 8,000 cells, what failed first"
    assert page.answer.startswith("7,")
    text = check_page(page)
    assert len(text) < 400_000


def test_a_usual_run_is_a_small_page() -> None:
    cells = [make_cell(f"org/model-{i}", t) for i in range(24) for t in range(8)]
    assert len(page_html(matrix_page(make_status(*cells)))) < 300_000


def test_hostile_names_are_text() -> None:
    cells = [make_cell(HOSTILE, 0), make_cell(HOSTILE, 1, **FAILED, error=HOSTILE)]
    cells = [replace(cell, ep=HOSTILE, target=HOSTILE, precision=HOSTILE, folder=HOSTILE) for cell in cells]
    page = matrix_page(make_status(*cells, notes=(HOSTILE,), nodes={HOSTILE: {HOSTILE: HOSTILE}}))
    assert "<script>alert" not in check_page(page)


def test_a_run_without_cells_has_a_page() -> None:
    page = matrix_page(make_status())
    assert page.answer == "0 of 0 cells are published."
    check_page(page)
