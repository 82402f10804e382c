from __future__ import annotations

from dataclasses import replace
from typing import Any

from winml.modelkit.core.environment import Environment, EPVersion, Machine, Power, RuntimeVersion
from winml.modelkit.core.latency import Interval
from winml.modelkit.core.placement import Placement
from winml.modelkit.evaluation.checks import Check
from winml.modelkit.evaluation.distance_report import LeastSpread, MostSpread, OutputDistance
from winml.modelkit.evaluation.metrics import Estimate, Kind, MetricEstimate
from winml.modelkit.evaluation.report import DataFacts
from winml.modelkit.evaluation.result import EvalResult, EvaluatedModel, Samples, Scores
from winml.modelkit.render.evaluate import evaluate_text

ENVIRONMENT = Environment(
    machine=Machine(system="Linux", release="6", architecture="x86_64", cpu=None, cores=2),
    winml="0.1.0",
    python="3.11.7",
    numpy="2.0",
    runtime=RuntimeVersion(name="onnxruntime", version="1.31.1"),
    ep=EPVersion(name="qnn", version=None),
    power=Power(governor=None),
    priority=0,
    load=None,
    pressure_pct=None,
)


def found(value: float, low: float, high: float, kind: Kind = "share") -> MetricEstimate:
    interval = Interval(low=low, high=high, level=0.95)
    return MetricEstimate(kind=kind, value=value, interval=interval, n=500, method="wilson", reason=None)


def side(**metrics: MetricEstimate) -> EvaluatedModel:
    return EvaluatedModel(
        model="out/int8.onnx",
        target="qnn/npu",
        simulated=True,
        metrics=metrics,
        placement=Placement("QNNExecutionProvider", {}, {}, {}),
        provider_options={},
        fixed_dims={},
        environment=ENVIRONMENT,
    )


def result(**changes: Any) -> EvalResult:
    alone = EvalResult(
        **vars(side(accuracy=found(0.994, 0.9825, 0.998))),
        task="image-classification",
        metric="accuracy",
        reference=None,
        drop=None,
        agreement=None,
        distance=None,
        outputs=None,
        data=DataFacts(source="data/test.npz", digest="", samples=500, limit=None, seed=0, columns={}),
        samples=Samples(n=500, candidate=Scores(series={}, predictions=()), reference=None),
        notes=(),
        warnings=(),
        checks=(),
    )
    return replace(alone, **changes)


def test_a_model_alone_has_its_metrics_with_their_intervals() -> None:
    assert evaluate_text(result()) == (
        "int8.onnx on qnn/npu (simulated) (onnxruntime 1.31.1) · image-classification · 500 samples of test.npz\n"
        "            model\n"
        "  accuracy  99.40 % (98.25 … 99.80)"
    )


def test_a_reference_adds_drop_agreement_distance_and_checks() -> None:
    reference = replace(side(accuracy=found(0.996, 0.985, 0.999)), model="fp32.onnx", target="cpu", simulated=False)
    distance = OutputDistance(
        output="logits",
        runs=500,
        equal=0,
        incomparable=1,
        cosine=LeastSpread(min=0.9966, median=0.99993),
        max_abs=MostSpread(max=1.67, median=0.0869),
        sqnr_db=LeastSpread(min=17.61, median=37.9),
    )
    interval = Interval(low=0.985, high=0.999, level=0.95)
    check = Check(check="max-drop", metric="accuracy", limit=0.01, by="interval", answer="inconclusive", needed=900)
    text = evaluate_text(
        result(
            reference=reference,
            drop={"accuracy": found(0.002, -0.008, 0.012)},
            agreement=Estimate(value=0.996, interval=interval, n=500, method="wilson", reason=None),
            distance=(distance,),
            checks=(check,),
        )
    )
    assert text.splitlines()[1:] == [
        "            model                    reference                drop",
        "  accuracy  99.40 % (98.25 … 99.80)  99.60 % (98.50 … 99.90)  +0.20 points (-0.80 … +1.20, 95 %)",
        "  same answers for 99.60 % (98.50 … 99.90) of samples",
        "compared with fp32.onnx on cpu",
        "  output  cosine: min  median    max abs: max  median  SQNR dB: min  median  equal",
        "  logits  0.996600     0.999930  1.67          0.0869  17.6          37.9    0 of 500, 1 not comparable",
        "  accuracy dropped by at most 0.01: cannot tell (by its interval; about 900 samples would decide)",
    ]


def test_a_correlation_is_no_percentage_and_an_unknown_one_says_why() -> None:
    spearman = found(0.81234, 0.7, 0.9, "spearman")
    reason = "one side is the same for all samples"
    unknown = replace(spearman, kind="pearson", value=None, interval=None, reason=reason)
    few = replace(spearman, value=0.5, interval=None, reason="an interval needs at least 4 samples")
    metrics = {"spearman": spearman, "pearson": unknown, "few": few}
    assert evaluate_text(result(metrics=metrics)).splitlines()[2:] == [
        "  spearman  0.8123 (0.7000 … 0.9000)",
        "  pearson   unknown: one side is the same for all samples",
        "  few       0.5000 (no interval: an interval needs at least 4 samples)",
    ]


def test_beside_a_reference_a_reason_for_no_interval_is_said_once() -> None:
    few = replace(found(0.5, 0.4, 0.6), interval=None, reason="an interval needs at least 8 samples")
    reference = replace(side(accuracy=found(0.996, 0.985, 0.999)), model="fp32.onnx", target="cpu", simulated=False)
    text = evaluate_text(result(metrics={"accuracy": few}, reference=reference)).splitlines()
    assert text[2].startswith("  accuracy  50.00 % (no interval)  99.60 % (98.50 … 99.90)")
    assert text[3] == "  no interval: an interval needs at least 8 samples"


def test_errors_and_decibels_are_no_percentages() -> None:
    text = evaluate_text(
        result(metrics={"psnr_db": found(31.25, 30.5, 32.0, "number"), "pq": found(0.5, 0.4, 0.6, "pq")})
    )
    assert "psnr_db  31.2500 (30.5000 … 32.0000)" in text
    assert "50.00 % (40.00 … 60.00)" in text


def test_an_interrupted_run_says_how_far_it_came() -> None:
    samples = Samples(n=120, candidate=Scores(series={}, predictions=()), reference=None)
    assert "120 of 500 samples of test.npz" in evaluate_text(result(samples=samples))
