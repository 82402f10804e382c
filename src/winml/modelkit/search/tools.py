"""What a search does to the outside world: builds through the cache, probes, the gate, rounds against the baseline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.building import build_compile, weight_range
from winml.modelkit.building.build import steps
from winml.modelkit.building.optimize.knobs import ordered
from winml.modelkit.building.pipeline.artifact import Source
from winml.modelkit.building.pipeline.run import Pipeline
from winml.modelkit.core.config import BuildConfig, config_from_json
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.core.measurement import Arm, Measurement
from winml.modelkit.core.statistics import median
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.core.verdict import Clock, Verdict
from winml.modelkit.ep import options
from winml.modelkit.ep.probing import Planned
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.measuring import rounds as bench
from winml.modelkit.measuring import warm_processes as measuring
from winml.modelkit.measuring.protocols import CompareProtocol
from winml.modelkit.measuring.rounds import ArmSpec, Plan, Progress
from winml.modelkit.measuring.summary import arm_medians_ms, arm_times
from winml.modelkit.search.gate import Gate
from winml.modelkit.search.guards import Built, Checked, Probed
from winml.modelkit.search.trial import Series, Yardstick, exact
from winml.modelkit.store import digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

Objective = Literal["latency", "size", "placement"]
CLOCKS: tuple[Clock, Clock] = ("cpu", "wall")
FIRST_PROBE_TIMEOUT_S = 300.0
ROUND_TIMEOUT_S = 60.0
CONFIRM_S = 60.0
MACHINE = ("architecture", "cpu", "cores")
"""What makes two machines another one when times are compared."""
CONFIRM_SEED = 500_000
"""Seeds of confirming rounds, which no other round has."""

OnEvent = Callable[[dict[str, Any]], None]
Keep = Callable[[str, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Job:
    """What is searched for, and how it is measured."""

    source: Source
    targets: Mapping[str, Resolved]
    """By the word a config has for them."""
    baseline: Mapping[str, Any]
    """The config of the baseline, as JSON."""
    calibration: Mapping[str, Any] | None
    """The data section that static quantization gets."""
    inputs: Mapping[str, Any]
    objective: Objective
    protocol: CompareProtocol
    raise_priority: bool = True
    calibrate: bool = True
    seed: int = 0
    build_timeout_s: float | None = None
    measured_on: Mapping[str, Any] | None = None
    """The machine that earlier rounds are of; rounds of two machines say nothing together."""


@dataclass(frozen=True)
class _Base:
    """The baseline, ready to be measured against."""

    built: Built
    spec: ArmSpec
    probe: dict[str, Any]
    probe_s: float


def completed(config: Mapping[str, Any], calibration: Mapping[str, Any] | None) -> BuildConfig:
    """A config of the space with what its knobs leave open: the data of static quantization, the order of passes.

    It is made of the baseline, which was checked when it was read, and of knobs of this program: journals and space
    files name knobs and levels, and hold no options of their own.
    """
    value = {**config}
    if value.get("optimize") is not None:
        value["optimize"] = {**value["optimize"], "passes": ordered(value["optimize"].get("passes", []))}
    quantize = value.get("quantize")
    if quantize is not None:
        data = calibration if quantize["mode"] == "static" else None
        value["quantize"] = {**quantize, "calibration": data}
    return config_from_json(value, OWN_REQUEST)


def check_machine(before: Mapping[str, Any] | None, here: Mapping[str, Any]) -> None:
    """Refuse to time on another machine than before."""
    if before is None or all(before.get(key) == here[key] for key in MACHINE):
        return
    was, now = (f"{machine.get('cpu')}, {machine.get('cores')} cores" for machine in (before, here))
    raise UnavailableError(
        f"the trials so far were timed on another machine ({was}); this is {now}",
        hint="go on where they were timed, or search anew in another folder",
    )


class Workbench:
    """The tools of a search on this machine."""

    def __init__(self, job: Job, gate: Gate, folder: Path, *, keep: Keep, on_event: OnEvent) -> None:
        self._job = job
        self._gate = gate
        self._folder = folder
        self._keep = keep
        self._on_event = on_event
        self._cache = Cache()
        self._reader = Worker(preload=("winml.modelkit.graph.describe",))
        self._probers = measuring.Probers()
        self._described: dict[str, dict[str, Any]] = {}
        self._specs: dict[str, ArmSpec] = {}
        self._probes: dict[str, dict[str, Any]] = {}
        self._base: _Base | None = None
        self._environment: dict[str, Any] = {}

    def close(self) -> None:
        self._reader.close()
        self._probers.close()

    def _living_reader(self) -> Worker:
        """The process that answers small questions; a new one after a model took it down."""
        if not self._reader.alive:
            self._reader = Worker(preload=("winml.modelkit.graph.describe",))
        return self._reader

    # --- building

    def _with_range(self, config: BuildConfig) -> BuildConfig:
        """The config with the range of its weights decided, as `winml build` of it would."""
        if config.quantize is None:
            return config
        target = self._job.targets[config.target].target
        return replace(config, quantize=weight_range.resolve(config.quantize, target, self._living_reader())[0])

    def build(self, config: Mapping[str, Any]) -> Built:
        made = self._with_range(completed(config, self._job.calibration))
        pipeline = Pipeline(
            self._job.source,
            cache=self._cache,
            start=Worker,
            on_event=self._on_event,
            timeout_s=self._job.build_timeout_s,
        )
        for step in steps(made, self._job.source):
            pipeline.run(step)
        if made.compile is not None:
            here = self._job.targets[made.target]
            planned = Planned(here.target, here, None)
            timeout_s = self._job.build_timeout_s
            settings = build_compile.settings_for(made.compile, planned, rebuild=False, timeout_s=timeout_s)
            build_compile.compiled(pipeline, settings, self._cache)
        path = self._placed(pipeline)
        known = self._describe(pipeline.artifact.digest, path)
        spec = self._spec(made, path)
        identity = digest.of_json(
            [known["fingerprint"] or pipeline.artifact.digest, made.target, spec.arm.session.to_json()]
        )
        self._specs[identity] = spec
        artifact = {
            "digest": pipeline.artifact.digest,
            "fingerprint": known["fingerprint"],
            "bytes": sum(file["bytes"] for file in known["files"]),
        }
        stages = [{"stage": r.step.stage.name, "hit": r.hit, "seconds": r.seconds} for r in pipeline.runs]
        return Built(str(path), identity, {"artifact": artifact, "stages": stages, "target": made.target})

    def _placed(self, pipeline: Pipeline) -> Path:
        """Where the files of an artifact lie; linked from the store once."""
        name = pipeline.artifact.digest.removeprefix(digest.PREFIX)[:24]
        folder = self._folder / "artifacts" / name
        if (folder / pipeline.artifact.main).is_file():
            return folder / pipeline.artifact.main
        return pipeline.materialize(folder)

    def _describe(self, name: str, path: Path) -> dict[str, Any]:
        if name not in self._described:
            args = {"path": str(path)}
            self._described[name] = self._living_reader().call("graph.describe", args, what="reading the model")
        return self._described[name]

    def _spec(self, made: BuildConfig, path: Path) -> ArmSpec:
        resolved = self._job.targets[made.target]
        section = made.session
        given = options.with_threads(resolved.target, section.ep_options, section.threads)
        section = replace(section, ep_options=options.checked(resolved.target, given))
        installed = resolved.installed
        return ArmSpec(
            Arm(str(path), resolved.target, section),
            path.name,
            installed.python,
            installed.package.distribution,
            dict(self._job.inputs),
        )

    # --- guards

    def _baseline(self) -> _Base:
        """The baseline, built and probed once; a search that goes on does that anew."""
        if self._base is None:
            built = self.build(self._job.baseline)
            spec = self._specs[built.identity]
            started = time.monotonic()
            probe = self._run_probe(spec, FIRST_PROBE_TIMEOUT_S)
            self._environment = probe["environment"]
            check_machine(self._job.measured_on, self._environment["machine"])
            self._base = _Base(built, spec, probe, time.monotonic() - started)
            self._probes[built.identity] = probe
        return self._base

    def _run_probe(self, spec: ArmSpec, timeout_s: float) -> dict[str, Any]:
        return self._probers.probe(spec, self._folder / "probe.npz", timeout_s)

    def probe(self, built: Built) -> Probed:
        base = self._baseline()
        spec = self._specs[built.identity]
        if built.identity not in self._probes:
            limit_s = measuring.hang_limit_s(base.probe, base.probe_s)
            self._probes[built.identity] = self._run_probe(spec, limit_s)
        probe = self._probes[built.identity]
        facts = {"placement": probe["placement"], "ms": _milliseconds(probe), "verdict_s": self._verdict_s(base.probe)}
        if built.identity == base.built.identity:
            facts["environment"] = self._environment
        if self._job.objective != "latency":
            return Probed(0.0, facts)
        mode = bench.choose_mode(base.spec, spec)
        clock = f"{bench.choose_metric(base.spec, spec, mode, (base.probe, probe))}_ns"
        return Probed(min(probe[clock]) / max(1, *base.probe[clock]), facts)

    def _verdict_s(self, probe: dict[str, Any]) -> float:
        """About how long the rounds of a first look take: runs of both arms, and a process per round."""
        if self._job.objective != "latency":
            return 0.0
        protocol = self._job.protocol
        run_s = median(probe["wall_ns"]) / 1e9
        round_s = 2 * max(protocol.min_round_s, protocol.few_pairs * run_s) + protocol.cool_down_s + 1.0
        return protocol.first_look * round_s

    def placement(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Where the nodes of a config go."""
        found: Mapping[str, Any] = self.probe(self.build(config)).facts["placement"]
        return found

    def check(self, built: Built) -> Checked:
        given = self.build({**self._job.baseline, "precision": "fp32", "quantize": None, "compile": None})
        if built.identity == given.identity or not self._gate.ready:
            # The baseline of a preset can be quantized, and is then held against the given model like any other config.
            reference = self._gate.reference(self._specs[given.identity])
            if built.identity == given.identity:
                return reference
        return self._gate.check(self._specs[built.identity])

    # --- measuring

    def _pair(self, built: Built, seed: int) -> tuple[tuple[ArmSpec, ArmSpec], Plan]:
        base, spec = self._baseline(), self._specs[built.identity]
        if built.identity not in self._probes:
            self.probe(built)
        plan = measuring.plan_for(
            base.spec,
            spec,
            (base.probe, self._probes[built.identity]),
            protocol=self._job.protocol,
            raise_priority=self._job.raise_priority,
            timeout_s=ROUND_TIMEOUT_S,
            max_seconds=CONFIRM_S,
            seed=self._job.seed + seed,
        )
        return measuring.alive_together(base.spec, spec, plan), plan

    def measure(self, built: Built, *, rounds: int, first: int) -> Series:
        if self._job.objective != "latency":
            return exact(self._counted(built))
        specs, plan = self._pair(built, first)
        self._probers.close()
        progress = Progress()
        with measuring.watching(plan.raise_priority) as raised:
            plan = replace(plan, raise_priority=raised)
            while progress.count < rounds:
                bench.measure_round(specs, plan, measuring.start, progress)
                self._on_event({"event": "round", "number": first + progress.count})
        taken = bench.measurement(specs, plan, progress, self._environment)
        self._keep(f"{_short(built)}-{first}", taken.to_json())
        return _series(taken, plan, progress)

    def _counted(self, built: Built) -> float:
        """Log of how much less there is than in the baseline: bytes, or pieces that are handed over."""
        base = self._baseline().built
        bytes_ratio = math.log(self._bytes(base) / self._bytes(built))
        if self._job.objective == "size":
            return bytes_ratio
        parts = [pieces(self._probes[b.identity]["placement"]) for b in (base, built)]
        # Among builds in equally many pieces the smaller one is better; size alone hardly outweighs a piece.
        return math.log(parts[0] / parts[1]) + 0.1 * bytes_ratio

    def _bytes(self, built: Built) -> int:
        return int(built.facts["artifact"]["bytes"])

    def calibrate(self, built: Built) -> Mapping[str, tuple[float, ...]] | None:
        """A/A rounds of the baseline, from the cache where they are."""
        if self._job.objective != "latency" or not self._job.calibrate:
            return None
        (base, _), plan = self._pair(built, 0)
        self._probers.close()
        _, have = measuring.calibrated(
            base,
            plan,
            graph=built.facts["artifact"]["fingerprint"] or built.facts["artifact"]["digest"],
            environment=self._environment,
            on_event=self._on_event,
        )
        values = have().values
        return {clock: tuple(values[clock]) for clock in CLOCKS}

    def confirm(self, built: Built, within_s: float) -> tuple[Verdict, Mapping[str, Any]]:
        if self._job.objective != "latency":
            return Yardstick(self._job.protocol).verdict(exact(self._counted_again(built))), {}
        specs, plan = self._pair(built, CONFIRM_SEED)
        plan = replace(plan, max_seconds=min(CONFIRM_S, within_s))
        calibration = self.calibrate(self._baseline().built) or {}
        self._probers.close()
        with measuring.watching(plan.raise_priority) as raised:
            compared = bench.compare_arms(
                specs,
                replace(plan, raise_priority=raised),
                calibration={clock: list(calibration.get(clock, ())) for clock in CLOCKS},
                environment=self._environment,
                start=measuring.start,
                progress=Progress(),
                on_round=lambda p: self._on_event({"event": "round", "number": p.count}),
            )
        self._keep(f"{_short(built)}-confirmation", compared.measurement.to_json())
        times = arm_times(compared.measurement, plan.metric)
        return compared.verdict, {"measurement": f"{_short(built)}-confirmation", "times": times}

    def _counted_again(self, built: Built) -> float:
        """Counted anew in another process."""
        self._probers.close()
        self._probes.pop(built.identity, None)
        self.probe(built)
        return self._counted(built)


