"""Whether a command that was run again confirms the contribution."""

from __future__ import annotations

from collections.abc import Iterator

from winml.modelkit.building.export.result import ExportResult
from winml.modelkit.building.inspect import Inspection
from winml.modelkit.support.probe_result import ProbeResult
from winml.modelkit.support.review import derive, times
from winml.modelkit.support.review.results import (
    CompareEvidence,
    ConfigEvidence,
    MetricEvidence,
    ParityEvidence,
    PerfEvidence,
    Result,
)

CLOCK_STEP_MS = 15.625
"""The resolution of the CPU clock of a process on Windows."""
FACTOR = 2.0
"""Times of one artifact on one machine may differ by this much: clock frequency and other load alone cause as much."""
COSINE_MARGIN = 1e-3
"""How far a cosine may move between two runs on different processors."""
DIFFERENCE_MARGIN = 1e-3
"""How far outputs may move between two such runs, against their size."""


def contradictions(claimed: Result | None, again: Result | None, *, same_machine: bool) -> Iterator[str]:
    """How the result of a command contradicts the claimed one; both ended with the same exit code."""
    match claimed, again:
        case ProbeResult(), ProbeResult():
            yield from _probe(claimed, again)
        case ConfigEvidence(), ConfigEvidence():
            first, second = claimed.settings, again.settings
            if first != second:
                keys = sorted(k for k in {*first, *second} if first.get(k) != second.get(k))
                yield f"the config differs in {', '.join(keys)}"
        case Inspection(), Inspection():
            yield from _inspect(claimed, again)
        case PerfEvidence(), PerfEvidence():
            yield from _perf(claimed, again, same_machine)
        case CompareEvidence(), CompareEvidence():
            yield from _compare(claimed, again, same_machine)
        case ParityEvidence(), ParityEvidence():
            yield from _parity(claimed, again)
        case ExportResult(), ExportResult():
            yield from _export(claimed, again)
        case MetricEvidence(), MetricEvidence():
            yield from _metric(claimed, again)


def _probe(claimed: ProbeResult, again: ProbeResult) -> Iterator[str]:
    for key, then, now in (
        ("answer", claimed.answer, again.answer),
        ("covered", claimed.covered, again.covered),
    ):
        if then != now:
            yield f"{key} is {now!r}, not {then!r}"
    if claimed.obstacles_that_apply != again.obstacles_that_apply:
        yield f"obstacles are {list(again.obstacles_that_apply)}, not {list(claimed.obstacles_that_apply)}"
    if claimed.model.digest != again.model.digest:
        yield "the model has another digest"


def _inspect(claimed: Inspection, again: Inspection) -> Iterator[str]:
    first = claimed.description.fingerprint
    if first is None or first != again.description.fingerprint:
        yield "the artifact has another fingerprint"
    sizes = [derive.numbers(result)["bytes"] for result in (claimed, again)]
    if sizes[0] != sizes[1]:
        yield f"the artifact has {sizes[1]:.0f} bytes, not {sizes[0]:.0f}"


def _perf(claimed: PerfEvidence, again: PerfEvidence, same_machine: bool) -> Iterator[str]:
    for key, then, now in (
        ("target", claimed.target, again.target),
        ("simulated", claimed.simulated, again.simulated),
        ("inputs", claimed.inputs, again.inputs),
    ):
        if then != now:
            yield f"{key} is {now!r}, not {then!r}"
    if claimed.placement != again.placement:
        yield f"nodes run on {dict(again.placement.nodes)}, not on {dict(claimed.placement.nodes)}"
    if not same_machine or claimed.simulated:
        return
    first, second = (derive.numbers(result)["cpu_p50_ms"] for result in (claimed, again))
    (least, most), (again_least, again_most) = _cpu_range(claimed, first), _cpu_range(again, second)
    if again_most < least / FACTOR or again_least > most * FACTOR:
        yield f"a run takes {second:.3f} ms of CPU time, not {first:.3f}: more than a factor of {FACTOR:g}"


def _cpu_range(result: PerfEvidence, found_ms: float) -> tuple[float, float]:
    """The possible CPU time of a run: a coarse clock misses up to one step in every session."""
    if derive.summarize_perf(result).cpu_ms.per == "run":
        return found_ms, found_ms
    step_ms = CLOCK_STEP_MS / min(len(taken.wall_ns) for taken in result.measurement.rounds)
    return max(0.0, found_ms - step_ms), found_ms + step_ms


def _compare(claimed: CompareEvidence, again: CompareEvidence, same_machine: bool) -> Iterator[str]:
    """A gain must be reproduced on every machine; its size only on the same machine."""
    first, second = (times.pace(result) for result in (claimed, again))
    if second != first and (first == "faster" or second == "slower"):
        yield f"{times.describe('a run', again)}; `{first}` was claimed"
    said, now = (derive.numbers(result) for result in (claimed, again))
    if not same_machine or first != "faster" or not said or not now:
        return
    apart = said["low_pct"] > now["high_pct"] or now["low_pct"] > said["high_pct"]
    if apart and not said["gain_pct"] / FACTOR <= now["gain_pct"] <= said["gain_pct"] * FACTOR:
        yield f"it takes {now['gain_pct']:.1f} % less time than the default, not {said['gain_pct']:.1f} %"


def _parity(claimed: ParityEvidence, again: ParityEvidence) -> Iterator[str]:
    first, second = (derive.numbers(result) for result in (claimed, again))
    if abs(first["cosine"] - second["cosine"]) > COSINE_MARGIN:
        yield f"the cosine is {second['cosine']:.6f}, not {first['cosine']:.6f}"
    if first["samples"] != second["samples"] or claimed.data != again.data:
        yield "outputs were compared on other inputs"


def _export(claimed: ExportResult, again: ExportResult) -> Iterator[str]:
    status = [[part.metadata.parity.status for part in result.parts] for result in (claimed, again)]
    if status[0] != status[1]:
        yield f"the comparison with PyTorch {', '.join(status[1])}, not {', '.join(status[0])}"
    first, second = (derive.numbers(result).get("difference") for result in (claimed, again))
    if first is not None and second is not None and abs(first - second) > DIFFERENCE_MARGIN:
        yield f"the export differs from PyTorch by {second:.2g}, not {first:.2g}"


def _metric(claimed: MetricEvidence, again: MetricEvidence) -> Iterator[str]:
    name, said = claimed.metric, claimed.deciding
    if name is None or said is None:
        return
    now = again.metrics[name].value if name in again.metrics else None
    interval = said.interval
    inside = interval is not None and now is not None and interval.low <= now <= interval.high
    if claimed.data != again.data or not inside:
        yield f"{name} is {now}, not {said.value} within its interval"
