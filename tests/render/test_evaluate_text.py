from __future__ import annotations

from typing import Any

from winml.modelkit.render.evaluate import evaluate_text


def found(value: float, low: float, high: float, kind: str = "share") -> dict[str, Any]:
    interval = {"low": low, "high": high, "level": 0.95}
    return {"kind": kind, "value": value, "interval": interval, "n": 500, "method": "wilson", "reason": None}


def side(**metrics: Any) -> dict[str, Any]:
    return {"model": "out/int8.onnx", "target": "qnn/npu", "simulated": True, "metrics": metrics}


def result(**changes: Any) -> dict[str, Any]:
    return {
        **side(accuracy=found(0.994, 0.9825, 0.998)),
        "task": "image-classification",
        "environment": {"runtime": {"name": "onnxruntime", "version": "1.31.1"}},
        "data": {"source": "data/test.npz", "samples": 500},
        "samples": {"n": 500},
        "reference": None,
        "drop": None,
        "agreement": None,
        "distance": None,
        "checks": [],
        **changes,
    }


def test_a_model_alone_has_its_metrics_with_their_intervals() -> None:
    assert evaluate_text(result()) == (
        "int8.onnx on qnn/npu (simulated) (onnxruntime 1.31.1) · image-classification · 500 samples of test.npz\n"
        "            model\n"
        "  accuracy  99.40 % (98.25 … 99.80)"
    )


def test_a_reference_adds_drop_agreement_distance_and_checks() -> None:
    reference = {**side(accuracy=found(0.996, 0.985, 0.999)), "model": "fp32.onnx", "target": "cpu", "simulated": False}
    distance = {
        "output": "logits", "runs": 500, "equal": 0, "incomparable": 1, "cosine": {"min": 0.9966, "median": 0.99993},
        "max_abs": {"max": 1.67, "median": 0.0869}, "sqnr_db": {"min": 17.61, "median": 37.9},
    }  # fmt: skip
    text = evaluate_text(
        result(
            reference=reference,
            drop={"accuracy": found(0.002, -0.008, 0.012)},
            agreement={k: v for k, v in found(0.996, 0.985, 0.999).items() if k != "kind"},
            distance=[distance],
            checks=[
                {
                    "check": "max-drop",
                    "metric": "accuracy",
                    "limit": 0.01,
                    "by": "interval",
                    "answer": "inconclusive",
                    "needed": 900,
                }
            ],
        )
    )
    assert text.splitlines()[1:] == [
        "            model                    reference                drop",
        "  accuracy  99.40 % (98.25 … 99.80)  99.60 % (98.50 … 99.90)  +0.20 points (-0.80 … +1.20, 95 %)",
        "  both say the same about 99.60 % (98.50 … 99.90) of samples",
        "against fp32.onnx on cpu",
        "  output  cosine: least  median    max abs: most  median  SQNR dB: least  median  equal",
        "  logits  0.996600       0.999930  1.67           0.0869  17.6            37.9    0 of 500, 1 not comparable",
        "  accuracy dropped by at most 0.01: cannot tell (by its interval; about 900 samples would decide)",
    ]


def test_a_correlation_is_no_percentage_and_an_unknown_one_says_why() -> None:
    unknown = {"kind": "pearson", "value": None, "interval": None, "reason": "one side is the same for all samples"}
    few = {"kind": "spearman", "value": 0.5, "interval": None, "reason": "an interval needs at least 4 samples"}
    metrics = {"spearman": found(0.81234, 0.7, 0.9, "spearman"), "pearson": unknown, "few": few}
    assert evaluate_text(result(metrics=metrics)).splitlines()[2:] == [
        "  spearman  0.8123 (0.7000 … 0.9000)",
        "  pearson   unknown: one side is the same for all samples",
        "  few       0.5000 (no interval: an interval needs at least 4 samples)",
    ]


def test_an_interrupted_run_says_how_far_it_came() -> None:
    assert "120 of 500 samples of test.npz" in evaluate_text(result(samples={"n": 120}))
