"""Results of searches with a trial of every kind, for texts and pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from search_world import make_result
from winml.modelkit.core.latency import ArmTimes, Spread
from winml.modelkit.core.verdict import Verdict, speedup
from winml.modelkit.search.result import Champion, ConfirmationResult, SearchResult, TrialResult
from winml.modelkit.search.trial import Accuracy, TrialArtifact

BASELINE = make_result(folder="/runs/digits", champion_folder="", next_="")
WINNER = "quantize.scheme=int8, optimize.conv_add_activation_fusion=on"


def verdict(word: Any, gain: float, low: float, high: float, reason: str = "") -> Verdict:
    return Verdict(word, reason, gain_pct=gain, interval_pct=(low, high), rounds=3, metric="cpu")


def spread(ms: float) -> Spread:
    return Spread(median=ms, interval=None, interval_reason="too few", rounds=3)


def accuracy(value: float, drop: float | None, kind: Any = "task") -> Accuracy:
    metric = "accuracy" if kind == "task" else "cosine"
    return Accuracy(
        kind=kind, metric=metric, value=value, interval=None, drop=drop, drop_interval=None, agreement=0.9991, samples=9
    )


def trial(name: str, label: str, outcome: Any, judged: Verdict | None, **given: Any) -> TrialResult:
    artifact = TrialArtifact(digest="sha256:1", fingerprint=None, bytes=620_237 if name == "h0" else 166_502)
    fields = {"reason": "", "step": None, "artifact": artifact, "accuracy": accuracy(0.994, 0.0), **given}
    return replace(BASELINE.trials[0], id=name, label=label, outcome=outcome, verdict=judged, **fields)


def search(*trials: TrialResult, **given: Any) -> SearchResult:
    """A search on labelled data that `h1` has won when it is among the trials."""
    gate = replace(BASELINE.gate, limits=replace(BASELINE.gate.limits, kind="task"), words="may drop by 0.01")
    best = BASELINE.champion
    winner = next((one for one in trials if one.confirmation is not None), None)
    if winner is not None and winner.confirmation is not None:
        gain, bounds = winner.confirmation.verdict.gain_pct, winner.confirmation.verdict.interval_pct
        assert gain is not None
        assert bounds is not None
        between = (speedup(bounds[0]), speedup(bounds[1]))
        best = Champion(
            trial=winner, status="KEEP_CONFIRMED", gain_pct=gain, gain_interval_pct=bounds, speedup=speedup(gain),
            speedup_interval=between, factor=speedup(gain),
        )  # fmt: skip
    fields = {"trials": trials, "champion": best, "gate": gate, "model": "/models/digits.onnx", **given}
    return replace(BASELINE, **fields)


CONFIRMED = verdict("KEEP", 66.9, 65.2, 68.6)
TIMES = ArmTimes(metric="cpu", base_ms=spread(1.78), candidate_ms=spread(0.594))
H0 = trial("h0", "baseline", "baseline", None)
H1 = trial(
    "h1", WINNER, "measured", verdict("KEEP", 66.0, 60.0, 70.0), times=TIMES, accuracy=accuracy(0.992, 0.002),
    confirmation=ConfirmationResult(word="KEEP_CONFIRMED", verdict=CONFIRMED, measurement=None, times=TIMES),
)  # fmt: skip
OTHERS = (
    trial("h2", "optimize.opset=19", "measured", verdict("DISCARD", 0.0, -0.6, 0.6, "ruled out")),
    trial("h3", "optimize.opset=21", "measured", verdict("DISCARD", -25.0, -30.0, -20.0, "slower")),
    trial("h4", "optimize.opset=23", "measured", verdict("INCONCLUSIVE", -5.0, -9.0, -1.0, "probably slower: why"),
          reason="probably slower: why"),
    trial("h5", "session.nchwc=off", "slower", Verdict("DISCARD", ""), reason="3.0 times slower in a probe of 3 runs"),
    trial("h6", "quantize.scheme=w4", "inaccurate", Verdict("FAILED", ""), reason="accuracy dropped by 0.3"),
    trial("h7", "quantize.scheme=fp16", "failed", Verdict("FAILED", ""), step="build", reason="the runtime refused it"),
    trial("h8", "quantize.scheme=dynamic", "same", Verdict("IDENTICAL", ""), reason="the same graph and session as h0"),
)  # fmt: skip
EVERYTHING = search(H0, H1, *OTHERS, seconds=75.4, choices=None, pareto=("h1",), ended="the budget is used up")
