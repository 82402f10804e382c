"""`winml compare`: is a candidate faster than the base, by how much, and how sure is that?"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.core.errors import (
    Interrupted,
    ModelkitError,
    RequestError,
    RunFailedError,
)
from winml.modelkit.core.statistics import median
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.measuring import calibration as calibrations
from winml.modelkit.measuring import compare_result, stored
from winml.modelkit.measuring import rounds as bench
from winml.modelkit.measuring import warm_processes as measuring
from winml.modelkit.measuring.calibration import Calibration
from winml.modelkit.measuring.compare_arms import Arms, CompareRequest, arms_of
from winml.modelkit.measuring.compare_result import SCHEMA
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.rounds import ArmSpec, Compared, Plan, Progress
from winml.modelkit.measuring.warm_processes import Probers
from winml.modelkit.session.notes import left_words
from winml.modelkit.store import digest
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

MAX_RELATIVE = 0.5
"""Outputs that point the same way and differ by more than half in size are not equal enough either."""
SLEEPING = "idle threads sleep in both arms (spinning off), because both are alive at the same time"

OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Known:
    """What is known of an arm before it is measured."""

    spec: ArmSpec
    fingerprint: str | None


def _fingerprints(specs: list[ArmSpec]) -> list[Known]:
    known: dict[str, str | None] = {}
    with Worker(preload=("winml.modelkit.graph.describe",)) as worker:
        for path in dict.fromkeys(s.arm.artifact for s in specs):
            described = worker.call("graph.describe", {"path": path}, what=f"reading `{path}`")
            known[path] = described["fingerprint"]
    return [Known(s, known[s.arm.artifact]) for s in specs]


def _identical(base: Known, candidate: Known) -> bool:
    a, b = base.spec.arm, candidate.spec.arm
    same_graph = base.fingerprint is not None and base.fingerprint == candidate.fingerprint
    return same_graph and a.target == b.target and a.session == b.session


class Comparison:
    """One run of `winml compare`: the base is probed once and its calibration shared by all candidates."""

    def __init__(self, request: CompareRequest, arms: Arms, folder: Path, on_event: OnEvent) -> None:
        self._request = request
        self._notes = arms.notes
        self._folder = folder
        self._on_event = on_event
        self._base_probe: dict[str, Any] = {}
        self._base_probe_s = 0.0
        self._calibrations: dict[str, Calibration] = {}
        self._progress = Progress()
        self._probers = Probers()
        try:
            known = _fingerprints(arms.specs)
        except BaseException:
            self._probers.close()
            raise
        self._base, self._candidates = known[0], known[1:]

    def _probe(self, spec: ArmSpec, name: str, timeout_s: float) -> dict[str, Any]:
        return self._probers.probe(spec, self._folder / f"{name}.npz", timeout_s)

    def run(self) -> dict[str, Any]:
        """The JSON object of the contract."""
        try:
            return self._run()
        finally:
            self._probers.close()

    def _run(self) -> dict[str, Any]:
        self._on_event({"event": "probe", "label": self._base.spec.label})
        started = time.monotonic()
        self._base_probe = self._probe(self._base.spec, "base", self._request.timeout_s)
        self._base_probe_s = time.monotonic() - started
        done: list[dict[str, Any]] = []
        try:
            for number, candidate in enumerate(self._candidates):
                done.append(self._candidate(candidate, number))
                self._progress = Progress()
            self._confirm(done)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted; what was measured is in the result", details=self._partial(done)) from error
        except ModelkitError as error:
            # What the candidates before this one came to must not go with it.
            error.details |= self._partial(done)
            raise
        return {"schema": SCHEMA, "ok": True, **self._result(done)}

    def _partial(self, done: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._result(done), "unfinished_rounds": [r.to_json() for r in self._progress.rounds]}

    def _result(self, done: list[dict[str, Any]]) -> dict[str, Any]:
        done = [compare_result.with_speed(entry) for entry in done]
        return {
            "base": {**_describe(self._base), "placement": self._base_probe["placement"]},
            "candidates": done,
            "ranking": compare_result.ranking(done),
            "calibrations": {name: c.to_json() for name, c in self._calibrations.items()},
            "fail_if_slower_pct": self._request.fail_if_slower_pct,
            "environment": {**self._base_probe["environment"], "huge_pages": measuring.huge_pages() is not None},
            "inputs": {"sizes": self._base.spec.inputs.get("sizes", {})},
            "warnings": [*self._notes, *dict.fromkeys(w for d in done for w in d["warnings"])],
        }

    def _candidate(self, candidate: Known, number: int) -> dict[str, Any]:
        described: dict[str, Any] = {
            **_describe(candidate),
            **dict.fromkeys(
                ("parity", "placement", "environment", "gate", "measurement", "calibration", "confirmation", "times")
            ),
            "tests": max(1, len(self._candidates)),
            "conditions": None,
            "warnings": [],
        }
        self._on_event({"event": "candidate", "label": candidate.spec.label, "number": number})
        limit = self._request.fail_if_slower_pct
        if _identical(self._base, candidate) and not self._request.force:
            same = Verdict("IDENTICAL", "same graph, same options: there is nothing to measure", gain_pct=0.0).to_json()
            return {**described, "verdict": same, "gate": compare_result.gate_of_probe(limit, same)}
        started = time.monotonic()
        early, probe = self._early(candidate.spec, number)
        probed_s = time.monotonic() - started
        described |= {k: probe[k] for k in ("parity", "placement", "environment") if k in probe}
        described["warnings"] = _fallbacks(candidate.spec, probe)
        if early is not None:
            if early.gain_pct is not None:
                described["times"] = compare_result.probe_times(self._base_probe, probe, early.metric or "wall")
            verdict = replace(early, seconds=probed_s).to_json()
            return {**described, "verdict": verdict, "gate": compare_result.gate_of_probe(limit, verdict)}
        compared, calibration, warnings = self._measure(candidate.spec, probe)
        return {
            **described,
            "verdict": replace(compared.verdict, seconds=compared.verdict.seconds + probed_s).to_json(),
            "gate": compared.gate,
            "measurement": compared.measurement.to_json(),
            "calibration": calibration,
            "warnings": [*described["warnings"], *warnings],
            "conditions": _conditions(compared),
        }

    def _early(self, spec: ArmSpec, number: int) -> tuple[Verdict | None, dict[str, Any]]:
        """A verdict that needs no measuring (it fails, computes something else, or is far slower), and the probe."""
        base = self._base_probe
        limit_s = measuring.hang_limit_s(base, self._base_probe_s)
        try:
            probe = self._probe(spec, f"candidate{number}", limit_s)
        except RunFailedError as error:
            return Verdict("FAILED", error.message), {}
        self._check_signature(base, probe, spec)
        probe["parity"] = parity = self._parity(number)
        if not parity["within_tolerance"] and not self._request.allow_different:
            reason = f"outputs differ from the base's: {_distance(parity)}; `--allow-different` measures all the same"
            return Verdict("FAILED", reason), probe
        mode = bench.choose_mode(self._base.spec, spec)
        metric = bench.choose_metric(self._base.spec, spec, mode, (base, probe))
        factor = bench.far_slower(base, probe, metric)
        if factor is not None and not self._request.force:
            reason = f"{factor:.1f} times slower in a probe of 3 runs"
            return Verdict("DISCARD", reason, gain_pct=100 * (1 - factor), metric=metric), probe
        return None, probe

    def _check_signature(self, base: dict[str, Any], probe: dict[str, Any], spec: ArmSpec) -> None:
        for side in ("inputs", "outputs"):
            ours, theirs = base[side], probe[side]
            if [_key(s, self._request) for s in ours] != [_key(s, self._request) for s in theirs]:
                raise RequestError(
                    f"`{spec.label}` has other {side} than the base: {_words(theirs)} instead of {_words(ours)}",
                    hint="`--by-position` matches them by position when only names differ",
                )

        if base["shapes"] != probe["shapes"]:
            raise RequestError(
                f"`{spec.label}` would run on inputs {probe['shapes']}, the base on {base['shapes']}",
                hint="give symbolic dimensions a size with `--dim NAME=N`",
            )

    def _parity(self, number: int) -> dict[str, Any]:
        args = {"base": str(self._folder / "base.npz"), "candidate": str(self._folder / f"candidate{number}.npz")}
        outputs = self._probers.of(None).call("bench.distance", args)["outputs"]
        if any(o["cosine"] is None for o in outputs):
            return {"outputs": outputs, "min_cosine": None, "max_relative": None, "within_tolerance": False}
        cosine = min((o["cosine"] for o in outputs), default=1.0)
        relative = max((o["relative"] for o in outputs), default=0.0)
        near = cosine >= self._request.min_cosine and relative <= MAX_RELATIVE
        return {"outputs": outputs, "min_cosine": cosine, "max_relative": relative, "within_tolerance": near}

    def _plan(self, spec: ArmSpec, probe: dict[str, Any], *, seed: int) -> Plan:
        request = self._request
        return measuring.plan_for(
            self._base.spec,
            spec,
            (self._base_probe, probe),
            protocol=request.protocol,
            raise_priority=request.raise_priority,
            timeout_s=request.timeout_s,
            max_seconds=request.max_seconds,
            seed=seed,
            tests=max(1, len(self._candidates)),
            fail_if_slower_pct=request.fail_if_slower_pct,
        )

    def _measure(
        self, spec: ArmSpec, probe: dict[str, Any], *, seed_offset: int = 0
    ) -> tuple[Compared, str | None, list[str]]:
        """The comparison, the name of the calibration it used, and what a reader should know."""
        self._probers.close()
        plan = self._plan(spec, probe, seed=self._request.seed + seed_offset)
        warnings = [] if plan.mode == "turns" else [SLEEPING]
        base, spec = measuring.alive_together(self._base.spec, spec, plan)
        name, calibration = self._calibration(base, plan) if self._request.calibrate else (None, calibrations.NONE)
        self._progress = Progress()
        with measuring.watching(plan.raise_priority) as raised:
            compared = bench.compare_arms(
                (base, spec),
                replace(plan, raise_priority=raised),
                calibration=calibration.values,
                environment=self._base_probe["environment"],
                start=measuring.start,
                progress=self._progress,
                on_round=lambda p: self._on_event({"event": "round", "number": p.count}),
            )
        return compared, name, [*warnings, *_doubts(compared)]

    def _calibration(self, base: ArmSpec, plan: Plan) -> tuple[str, Calibration]:
        """A/A rounds of the base in the mode of the comparison, from the cache or measured now."""
        name, have = measuring.calibrated(
            base,
            plan,
            graph=self._base.fingerprint or digest.of_file(base.arm.artifact),
            environment=self._base_probe["environment"],
            on_event=self._on_event,
            anew=self._request.recalibrate,
        )
        if name not in self._calibrations:
            self._calibrations[name] = have()
        return name, self._calibrations[name]

    def _confirm(self, done: list[dict[str, Any]]) -> None:
        """Measure again on fresh rounds: the best kept of several candidates, and gains too small for their device."""
        if not self._request.confirm:
            return
        kept = [d for d in done if d["verdict"]["verdict"] in stored.KEPT]
        best = max(kept, key=lambda d: d["verdict"]["gain_pct"], default=None)
        for number, (candidate, entry) in enumerate(zip(self._candidates, done, strict=True)):
            below = PROTOCOLS[candidate.spec.arm.target.device].confirm_below_pct
            small = below is not None and entry in kept and entry["verdict"]["gain_pct"] < below
            if not small and not (entry is best and len(done) > 1):
                continue
            self._on_event({"event": "confirmation", "label": candidate.spec.label})
            again, name, _ = self._measure(candidate.spec, self._base_probe, seed_offset=500_000 + number)
            entry["confirmation"] = {
                "first": entry["verdict"],
                "verdict": again.verdict.to_json(),
                "measurement": again.measurement.to_json(),
                "calibration": name,
            }
            entry["verdict"] = stored.unconfirmed(entry["verdict"], again.verdict.to_json())


def _distance(parity: dict[str, Any]) -> str:
    if parity["min_cosine"] is None:
        return "their shapes or types differ, or they are not finite"
    return f"cosine {parity['min_cosine']:.4f}, relative error {parity['max_relative']:.2g}"


def _fallbacks(spec: ArmSpec, probe: dict[str, Any]) -> list[str]:
    placement = probe.get("placement")
    words = None if not placement else left_words(placement)
    return [] if words is None else [f"`{spec.label}`: {words[0]} nodes run on the CPU: {words[1]}"]


def _describe(known: Known) -> dict[str, Any]:
    return {"label": known.spec.label, **known.spec.arm.to_json(), "fingerprint": known.fingerprint}


def _key(signature: dict[str, Any], request: CompareRequest) -> tuple[Any, ...]:
    """What two inputs or outputs have in common when they match."""
    name = None if request.by_position else signature["name"]
    return name, signature["type"], signature["rank"]


def _words(signature: list[dict[str, Any]]) -> str:
    return ", ".join(f"{s['name']} {s['type']} of rank {s['rank']}" for s in signature)


def _conditions(compared: Compared) -> dict[str, Any]:
    """The sentinel: what the machine did while the arms were measured."""
    base = [median(r.wall_ns) for r in compared.measurement.rounds if r.arm == 0]
    loads = [c["load_before"] for c in compared.conditions if c["load_before"] is not None]
    pressures = [c["pressure_pct"] for c in compared.conditions if c["pressure_pct"] is not None]
    return {
        "base_drift_pct": 100 * (max(base) / min(base) - 1) if base else None,
        "load_max": max(loads, default=None),
        "pressure_max_pct": max(pressures, default=None),
        "priority": compared.conditions[-1]["priority"] if compared.conditions else None,
        "disturbed": compared.disturbed,
    }


def _doubts(compared: Compared) -> list[str]:
    sentinel = _conditions(compared)
    found = []
    if sentinel["base_drift_pct"] is not None and sentinel["base_drift_pct"] > 50:
        found.append(f"the base's own wall time moved by {sentinel['base_drift_pct']:.0f} % between rounds")
    if sentinel["priority"] is None and compared.verdict.metric == "wall":
        found.append("priority was not raised: wall time includes waiting for other programs")
    return found


def compare(request: CompareRequest, on_event: OnEvent) -> dict[str, Any]:
    """Compare and return the JSON object of the contract; the gate and failures are raised with it as details."""
    arms = arms_of(request, on_event)
    with ScratchFolder("winml-compare-") as folder:
        result = Comparison(request, arms, folder, on_event).run()
    compare_result.raise_for(result)
    return result
