"""The reports of probes, contributions and reviews."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from drawn import HOSTILE, NARROW, check_page, figure_of, marks_of, rows_of, table_of
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.values import read
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.page import Table
from winml.modelkit.render.pages.support import batch_page, contribution_page, probe_page, review_page
from winml.modelkit.support.batch import BatchResult, BatchRow
from winml.modelkit.support.place import SandboxUse
from winml.modelkit.support.probe_result import Attempt, Obstacle, ProbedModel, ProbeResult
from winml.modelkit.support.produce import ProduceResult
from winml.modelkit.support.review.command import (
    NoContribution,
    ReviewedContribution,
    ReviewResult,
    ScopeAnswer,
    StepAgain,
)
from winml.modelkit.support.review.contribution import Contribution
from winml.modelkit.support.review.dossier import changes, reject
from winml.modelkit.support.review.evidence import Record
from winml.modelkit.support.review.ladder import Rung

BEFORE = Path(__file__).parents[2] / "goldens" / "before" / "contribution"


@cache
def _made() -> Contribution:
    return read(Contribution, read_json(BEFORE / "contribution.json"))


@cache
def _records() -> list[Record]:
    return [read(Record, read_json(BEFORE / "evidence" / f"{step}.json")) for step in _made().steps]


def _review(**given: Any) -> ReviewResult:
    made = _made()
    steps = tuple(StepAgain(step=step, exit_code=0, seconds=2.0, contradictions=()) for step in made.steps)
    scope = ScopeAnswer(asked=False, reason="no repository", repository=None, base=None, head=None, files=None)
    stated = ReviewedContribution(model="wide.onnx", digest="sha256:1", tiers=made.tiers, reached=made.reached)
    fields = {"folder": "/x/contribution", "items": (), "rerun": steps, "contribution": stated, "scope": scope,
              "sandbox": SandboxUse(kind="unshare", limits=None), "verdict": "APPROVE", **given}  # fmt: skip
    return ReviewResult(**fields)


def test_an_approved_contribution_has_every_command_confirmed() -> None:
    page = review_page(_review())
    assert (page.title, page.state) == ("Review of contribution", "APPROVE")
    assert page.answer == "Approved: no objection; 11 commands run again, all of them confirm it."
    figure = figure_of(page, "checks")
    assert figure.sentence == "0 checks with objections; 11 of 11 commands run again confirmed it."
    assert marks_of(figure.draw(NARROW))[0] == "probe: confirmed in 2.0 s"
    assert "<dt>sandbox</dt><dd>unshare</dd>" in page_html(page)
    assert "<dt>changed files</dt><dd>not checked: no repository</dd>" in page_html(page)
    check_page(page)


def test_objections_come_first_and_rejections_before_changes() -> None:
    steps = list(_review().rerun)
    steps[8] = replace(steps[8], contradictions=("latency_p50_ms is 0.02, not 0.006",))
    items = (changes("ladder", "nothing is shipped without L2"), reject("precision", "it is fp32"),
             reject("precision", "it is not quantized"))  # fmt: skip
    page = review_page(_review(items=items, rerun=tuple(steps), verdict="REJECT"))
    assert page.answer == "Rejected: precision: it is fp32 (2 more objections)."
    first = page.blocks[0]
    assert isinstance(first, Table)
    assert [row[0] for row in rows_of(first)] == ["precision", "precision", "ladder"]
    marks = marks_of(figure_of(page, "checks").draw(NARROW))
    assert marks[0] == "check `precision`: 2 objections: it is fp32; it is not quantized"
    assert marks[1] == "check `ladder`: 1 objection: nothing is shipped without L2"
    assert "perf-cpu: contradicted in 2.0 s" in marks
    assert rows_of(table_of(page, "Run again"))[8] == (
        "perf-cpu", "contradicted", "0", "2 s", "latency_p50_ms is 0.02, not 0.006",
    )  # fmt: skip
    check_page(page)


def test_what_was_not_run_again_is_not_called_confirmed() -> None:
    page = review_page(_review(items=(reject("files", "x is missing"),), rerun=(), sandbox=None, verdict="REJECT"))
    assert figure_of(page, "checks").sentence == "1 check with objections; nothing was run again."
    assert marks_of(figure_of(page, "checks").draw(NARROW))[-1] == "no command was run again"
    assert "<dt>sandbox</dt><dd>nothing was run again</dd>" in page_html(page)
    unsafe = review_page(_review(sandbox=SandboxUse(kind="none", limits=None)))
    assert "none: commands ran without one" in page_html(unsafe)
    nothing = NoContribution(
        folder="/x/y", items=(reject("contribution", "there is no `contribution.json`"),), rerun=()
    )
    page = review_page(nothing)
    assert page.answer == "Rejected: contribution: there is no `contribution.json`."
    check_page(page)


def test_a_contribution_shows_its_rungs_and_what_it_changed() -> None:
    page = contribution_page(_made(), _records())
    assert (page.title, page.state, page.command) == ("Support of wide.onnx", "reached", None)
    assert page.answer == (
        "L2, the goal, is reached on cpu with precision dynamic; against the default: 67450 bytes instead of 262262, "
        "74.3 % less."
    )
    figure = figure_of(page, "ladder")
    assert figure.sentence == "3 of 4 rungs passed; the goal is L2."
    assert marks_of(figure.draw(NARROW))[2:] == [
        "L2 agrees with its reference: passed: cosine 0.999957, largest difference 0.0144",
        "L3 reaches its task metric: not run: above the committed goal L2",
    ]
    check_page(page)


def test_the_evidence_has_the_times_of_its_commands() -> None:
    rows = rows_of(table_of(contribution_page(_made(), _records()), "Evidence"))
    assert [row[0] for row in rows] == list(_made().steps)
    record = _records()[0]
    assert rows[0][1:] == ("passed", "0", f"{record.seconds:.0f} s", record.started)
    some = rows_of(table_of(contribution_page(_made(), _records()[1:]), "Evidence"))
    assert some[0][:2] == ("probe", "no record")
    assert table_of(contribution_page(_made()), "Commands").folded == "11 commands were run"
    numbers = rows_of(table_of(contribution_page(_made()), "Numbers"))
    assert ("parity", "cosine", "0.999957") in numbers


def test_a_goal_that_is_missed_says_at_which_rung() -> None:
    rungs = (_made().ladder[0], Rung("L1", "HOST-BLOCKED", "qnn is not here", ()), *_made().ladder[2:])
    made = replace(_made(), ladder=rungs, reached="L0", effect=None)
    page = contribution_page(ProduceResult(folder="/x/my folder", contribution=made))
    assert page.state == "missed"
    assert page.answer == (
        "L0 of the goal L2 is reached on cpu with precision dynamic; L1 blocked by this machine: qnn is not here."
    )
    assert page.command is not None
    assert page.command.startswith("winml support review ")
    assert "none was measured" in page_html(page)
    check_page(page)


def _probe(**given: Any) -> ProbeResult:
    model = ProbedModel(reference="/m/conv.onnx", exported=False, digest="sha256:1", family=None, architecture=None,
                        task=None, parts=())  # fmt: skip
    fields = {
        "model": model, "covered": None, "build": Attempt("build default", "PASS", None, None, False, {}),
        "runs": (Attempt("run", "FAIL", "it crashed", "qnn/npu", True, {"QNNExecutionProvider": 8}),), "helps": (),
        "obstacles": (Obstacle("composite", False, "it is one graph"), Obstacle("dynamic-axes", None, "not asked"),
                      Obstacle("external-data", True, "3 GB of weights")),
        "knowledge": (), "recipes": (), "recipe": None, "skeleton": None, "answer": "code", "sentence": "needs code",
        **given,
    }  # fmt: skip
    return ProbeResult(**fields)


def test_a_probe_shows_what_was_tried_and_obstacles_that_apply_first() -> None:
    page = probe_page(_probe())
    assert (page.title, page.answer, page.state) == ("Probe of conv.onnx", "conv.onnx needs code.", "unsupported")
    assert marks_of(figure_of(page, "attempts").draw(NARROW)) == [
        "build default: passed",
        "run on qnn/npu (simulated): failed: it crashed",
    ]
    assert [row[:2] for row in rows_of(table_of(page, "Obstacles"))] == [
        ("external-data", "yes"), ("dynamic-axes", "unknown"), ("composite", "no"),
    ]  # fmt: skip
    calm = probe_page(_probe(obstacles=(Obstacle("composite", False, "it is one graph"),), answer="nothing"))
    assert table_of(calm, "Obstacles").folded == "none of 1 known obstacle applies"
    check_page(page)


def test_several_models_are_counted() -> None:
    row = BatchRow(model="/m/wide.onnx", status="RUN", folder="wide", reached="L2", tiers=_made().tiers, reason=None)
    broken = replace(row, model="/m/broken.onnx", status="BLOCKED-UPSTREAM", reached=None, reason="no ONNX model")
    page = batch_page(BatchResult(folder="/x", models=(row, broken)))
    assert (page.answer, page.state) == ("1 of 2 models are supported.", "partial")
    assert marks_of(figure_of(page, "models").draw(NARROW)) == [
        "/m/wide.onnx: RUN", "/m/broken.onnx: BLOCKED-UPSTREAM: no ONNX model",
    ]  # fmt: skip
    check_page(page)


@pytest.mark.parametrize("kind", ["review", "contribution", "probe"])
def test_hostile_names_are_text(kind: str) -> None:
    step = StepAgain(step=HOSTILE, exit_code=None, seconds=2.0, contradictions=(HOSTILE,))
    pages = {
        "review": lambda: review_page(_review(items=(reject(HOSTILE, HOSTILE),), rerun=(step,), folder=HOSTILE,
                                              verdict="REJECT")),
        "contribution": lambda: contribution_page(replace(
            _made(), ladder=(Rung("L0", "FAIL", HOSTILE, (HOSTILE,)),), files={HOSTILE: HOSTILE},
            model=replace(_made().model, reference=HOSTILE), environment={HOSTILE: HOSTILE},
        ), _records()),
        "probe": lambda: probe_page(_probe(build=Attempt(HOSTILE, "FAIL", HOSTILE, HOSTILE, False, {HOSTILE: 1}),
                                           sentence=HOSTILE)),
    }  # fmt: skip
    assert "<script>alert" not in check_page(pages[kind]())


def test_a_hundred_commands_are_drawn_in_part() -> None:
    steps = tuple(StepAgain(step=f"perf-{i}", exit_code=0, seconds=1.0, contradictions=()) for i in range(100))
    figure = figure_of(review_page(_review(rerun=steps)), "checks")
    assert figure.sentence.endswith("60 of 100 are drawn.")
    assert len(marks_of(figure.draw(NARROW))) == 60
