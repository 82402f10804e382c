"""Whether a command that was run again says what the contribution says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from winml.modelkit.support.review import derive, times
from winml.modelkit.support.review.plan import Step

Json = Mapping[str, Any]

CLOCK_STEP_MS = 15.625
"""How far the CPU clock of a process on Windows moves at once."""
FACTOR = 2.0
"""Times of one artifact on one machine may differ by this much: clock frequency and other work alone come to it."""
COSINE_MARGIN = 1e-3
"""How far a cosine may move between two runs on different processors."""
DIFFERENCE_MARGIN = 1e-3
"""How far outputs may move between two such runs, against their size."""


def contradictions(step: Step, claimed: Json | None, again: Json | None, *, same_machine: bool) -> Iterator[str]:
    """What a command says now that it did not say then; both went well, or both ended with the same exit code."""
    compare = _BY_PURPOSE.get(step.purpose)
    if compare is None or not (claimed or {}).get("ok") or not (again or {}).get("ok"):
        return
    assert claimed is not None
    assert again is not None
    yield from compare(claimed, again, same_machine)


def _probe(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    for key in ("answer", "covered"):
        if claimed[key] != again[key]:
            yield f"{key} is {again[key]!r}, not {claimed[key]!r}"
    applies = [[o["name"] for o in result["obstacles"] if o["applies"]] for result in (claimed, again)]
    if applies[0] != applies[1]:
        yield f"obstacles are {applies[1]}, not {applies[0]}"
    if claimed["model"]["digest"] != again["model"]["digest"]:
        yield "the model has another digest"


def _config(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    first, second = ({k: v for k, v in r["config"].items() if k != "model"} for r in (claimed, again))
    if first != second:
        keys = sorted(k for k in {*first, *second} if first.get(k) != second.get(k))
        yield f"the config differs in {', '.join(keys)}"


def _inspect(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    if claimed["fingerprint"] is None or claimed["fingerprint"] != again["fingerprint"]:
        yield "the artifact has another fingerprint"
    sizes = [derive.numbers("inspect", result)["bytes"] for result in (claimed, again)]
    if sizes[0] != sizes[1]:
        yield f"the artifact has {sizes[1]:.0f} bytes, not {sizes[0]:.0f}"


def _perf(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    for key in ("target", "simulated", "inputs"):
        if claimed[key] != again[key]:
            yield f"{key} is {again[key]!r}, not {claimed[key]!r}"
    if claimed["placement"]["nodes"] != again["placement"]["nodes"]:
        yield f"nodes run on {again['placement']['nodes']}, not on {claimed['placement']['nodes']}"
    if not same_machine or claimed["simulated"]:
        return
    first, second = (derive.numbers("perf", result)["cpu_p50_ms"] for result in (claimed, again))
    (least, most), (again_least, again_most) = _cpu_range(claimed, first), _cpu_range(again, second)
    if again_most < least / FACTOR or again_least > most * FACTOR:
        yield f"a run takes {second:.3f} ms of CPU time, not {first:.3f}: more than a factor of {FACTOR:g}"


def _cpu_range(result: Json, found_ms: float) -> tuple[float, float]:
    """What the CPU time of a run may be: a coarse clock misses up to a step in every session."""
    if derive.latency(result)["cpu_ms"]["per"] == "run":
        return found_ms, found_ms
    step_ms = CLOCK_STEP_MS / min(len(r["wall_ns"]) for r in result["measurement"]["rounds"])
    return max(0.0, found_ms - step_ms), found_ms + step_ms


def _compare(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    """A gain has to show again wherever it is reviewed; how large it is, on the same machine."""
    first, second = (times.pace(result) for result in (claimed, again))
    if second != first and (first == "faster" or second == "slower"):
        yield f"{times.told('a run', again)}; `{first}` was claimed"
    numbers = [derive.numbers("compare", result) for result in (claimed, again)]
    if not same_machine or first != "faster" or not all(numbers):
        return
    said, now = numbers
    apart = said["low_pct"] > now["high_pct"] or now["low_pct"] > said["high_pct"]
    if apart and not said["gain_pct"] / FACTOR <= now["gain_pct"] <= said["gain_pct"] * FACTOR:
        yield f"it takes {now['gain_pct']:.1f} % less time than the default, not {said['gain_pct']:.1f} %"


def _parity(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    first, second = (derive.numbers("parity", result) for result in (claimed, again))
    if abs(first["cosine"] - second["cosine"]) > COSINE_MARGIN:
        yield f"the cosine is {second['cosine']:.6f}, not {first['cosine']:.6f}"
    if first["samples"] != second["samples"] or claimed["data"]["digest"] != again["data"]["digest"]:
        yield "outputs were compared on other inputs"


def _export(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    status = [[part["metadata"]["parity"]["status"] for part in result["parts"]] for result in (claimed, again)]
    if status[0] != status[1]:
        yield f"the comparison with PyTorch {', '.join(status[1])}, not {', '.join(status[0])}"
    apart = [derive.numbers("export", result)["difference"] for result in (claimed, again)]
    if abs(apart[0] - apart[1]) > DIFFERENCE_MARGIN:
        yield f"the export differs from PyTorch by {apart[1]:.2g}, not {apart[0]:.2g}"


def _metric(claimed: Json, again: Json, same_machine: bool) -> Iterator[str]:
    name = claimed["metric"]
    said, now = claimed["metrics"][name], again["metrics"].get(name, {})
    interval = said["interval"]
    inside = interval is not None and interval["low"] <= now.get("value", -2) <= interval["high"]
    if claimed["data"]["digest"] != again["data"]["digest"] or not inside:
        yield f"{name} is {now.get('value')}, not {said['value']} within its interval"


_BY_PURPOSE: dict[str, Callable[[Json, Json, bool], Iterator[str]]] = {
    "probe": _probe,
    "config": _config,
    "inspect": _inspect,
    "perf": _perf,
    "compare": _compare,
    "parity": _parity,
    "export": _export,
    "metric": _metric,
}
