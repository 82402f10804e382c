"""`winml compare`: is a candidate faster than the base, by how much, and how sure is that?"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import Interrupted, ModelkitError, RequestError, RunFailedError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.statistics import median
from winml.modelkit.core.values import to_json
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.graph.description import ModelDescription
from winml.modelkit.measuring import calibration as calibrations
from winml.modelkit.measuring import rounds as bench
from winml.modelkit.measuring import warm_processes as measuring
from winml.modelkit.measuring.calibration import Calibration
from winml.modelkit.measuring.compare_arms import Arms, CompareRequest, arms_of
from winml.modelkit.measuring.compare_result import (
    Candidate,
    ComparedArm,
    CompareInputs,
    CompareResult,
    Confirmation,
    Parity,
    PartialCompare,
    Sentinel,
    gate_of_probe,
    probe_times,
    raise_for,
)
from winml.modelkit.measuring.events import BaseProbing, CandidateConfirming, CandidateTrying, RoundDone
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.reports import Distances, Port, Probe
from winml.modelkit.measuring.rounds import ArmSpec, Compared, ComparePlan, RoundProgress
from winml.modelkit.measuring.stored import confirm
from winml.modelkit.measuring.text_folder import read_text_folder
from winml.modelkit.measuring.warm_processes import Probers
from winml.modelkit.session.notes import describe_fallback
from winml.modelkit.store import digest
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

MAX_RELATIVE = 0.5
"""Outputs that point the same way and differ by more than half in size are not equal enough either."""
SLEEPING = "idle threads sleep in both arms (spinning off), because both are alive at the same time"


@dataclass(frozen=True)
class ArmFacts:
    """What is known of an arm before it is measured."""

    spec: ArmSpec
    fingerprint: str | None


def _fingerprints(specs: list[ArmSpec]) -> list[ArmFacts]:
    known: dict[str, str | None] = {}
    graphs = [_graphs_of(spec) for spec in specs]
    with Worker(preload=("winml.modelkit.graph.describe",)) as worker:
        for path in dict.fromkeys(path for several in graphs for path in several):
            described = worker.ask(ModelDescription, "graph.describe", {"path": path}, what=f"reading `{path}`")
            known[path] = described.fingerprint
    return [
        ArmFacts(spec, _join([known[path] for path in several])) for spec, several in zip(specs, graphs, strict=True)
    ]


def _graphs_of(spec: ArmSpec) -> list[str]:
    """The files of the graphs that an arm runs: those of all parts of what generates text."""
    if spec.arm.generation is None:
        return [spec.arm.artifact]
    return [str(path) for path in read_text_folder(Path(spec.arm.generation.folder)).models.values()]


def _join(fingerprints: list[str | None]) -> str | None:
    """One fingerprint of all graphs; None where one has none."""
    if len(fingerprints) == 1 or None in fingerprints:
        return fingerprints[0] if len(fingerprints) == 1 else None
    return digest.of_json(fingerprints)


def _identical(base: ArmFacts, candidate: ArmFacts) -> bool:
    a, b = base.spec.arm, candidate.spec.arm
    same_graph = base.fingerprint is not None and base.fingerprint == candidate.fingerprint
    if (a.generation is None) != (b.generation is None):
        return False
    # The folders may differ: what is in them is the graph.
    same_text = (
        a.generation is None
        or b.generation is None
        or replace(a.generation, folder="") == replace(b.generation, folder="")
    )
    return same_graph and same_text and a.target == b.target and a.session == b.session


class Comparison:
    """One run of `winml compare`: the base is probed once and its calibration shared by all candidates."""

    def __init__(self, request: CompareRequest, arms: Arms, folder: Path, on_event: OnEvent) -> None:
        self._request = request
        self._notes = arms.notes
        self._folder = folder
        self._on_event = on_event
        self._calibrations: dict[str, Calibration] = {}
        self._progress = RoundProgress()
        self._probers = Probers()
        try:
            known = _fingerprints(arms.specs)
            self._base, self._candidates = known[0], known[1:]
            on_event(BaseProbing(self._base.spec.label))
            started = time.monotonic()
            self._base_probe = self._probe(self._base.spec, "base", request.timeout_s)
            self._base_probe_s = time.monotonic() - started
        except BaseException:
            self._probers.close()
            raise

    def _probe(self, spec: ArmSpec, name: str, timeout_s: float) -> Probe:
        return self._probers.probe(spec, self._folder / f"{name}.npz", timeout_s)

    def run(self) -> CompareResult:
        done: list[Candidate] = []
        try:
            for number, candidate in enumerate(self._candidates):
                done.append(self._candidate(candidate, number))
                self._progress = RoundProgress()
            if self._request.confirm:
                self._confirm(done)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted; what was measured is in the result", result=self._partial(done)) from error
        except ModelkitError as error:
            # The results of earlier candidates must not be lost with this one.
            error.result = self._partial(done)
            raise
        finally:
            self._probers.close()
        return self._result(done)

    def _partial(self, done: list[Candidate]) -> PartialCompare:
        return PartialCompare(result=self._result(done), unfinished_rounds=tuple(self._progress.rounds))

    def _result(self, done: list[Candidate]) -> CompareResult:
        base = self._base
        return CompareResult(
            base=ComparedArm(
                label=base.spec.label,
                arm=base.spec.arm,
                fingerprint=base.fingerprint,
                placement=self._base_probe.placement,
            ),
            candidates=tuple(one.with_times() for one in done),
            calibrations=self._calibrations,
            fail_if_slower_pct=self._request.fail_if_slower_pct,
            environment=replace(self._base_probe.environment, huge_pages=measuring.huge_pages() is not None),
            inputs=CompareInputs(sizes=base.spec.inputs.sizes or {}),
            warnings=(*self._notes, *dict.fromkeys(w for one in done for w in one.warnings)),
        )

    def _candidate(self, known: ArmFacts, number: int) -> Candidate:
        spec, limit = known.spec, self._request.fail_if_slower_pct
        self._on_event(CandidateTrying(spec.label, number, len(self._candidates)))
        make = partial(
            Candidate, label=spec.label, arm=spec.arm, fingerprint=known.fingerprint, tests=len(self._candidates)
        )
        if _identical(self._base, known) and not self._request.force:
            same = Verdict("IDENTICAL", "same graph, same options: there is nothing to measure", gain_pct=0.0)
            return make(verdict=same, gate=gate_of_probe(limit, same))
        started = time.monotonic()
        try:
            limit_s = measuring.hang_limit_s(self._base_probe, self._base_probe_s)
            probe = self._probe(spec, f"candidate{number}", limit_s)
        except RunFailedError as error:
            return make(verdict=Verdict("FAILED", error.message, seconds=time.monotonic() - started))
        self._check_signature(probe, spec)
        parity = self._parity(number) if spec.arm.generation is None else None
        early = self._judge_probe(spec, probe, parity)
        probed_s = time.monotonic() - started
        make = partial(make, placement=probe.placement, environment=probe.environment, parity=parity)
        fallback = None if probe.placement is None else describe_fallback(probe.placement)
        notes = list(self._agreement(spec, probe))
        if fallback is not None:
            notes.insert(0, f"`{spec.label}`: {fallback[0]} nodes run on the CPU: {fallback[1]}")
        if early is not None:
            has_gain = early.gain_pct is not None
            return make(
                verdict=replace(early, seconds=probed_s),
                times=probe_times(self._base_probe, probe, early.metric or "wall") if has_gain else None,
                gate=gate_of_probe(limit, early),
                warnings=tuple(notes),
            )
        compared, calibration, warnings = self._measure(spec, probe)
        return make(
            verdict=replace(compared.verdict, seconds=compared.verdict.seconds + probed_s),
            gate=compared.gate,
            measurement=compared.measurement,
            calibration=calibration,
            warnings=(*notes, *warnings),
            conditions=_sentinel(compared),
        )

    def _agreement(self, spec: ArmSpec, probe: Probe) -> tuple[str, ...]:
        """How many tokens of a text are those of the base: no reason not to measure, but to know."""
        if spec.arm.generation is None:
            return ()
        pairs = list(zip(self._base_probe.tokens, probe.tokens, strict=True))
        equal = sum(a == b for a, b in pairs)
        return (f"`{spec.label}` generates {equal} of {len(pairs)} tokens as the base does",)

    def _judge_probe(self, spec: ArmSpec, probe: Probe, parity: Parity | None) -> Verdict | None:
        """A verdict that needs no measuring: the candidate computes something else, or is far slower."""
        if parity is not None and not parity.within_tolerance and not self._request.allow_different:
            reason = f"outputs differ from the base's: {_distance(parity)}; `--allow-different` measures anyway"
            return Verdict("FAILED", reason)
        base = self._base_probe
        mode = bench.choose_mode(self._base.spec, spec)
        metric = bench.choose_metric(self._base.spec, spec, mode, (base, probe))
        factor = bench.far_slower(base, probe, metric)
        if factor is None or self._request.force:
            return None
        reason = f"{factor:.1f} times slower in a probe of 3 runs"
        return Verdict("DISCARD", reason, gain_pct=100 * (1 - factor), metric=metric)

    def _check_signature(self, probe: Probe, spec: ArmSpec) -> None:
        base, by_position = self._base_probe, self._request.by_position
        for side, ours, theirs in (("inputs", base.inputs, probe.inputs), ("outputs", base.outputs, probe.outputs)):
            if _comparable(ours, by_position) != _comparable(theirs, by_position):
                raise RequestError(
                    f"`{spec.label}` has different {side} than the base: {_describe_ports(theirs)} instead of "
                    f"{_describe_ports(ours)}",
                    hint="`--by-position` matches them by position when only names differ",
                )
        if base.shapes != probe.shapes:
            raise RequestError(
                f"`{spec.label}` would run on inputs {to_json(probe.shapes)}, the base on {to_json(base.shapes)}",
                hint="give symbolic dimensions a size with `--dim NAME=N`",
            )

    def _parity(self, number: int) -> Parity:
        args = {"base": str(self._folder / "base.npz"), "candidate": str(self._folder / f"candidate{number}.npz")}
        outputs = self._probers.of(None).ask(Distances, "bench.distance", args).outputs
        cosines = [o.cosine for o in outputs if o.cosine is not None]
        if len(cosines) < len(outputs):
            return Parity(outputs=outputs, min_cosine=None, max_relative=None, within_tolerance=False)
        cosine = min(cosines, default=1.0)
        relative = max((o.relative or 0.0 for o in outputs), default=0.0)
        near = cosine >= self._request.min_cosine and relative <= MAX_RELATIVE
        return Parity(outputs=outputs, min_cosine=cosine, max_relative=relative, within_tolerance=near)

    def _plan(self, spec: ArmSpec, probe: Probe, *, seed: int) -> ComparePlan:
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

    def _measure(self, spec: ArmSpec, probe: Probe, *, seed_offset: int = 0) -> tuple[Compared, str | None, list[str]]:
        """The comparison, the name of the calibration it used, and what a reader should know."""
        self._probers.close()
        plan = self._plan(spec, probe, seed=self._request.seed + seed_offset)
        warnings = [] if plan.mode == "turns" else [SLEEPING]
        base, spec = measuring.alive_together(self._base.spec, spec, plan)
        name, calibration = None, calibrations.NONE
        if self._request.calibrate and plan.metric != "memory":  # which hardly varies
            name, calibration = self._calibration(base, plan)
        self._progress = RoundProgress()
        self._on_event(bench.expect_rounds(plan, calibration.values))
        with measuring.watching(plan.raise_priority) as raised:
            compared = bench.compare_arms(
                (base, spec),
                replace(plan, raise_priority=raised),
                calibration=calibration.values,
                environment=self._base_probe.environment,
                start=measuring.start_ordinary if plan.metric == "memory" else measuring.start,
                progress=self._progress,
                on_round=lambda p: self._on_event(RoundDone(p.count)),
            )
        return compared, name, [*warnings, *_comparison_warnings(compared)]

    def _calibration(self, base: ArmSpec, plan: ComparePlan) -> tuple[str, Calibration]:
        """A/A rounds of the base in the mode of the comparison, from the cache or measured now."""
        name, have = measuring.find_calibration(
            base,
            plan,
            graph=self._base.fingerprint or digest.of_file(base.arm.artifact),
            environment=self._base_probe.environment,
            on_event=self._on_event,
            recalibrate=self._request.recalibrate,
        )
        if name not in self._calibrations:
            self._calibrations[name] = have()
        return name, self._calibrations[name]

    def _confirm(self, done: list[Candidate]) -> None:
        """Measure again on fresh rounds: the best kept of several candidates, and gains too small for their device."""
        kept = [one for one in done if one.verdict.kept]
        best = max(kept, key=lambda one: one.verdict.gain_pct or 0.0, default=None)
        for number, (known, one) in enumerate(zip(self._candidates, list(done), strict=True)):
            below = PROTOCOLS[known.spec.arm.target.device].confirm_below_pct
            small = below is not None and one.verdict.kept and (one.verdict.gain_pct or 0.0) < below
            if not small and not (one is best and len(done) > 1):
                continue
            self._on_event(CandidateConfirming(known.spec.label))
            again, name, _ = self._measure(known.spec, self._base_probe, seed_offset=500_000 + number)
            confirmation = Confirmation(
                first=one.verdict, verdict=again.verdict, measurement=again.measurement, calibration=name
            )
            verdict = confirm(one.verdict, again.verdict)
            done[number] = replace(one, verdict=verdict, confirmation=confirmation)


def _distance(parity: Parity) -> str:
    if parity.min_cosine is None:
        return "their shapes or types differ, or they are not finite"
    return f"cosine {parity.min_cosine:.4f}, relative error {parity.max_relative:.2g}"


def _comparable(ports: Sequence[Port], by_position: bool) -> list[Port]:
    """Inputs or outputs with what they must have in common to match."""
    return [replace(port, name="") for port in ports] if by_position else list(ports)


def _describe_ports(ports: Sequence[Port]) -> str:
    return ", ".join(f"{p.name} {p.type} of rank {p.rank}" for p in ports)


def _sentinel(compared: Compared) -> Sentinel:
    base = [median(r.wall_ns) for r in compared.measurement.rounds if r.arm == 0]
    loads = [c.load_before for c in compared.conditions if c.load_before is not None]
    pressures = [c.pressure_pct for c in compared.conditions if c.pressure_pct is not None]
    return Sentinel(
        base_drift_pct=100 * (max(base) / min(base) - 1) if base else None,
        load_max=max(loads, default=None),
        pressure_max_pct=max(pressures, default=None),
        priority=compared.conditions[-1].priority if compared.conditions else None,
        disturbed=compared.disturbed,
    )


def _comparison_warnings(compared: Compared) -> list[str]:
    seen = _sentinel(compared)
    found = []
    if seen.base_drift_pct is not None and seen.base_drift_pct > 50:
        found.append(f"the base's own wall time changed by {seen.base_drift_pct:.0f} % between rounds")
    if seen.priority is None and compared.verdict.metric == "wall":
        found.append("priority was not raised: wall time includes waiting for other programs")
    return found


def compare(request: CompareRequest, on_event: OnEvent) -> CompareResult:
    """Compare; the gate and failures are raised with the result."""
    arms = arms_of(request, on_event)
    with ScratchFolder("winml-compare-") as folder:
        result = Comparison(request, arms, folder, on_event).run()
    raise_for(result)
    return result