def _short(built: Built) -> str:
    return built.identity.removeprefix(digest.PREFIX)[:12]


def _milliseconds(probe: dict[str, Any]) -> dict[str, float]:
    return {clock: median(probe[f"{clock}_ns"]) / 1e6 for clock in CLOCKS}


EDGES = ("QuantizeLinear", "DequantizeLinear")
"""Operators that an EP leaves to the CPU where a quantized model takes and gives floats."""


def pieces(placement: Mapping[str, Any]) -> int:
    """Groups of nodes that the EP compiled, and nodes that run on the CPU in between."""
    requested = placement["requested"]
    if not placement["nodes"].get(requested):
        return 1 + int(sum(placement["nodes"].values()))
    left = sum(count for op, count in placement["cpu_ops"].items() if op not in EDGES)
    return max(1, int(placement["partitions"].get(requested, 1))) + int(left)


def _series(taken: Measurement, plan: Plan, progress: Progress) -> Series:
    values: dict[str, tuple[float, ...]] = {clock: tuple(bench.values_of(taken, clock)) for clock in CLOCKS}
    reasons = [bench.disturbance(plan, conditions) for conditions in progress.conditions]
    medians: dict[str, tuple[tuple[float, float], ...]] = {
        clock: tuple(zip(*arm_medians_ms(taken, clock), strict=False)) for clock in CLOCKS
    }
    return Series(plan.metric, values, next((r for r in reasons if r is not None), None), medians)
