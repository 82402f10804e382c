"""The page of an evaluation: metrics against reference and limit, answers, agreement, classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from measured import ENVIRONMENT
from pictures import HOSTILE, check_figures, marks
from winml.modelkit.core import plain_text
from winml.modelkit.core.latency import Interval
from winml.modelkit.core.placement import Placement
from winml.modelkit.evaluation.checks import Answer, Check
from winml.modelkit.evaluation.distance_report import LeastSpread, MostSpread, OutputDistance
from winml.modelkit.evaluation.metrics import Estimate, Kind, MetricEstimate
from winml.modelkit.evaluation.report import DataFacts
from winml.modelkit.evaluation.result import EvalResult, EvaluatedModel, Samples, Scores
from winml.modelkit.render.pages.evaluate import class_overlaps, evaluate_page
from winml.modelkit.render.pages.page import Cell, Facts, Figure, Notices, Page, Table, figures


def _found(value: float | None, low: float, high: float, kind: Kind = "share", **changes: Any) -> MetricEstimate:
    interval = None if value is None else Interval(low=low, high=high, level=changes.pop("level", 0.95))
    whole: dict[str, Any] = {"value": value, "interval": interval, "n": 500, "method": "wilson", "reason": None}
    return MetricEstimate(kind=kind, **{**whole, **changes})


def _side(**metrics: MetricEstimate) -> EvaluatedModel:
    return EvaluatedModel(
        model="out/int8.onnx", target="qnn/npu", simulated=True, metrics=metrics,
        placement=Placement("QNNExecutionProvider", {"QNNExecutionProvider": 12}, {}, {}),
        provider_options={}, fixed_dims={}, environment=ENVIRONMENT,
    )  # fmt: skip


def _result(**changes: Any) -> EvalResult:
    alone = EvalResult(
        **vars(_side(accuracy=_found(0.992, 0.9796, 0.9969))),
        task="image-classification", metric="accuracy", reference=None, drop=None, agreement=None, distance=None,
        outputs=None,
        data=DataFacts(source="data/test.npz", digest="sha256:1", samples=500, limit=None, seed=0, columns={}),
        samples=Samples(n=500, candidate=Scores(series={}, predictions=()), reference=None),
        notes=(), warnings=(), checks=(),
    )  # fmt: skip
    return replace(alone, **changes)


def _distance(name: str, median: float, least: float) -> OutputDistance:
    return OutputDistance(
        output=name, runs=500, equal=3, incomparable=0, cosine=LeastSpread(min=least, median=median),
        max_abs=MostSpread(max=1.5, median=0.1), sqnr_db=LeastSpread(min=17.6, median=37.9),
    )  # fmt: skip


def _check(name: str, limit: float, answer: Answer, metric: str = "accuracy", needed: int | None = None) -> Check:
    return Check(check=name, metric=metric, limit=limit, by="interval", answer=answer, needed=needed)  # type: ignore[arg-type]


REFERENCE = replace(_side(accuracy=_found(0.994, 0.9825, 0.998)), model="fp32.onnx", target="cpu", simulated=False)
COMPARED: dict[str, Any] = {
    "reference": REFERENCE,
    "drop": {"accuracy": _found(0.002, -0.0034, 0.0089, level=0.9, worse=3, better=2)},
    "agreement": Estimate(value=0.998, interval=None, n=500, method="wilson", reason="few"),
    "distance": (_distance("logits", 0.99991, 0.9994), _distance("boxes", 0.97, 0.91)),
}


def _figure(page: Page, name: str) -> Figure:
    return next(one for one in figures(page) if one.name == name)


def test_a_model_alone_has_its_metric_with_its_interval() -> None:
    page = evaluate_page(_result())
    assert page.title == "int8.onnx on qnn/npu: image-classification"
    assert page.answer == "accuracy is 99.20 % (97.96 to 99.69 at 95 %) on 500 samples."
    assert page.state == "simulated"
    assert check_figures(page) == {"metrics": check_figures(page)["metrics"]}
    assert marks(_figure(page, "metrics").draw(760)) == [
        "accuracy, int8.onnx on qnn/npu: 99.20 % (97.96 to 99.69 at 95 %)"
    ]


def test_a_reference_is_drawn_beside_it_with_the_drop_answers_and_agreement() -> None:
    page = evaluate_page(_result(**COMPARED))
    texts = check_figures(page)
    assert list(texts) == ["metrics", "drop", "answers", "agreement"]
    assert "0.20 points worse than the reference (-0.34 to 0.89 at 90 %)" in page.answer
    assert {"accuracy", "accuracy, reference", "99.20 %", "99.40 %"} <= set(texts["metrics"])
    assert {"+0.20", "like the reference"} <= set(texts["drop"])
    assert _figure(page, "answers").sentence == "5 of 500 answers changed (accuracy): 3 to wrong and 2 to right."
    assert marks(_figure(page, "answers").draw(760)) == [
        "both right: 494 of 500 samples",
        "only the reference right: 3 of 500 samples",
        "only the model right: 2 of 500 samples",
        "both wrong: 1 of 500 samples",
    ]
    agreement = _figure(page, "agreement")
    assert agreement.sentence.startswith(
        "boxes has a cosine of 0.970000 to the reference's in the median run and 0.910000"
    )
    assert "Both answer alike for 99.80 % (no interval: few) of samples." in agreement.sentence
    assert marks(agreement.draw(340))[1].startswith("logits: cosine 0.999910 in the median run, 0.999400 in the worst")


@pytest.mark.parametrize(
    ("checks", "state", "words"),
    [
        ((_check("max-drop", 0.02, "within"),), "within", "accuracy dropped by at most 2 points: held."),
        ((_check("max-drop", 0.001, "exceeded"), _check("min-metric", 0.9, "within")), "exceeded",
         "0.1 points: not held."),
        ((_check("min-metric", 0.99, "inconclusive", needed=9000),), "inconclusive",
         "accuracy at least 99 %: open: the samples do not decide it; about 9,000 samples would."),
        ((_check("min-agreement", 0.99, "exceeded", "cosine"),), "exceeded",
         "agreement (median cosine) at least 0.99: not held."),
    ],
)  # fmt: skip
def test_limits_are_lines_and_the_worst_answer_is_the_state(checks: tuple[Check, ...], state: str, words: str) -> None:
    page = evaluate_page(_result(**COMPARED, checks=checks))
    assert page.state == state
    assert words in page.answer
    texts = check_figures(page)
    lines = {"max-drop": ("drop-accuracy", "limit "), "min-metric": ("metric-accuracy", "at least "),
             "min-agreement": ("agreement", "at least 0.99")}  # fmt: skip
    for check in checks:
        name, line = lines[check.check]
        assert any(text.startswith(line) for text in texts[name])
    limits = next(one for one in page.blocks if isinstance(one, Table) and one.title == "Limits")
    assert [cell.state for row in limits.rows for cell in row.cells if isinstance(cell, Cell)] == [
        check.answer for check in checks
    ]


def test_a_correlation_is_no_percentage_and_an_unknown_metric_says_why() -> None:
    metrics = {
        "spearman": _found(0.81234, 0.7, 0.9, "spearman"),
        "pearson": _found(None, 0, 0, "pearson", reason="one side is the same for all samples"),
        "accuracy": _found(0.5, 0.4, 0.6),
    }
    page = evaluate_page(_result(metrics=metrics, metric="spearman"))
    texts = check_figures(page)
    assert page.answer.startswith("spearman is 0.8123 (0.7000 to 0.9000 at 95 %)")
    assert list(texts) == ["metrics", "metrics-correlations"]
    assert "0.8123" in texts["metrics-correlations"]
    unknown = next(one for one in page.blocks if isinstance(one, Facts) and one.title.startswith("Metrics without"))
    assert unknown.pairs == (("pearson", "unknown: one side is the same for all samples"),)


def test_numbers_on_scales_of_their_own_have_a_picture_each() -> None:
    metrics = {
        "delta1": _found(0.9, 0.85, 0.94, kind="mean"),
        "abs_rel": _found(0.11, 0.1, 0.12, kind="number"),
        "rmse": _found(2.5, 2.1, 2.9, kind="number"),
    }
    drop = {"abs_rel": _found(0.01, -0.01, 0.02, level=0.9, kind="number")}
    page = evaluate_page(_result(metrics=metrics, reference=replace(REFERENCE, metrics=metrics), drop=drop))
    texts = check_figures(page)
    assert list(texts) == ["metrics", "metrics-abs-rel", "metrics-rmse", "drop-abs-rel"]
    assert "2.5000" in texts["metrics-rmse"]
    assert "rmse, with intervals" in texts["metrics-rmse"]


def test_a_better_model_is_said_to_be_better() -> None:
    drop = {"accuracy": _found(-0.01, -0.02, 0.001, level=0.9)}
    page = evaluate_page(_result(reference=REFERENCE, drop=drop))
    assert "1.00 points better than the reference (-0.10 to 2.00 at 90 %)" in page.answer
    assert "answers" not in check_figures(page)


def test_outputs_without_labels_are_judged_by_their_cosine() -> None:
    changes = {**COMPARED, "metrics": {}, "metric": None, "drop": {}, "agreement": None}
    page = evaluate_page(_result(**changes))
    assert page.answer == "The least median cosine of an output to the reference's is 0.970000 on 500 samples."
    unknown = replace(_distance("a", 1, 1), cosine=None, max_abs=None, sqnr_db=None, incomparable=500)
    page = evaluate_page(_result(**{**changes, "distance": (unknown,)}))
    assert "is unknown on 500 samples" in page.answer
    assert check_figures(page) == {}


def test_classes_are_drawn_from_their_records_the_worst_first() -> None:
    records = ({"0": [8, 10], "1": [1, 10]}, {"0": [9, 10], "2": [5, 10]})
    theirs = ({"0": [10, 10], "1": [4, 10]},)
    assert class_overlaps(records) == pytest.approx({"0": 0.85, "1": 0.1, "2": 0.5})
    assert (
        class_overlaps("0101")
        == class_overlaps(None)
        == class_overlaps((0.5, 1.0))
        == class_overlaps(({"a": 3},))
        == {}
    )
    samples = Samples(
        n=500,
        candidate=Scores(series={"overlap": records}, predictions=()),
        reference=Scores(series={"overlap": theirs}, predictions=()),
    )
    page = evaluate_page(_result(metrics={"mean_iou": _found(0.48, 0.4, 0.6, "mean_iou")}, samples=samples))
    texts = check_figures(page)
    assert _figure(page, "classes").sentence == (
        "Class 1 overlaps least (10.0 %), class 0 most (85.0 %). Small dots are the reference."
    )
    assert {"class 1", "10.0 %", "class 2", "50.0 %", "class 0", "85.0 %"} <= set(texts["classes"])
    assert marks(_figure(page, "classes").draw(760))[0] == "class 1: 10.00 %, reference 40.00 %"


def test_a_run_over_a_part_says_how_large_it_is_and_notes_are_notes() -> None:
    data = DataFacts(source="t.npz", digest="", samples=500, limit=120, seed=7, columns={"image": "pixels"})
    samples = Samples(n=120, candidate=Scores(series={}, predictions=()), reference=None)
    page = evaluate_page(_result(data=data, samples=samples, notes=("read differently",), warnings=("7 gave NaN",)))
    assert "on 120 of 500 samples" in page.answer
    facts = next(dict(one.pairs) for one in page.blocks if isinstance(one, Facts) and one.title == "Data and models")
    assert facts["samples"] == "120 of 500, at most 120 chosen with seed 7"
    assert facts["columns"] == "image from pixels"
    assert facts["digest of the data"] == "unknown"
    assert Notices(("read differently",), "note") in page.blocks
    assert Notices(("7 gave NaN",)) in page.blocks


def test_many_outputs_and_classes_with_hostile_names() -> None:
    records = tuple({f"{HOSTILE}{n}": [n % 9, 10] for n in range(100)} for _ in range(3))
    result = _result(
        **{
            **COMPARED,
            "metrics": {HOSTILE: _found(0.5, -1e9, 1e9), "mean_iou": _found(0.5, 0.4, 0.6, "mean_iou")},
            "drop": {HOSTILE: _found(0.5, -1e9, 1e9), "mean_iou": _found(0.0, 0.0, 0.0, "mean_iou")},
            "distance": tuple(_distance(f"{HOSTILE * 9}{n}", 1 - 0.1**n, -1.0) for n in range(80)),
            "samples": Samples(n=500, candidate=Scores(series={"overlap": records}, predictions=()), reference=None),
            "model": HOSTILE, "task": HOSTILE, "notes": (HOSTILE,), "warnings": (HOSTILE,),
            "checks": (_check("max-drop", 0.1, "within", HOSTILE), _check("min-metric", 0.9, "exceeded", "mean_iou")),
        }
    )  # fmt: skip
    page = evaluate_page(plain_text.values(result))
    check_figures(page)
    assert "The 30 of 80 outputs that agree least are drawn." in _figure(page, "agreement").sentence
    assert "The 20 worst of 100 classes are drawn." in _figure(page, "classes").sentence
