"""Numbers of a contribution, each computed from raw evidence; a reviewer computes them again."""

from __future__ import annotations

from winml.modelkit.building.export.result import ExportResult, ParityPassed
from winml.modelkit.building.inspect import Inspection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.latency import CPUTime, Latency
from winml.modelkit.ep.precision import PRECISIONS, fits
from winml.modelkit.graph.description import GraphFacts
from winml.modelkit.measuring import summary
from winml.modelkit.support.review import times
from winml.modelkit.support.review.results import (
    CompareEvidence,
    MetricEvidence,
    OutputDistance,
    ParityEvidence,
    PerfEvidence,
    Result,
)

Numbers = dict[str, float]

COSINE: dict[str, float] = {word: row.agreement for word, row in PRECISIONS.items()}
"""Least cosine with the reference, by precision."""


@dataclass(frozen=True, kw_only=True)
class PerfSummary:
    """The summaries of a measurement's samples."""

    latency_ms: Latency
    cpu_ms: CPUTime


def summarize_perf(result: PerfEvidence) -> PerfSummary:
    """The summaries of a measurement, computed again from its samples."""
    rounds = result.measurement.rounds
    return PerfSummary(latency_ms=summary.latency(rounds), cpu_ms=summary.cpu_time(rounds))


def numbers(result: Result | None) -> Numbers:
    """The numbers of a command that succeeded; empty for one that has none."""
    match result:
        case PerfEvidence():
            return _perf(result)
        case ParityEvidence():
            return _parity(result)
        case Inspection():
            size = sum(file.bytes for file in result.description.files)
            return {"bytes": float(size), "nodes": float(result.description.facts.nodes)}
        case ExportResult():
            return _export(result)
        case MetricEvidence():
            return _metric(result)
        case CompareEvidence():
            return _compare(result)
    return {}


def _perf(result: PerfEvidence) -> Numbers:
    found = summarize_perf(result)
    nodes = float(sum(result.placement.nodes.values()))
    return {"latency_p50_ms": found.latency_ms.p50, "cpu_p50_ms": found.cpu_ms.p50, "nodes": nodes}


def _parity(result: ParityEvidence) -> Numbers:
    """The worst output; there is no largest difference where outputs cannot be compared, or are not floats."""
    rows = result.distance
    found: Numbers = {"cosine": min(_cosine(row) for row in rows), "samples": float(min(row.runs for row in rows))}
    apart = [row.max_abs.max for row in rows if row.max_abs is not None]
    if apart and not any(row.incomparable for row in rows):
        found["max_abs"] = max(apart)
    return found


def _cosine(row: OutputDistance) -> float:
    """The least cosine; outputs without a direction have none, and count as 1 when they are equal."""
    if row.incomparable:
        return -1.0
    if row.cosine is None:
        return 1.0 if row.equal == row.runs else -1.0
    return float(row.cosine.min)


def _export(result: ExportResult) -> Numbers:
    """The largest difference from PyTorch over all parts, where all of them were compared."""
    compared = [part.metadata.parity for part in result.parts]
    apart = [parity.difference for parity in compared if isinstance(parity, ParityPassed)]
    return {"difference": max(apart)} if apart and len(apart) == len(compared) else {}


def _metric(result: MetricEvidence) -> Numbers:
    found = result.deciding
    if found is None or found.value is None:
        return {}
    return {"metric": float(found.value), "samples": float(found.n)}


def _compare(result: CompareEvidence) -> Numbers:
    """The gain with its interval; empty for a verdict without measurements."""
    found = times.judge_again(result)
    if found.gain_pct is None or found.interval_pct is None:
        return {}
    low, high = found.interval_pct
    return {"gain_pct": found.gain_pct, "low_pct": low, "high_pct": high, "rounds": float(found.rounds)}


def agrees(found: Numbers, precision: str) -> bool:
    """Whether a part agrees with its reference as closely as its precision requires."""
    return found.get("cosine", -1.0) >= COSINE[precision]


def has_precision(facts: GraphFacts, precision: str) -> bool:
    """Whether the number types of a file match its precision."""
    return fits(precision, quantized=facts.quantized.kind != "none", float_types=facts.float_types)
