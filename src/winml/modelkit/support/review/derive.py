"""Numbers of a contribution, each made from raw evidence; a reviewer makes them again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from winml.modelkit.core.measurement import Measurement, round_from_json
from winml.modelkit.ep.precision import PRECISIONS, fits
from winml.modelkit.measuring import summary
from winml.modelkit.support.review import times

Json = Mapping[str, Any]
Numbers = dict[str, float]

COSINE: dict[str, float] = {word: row.agreement for word, row in PRECISIONS.items()}
"""Least cosine with the reference, by precision."""


def latency(result: Json) -> dict[str, Any]:
    """The summaries of a measurement, made anew from its samples."""
    taken = result["measurement"]
    rounds = tuple(round_from_json(r) for r in taken["rounds"])
    return summary.latency(Measurement((), rounds, taken["protocol"], taken["environment"]))


def _perf(result: Json) -> Numbers:
    made = latency(result)
    numbers = {"latency_p50_ms": made["latency_ms"]["p50"], "cpu_p50_ms": made["cpu_ms"]["p50"]}
    return numbers | {"nodes": float(sum(result["placement"]["nodes"].values()))}


def _parity(result: Json) -> Numbers:
    """The worst output; outputs without a direction have no cosine, and count as 1 when they are equal."""
    rows = result["distance"]
    cosines = [_cosine(row) for row in rows]
    apart = [math.inf if row["incomparable"] else row["max_abs"]["max"] for row in rows]
    return {"cosine": min(cosines), "max_abs": max(apart), "samples": float(min(row["runs"] for row in rows))}


def _cosine(row: Json) -> float:
    if row["incomparable"]:
        return -1.0
    least = (row["cosine"] or {}).get("min")
    if least is None:
        return 1.0 if row["equal"] == row["runs"] else -1.0
    return float(least)


def _inspect(result: Json) -> Numbers:
    return {"bytes": float(sum(file["bytes"] for file in result["files"])), "nodes": float(result["facts"]["nodes"])}


def _export(result: Json) -> Numbers:
    """The largest difference from PyTorch over all parts, relative to the largest number of an output."""
    compared = [part["metadata"]["parity"] for part in result["parts"]]
    return {"difference": max(c["difference"] if c["status"] == "passed" else math.inf for c in compared)}


def _metric(result: Json) -> Numbers:
    name = result["metric"]
    value = None if name is None else result["metrics"][name]["value"]
    return {} if value is None else {"metric": float(value), "samples": float(result["metrics"][name]["n"])}


def _compare(result: Json) -> Numbers:
    """The gain with its interval; none for what was told without measuring."""
    made = times.verdict(result)
    if made["interval_pct"] is None:
        return {}
    low, high = made["interval_pct"]
    return {"gain_pct": made["gain_pct"], "low_pct": low, "high_pct": high, "rounds": float(made["rounds"])}


_OF: dict[str, Callable[[Json], Numbers]] = {
    "perf": _perf,
    "export": _export,
    "compare": _compare,
    "parity": _parity,
    "inspect": _inspect,
    "metric": _metric,
}


def numbers(purpose: str, result: Json | None) -> Numbers:
    """The numbers of a command that went well; empty for one that has none."""
    make = _OF.get(purpose)
    if make is None or result is None or not result.get("ok"):
        return {}
    return make(result)


def agrees(found: Numbers, precision: str) -> bool:
    """Whether a part agrees with its reference as its precision asks."""
    return found.get("cosine", -1.0) >= COSINE[precision]


def has_precision(facts: Json, precision: str) -> bool:
    """Whether the number types of a file are what the word for its precision says."""
    return fits(precision, quantized=facts["quantized"]["kind"] != "none", float_types=facts["float_types"])
