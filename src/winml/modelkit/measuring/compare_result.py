"""What a comparison comes to, from its candidates: ranking, gate, failures. Shared by measuring and judging again."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.errors import CheckFailed, ModelkitError, PartlyDone, RunFailedError
from winml.modelkit.core.measurement import NS_PER_MS
from winml.modelkit.core.statistics import median
from winml.modelkit.core.verdict import Clock, speedup
from winml.modelkit.measuring import stored
from winml.modelkit.measuring.stored import KEPT
from winml.modelkit.measuring.summary import arm_times

SCHEMA = "winml/compare/1"


def ranking(candidates: list[dict[str, Any]]) -> list[str]:
    """Labels, kept candidates first, then by gain."""
    known = [c for c in candidates if c["verdict"]["gain_pct"] is not None]
    ranked = sorted(known, key=lambda c: (c["verdict"]["verdict"] not in KEPT, -c["verdict"]["gain_pct"]))
    return [c["label"] for c in ranked]


def probe_times(base: dict[str, Any], probe: dict[str, Any], metric: Clock) -> dict[str, Any]:
    """Times of two arms that were only probed."""
    reason = f"a probe of {len(probe[f'{metric}_ns'])} runs"
    sides = [
        {"median": median(side[f"{metric}_ns"]) / NS_PER_MS, "interval": None, "interval_reason": reason, "rounds": 0}
        for side in (base, probe)
    ]
    return {"metric": metric, "base_ms": sides[0], "candidate_ms": sides[1]}


def with_speed(candidate: dict[str, Any]) -> dict[str, Any]:
    """A candidate with milliseconds per arm, of the rounds whose gain is reported, and how many times as fast it is."""
    verdict, taken = candidate["verdict"], (candidate["confirmation"] or candidate)["measurement"]
    times = candidate.get("times")
    if taken is not None:
        measured = stored.measurement(taken)
        times = arm_times(measured, measured.protocol["metric"])
    gain, interval = verdict["gain_pct"], verdict["interval_pct"]
    return {
        **candidate,
        "times": times,
        "speedup": None if gain is None else speedup(gain),
        "speedup_interval": None if interval is None else [speedup(bound) for bound in interval],
    }


def gate_of_probe(limit_pct: float | None, verdict: dict[str, Any]) -> str | None:
    """What the gate says of a verdict that needed no measuring."""
    if limit_pct is None or verdict["verdict"] == "FAILED":
        return None
    return "fail" if verdict["gain_pct"] < -limit_pct else "pass"


def raise_for(result: dict[str, Any]) -> None:
    """The gate's answer and failed candidates as errors, with the whole result as details."""
    _raise_gate(result)
    failed = [c for c in result["candidates"] if c["verdict"]["verdict"] == "FAILED"]
    if failed:
        words = "; ".join(f"`{c['label']}`: {c['verdict']['reason']}" for c in failed)
        kind: type[ModelkitError] = RunFailedError if len(failed) == len(result["candidates"]) else PartlyDone
        raise kind(words, details=result)


def _raise_gate(result: dict[str, Any]) -> None:
    limit = result["fail_if_slower_pct"]
    if limit is None:
        return
    slower = [c for c in result["candidates"] if c["gate"] == "fail"]
    if slower:
        words = ", ".join(f"`{c['label']}` by {-c['verdict']['gain_pct']:.1f} %" for c in slower)
        raise CheckFailed(f"slower than the base by more than {limit:g} %: {words}", details=result)
    unknown = [c["label"] for c in result["candidates"] if c["gate"] == "unknown"]
    if unknown:
        raise RunFailedError(
            f"cannot tell whether {', '.join(unknown)} is slower by more than {limit:g} %",
            hint="a quieter machine, fewer threads or a larger limit would tell",
            details=result,
        )
