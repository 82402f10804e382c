"""What a search runs: builds through the cache, probes, the gate, rounds against the baseline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from winml.modelkit.building import build_compile, weight_range
from winml.modelkit.building.optimize.knobs import sort_passes
from winml.modelkit.building.pipeline.artifact import Source
from winml.modelkit.building.pipeline.run import Pipeline
from winml.modelkit.building.pipeline.steps import make_steps
from winml.modelkit.core.config import BuildConfig, DataSection, config_from_json
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Machine
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.measurement import Arm, CompareProtocol, Measurement
from winml.modelkit.core.objective import MEASURED, TIMED, Objective
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.statistics import median
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.core.values import to_json
from winml.modelkit.core.verdict import Clock, Verdict
from winml.modelkit.ep import options
from winml.modelkit.ep.probing import Planned
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.graph.description import ModelDescription
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring import rounds as bench
from winml.modelkit.measuring import warm_processes as measuring
from winml.modelkit.measuring.calibration import ClockValues
from winml.modelkit.measuring.events import RoundDone
from winml.modelkit.measuring.reports import Probe
from winml.modelkit.measuring.rounds import ArmSpec, ComparePlan, RoundProgress
from winml.modelkit.measuring.summary import arm_medians_ms, arm_memory, arm_times
from winml.modelkit.search.decoders import SearchedDecoder
from winml.modelkit.search.gate import Gate
from winml.modelkit.search.guards import Built, Calibration, GateAnswer, ProbeAnswer
from winml.modelkit.search.space import ConfigJSON
from winml.modelkit.search.trial import FreshRounds, Series, StageRun, TrialArtifact, Yardstick, exact_series
from winml.modelkit.store import digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

CLOCKS: tuple[Clock, Clock] = ("cpu", "wall")
FIRST_PROBE_TIMEOUT_S = 300.0
ROUND_TIMEOUT_S = 60.0
CONFIRM_S = 60.0
CONFIRM_SEED = 500_000
"""First seed of confirming rounds, beyond those of other rounds."""

Keep = Callable[[str, Measurement], None]


@dataclass(frozen=True)
class SearchSubject:
    """The model and targets of a search, and how it measures."""

    source: Source
    targets: Mapping[str, Resolved]
    """By their name in configs."""
    baseline: ConfigJSON
    calibration: DataSection | None
    """The data section for static quantization."""
    inputs: InputSettings
    objective: Objective
    protocol: CompareProtocol
    raise_priority: bool = True
    calibrate: bool = True
    seed: int = 0
    build_timeout_s: float | None = None
    measured_on: Machine | None = None
    """The machine of earlier rounds; rounds of two machines cannot be combined."""
    decoder: SearchedDecoder | None = None
    """For a model that generates text."""


@dataclass(frozen=True)
class _Base:
    """The baseline, ready to be measured against."""

    built: Built
    spec: ArmSpec
    probe: Probe
    probe_s: float


def complete_config(config: ConfigJSON, calibration: DataSection | None) -> BuildConfig:
    """A config of the space, completed with the data of static quantization and the order of passes.

    It consists of the baseline, which was checked when it was read, and of this program's knobs: journals and space
    files refer to knobs and levels, and have no options of their own.
    """
    value = {**config}
    if value.get("optimize") is not None:
        value["optimize"] = {**value["optimize"], "passes": sort_passes(value["optimize"].get("passes", []))}
    quantize = value.get("quantize")
    if quantize is not None:
        data = calibration if quantize["mode"] == "static" else None
        value["quantize"] = {**quantize, "calibration": to_json(data)}
    return config_from_json(value, OWN_REQUEST)


def check_machine(before: Machine | None, here: Machine) -> None:
    """Raise when earlier trials were timed on another machine."""

    def kind(machine: Machine) -> tuple[object, ...]:
        return machine.architecture, machine.cpu, machine.cores

    if before is None or kind(before) == kind(here):
        return
    was, now = (f"{machine.cpu}, {machine.cores} cores" for machine in (before, here))
    raise UnavailableError(
        f"the trials so far were timed on another machine ({was}); this is {now}",
        hint="resume on the machine where they were timed, or start a search in another folder",
    )


class Workbench:
    """The tools of a search on this machine."""

    def __init__(self, subject: SearchSubject, gate: Gate, folder: Path, *, keep: Keep, on_event: OnEvent) -> None:
        self._subject = subject
        self._gate = gate
        self._folder = folder
        self._keep = keep
        self._on_event = on_event
        self._cache = Cache()
        self._reader = Worker(preload=("winml.modelkit.graph.describe",))
        self._probers = measuring.Probers()
        self._described: dict[str, ModelDescription] = {}
        self._specs: dict[str, ArmSpec] = {}
        self._probes: dict[str, Probe] = {}
        self._base: _Base | None = None

    def close(self) -> None:
        self._reader.close()
        self._probers.close()

    def _ensure_reader(self) -> Worker:
        """The worker that reads models; a new one after a model crashed it."""
        if not self._reader.alive:
            self._reader = Worker(preload=("winml.modelkit.graph.describe",))
        return self._reader

    # --- building

    def _with_range(self, config: BuildConfig) -> BuildConfig:
        """The config with its weight range resolved, as `winml build` does."""
        if config.quantize is None:
            return config
        target = self._subject.targets[config.target].target
        return replace(config, quantize=weight_range.resolve(config.quantize, target, self._ensure_reader())[0])

    def build(self, config: ConfigJSON) -> Built:
        made = self._with_range(complete_config(config, self._subject.calibration))
        pipeline = Pipeline(
            self._subject.source,
            cache=self._cache,
            start=Worker,
            on_event=self._on_event,
            timeout_s=self._subject.build_timeout_s,
        )
        for step in make_steps(made, self._subject.source):
            pipeline.run(step)
        if made.compile is not None:
            here = self._subject.targets[made.target]
            planned = Planned(here.target, here, None)
            timeout_s = self._subject.build_timeout_s
            settings = build_compile.settings_for(made.compile, planned, rebuild=False, timeout_s=timeout_s)
            build_compile.compile_artifact(pipeline, settings, self._cache)
        path = self._place(pipeline)
        known = self._describe(pipeline.artifact.digest, path)
        spec = self._spec(made, path)
        identity = digest.of_json(
            [known.fingerprint or pipeline.artifact.digest, made.target, to_json(spec.arm.session)]
        )
        self._specs[identity] = spec
        return Built(
            path=str(path),
            identity=identity,
            target=made.target,
            artifact=TrialArtifact(
                digest=pipeline.artifact.digest,
                fingerprint=known.fingerprint,
                bytes=sum(file.bytes for file in known.files),
            ),
            stages=tuple(StageRun(stage=r.step.stage.name, hit=r.hit, seconds=r.seconds) for r in pipeline.runs),
        )

    def _place(self, pipeline: Pipeline) -> Path:
        """The path of an artifact's files, linked from the store once."""
        name = pipeline.artifact.digest.removeprefix(digest.PREFIX)[:24]
        folder = self._folder / "artifacts" / name
        path = folder / pipeline.artifact.main
        if not path.is_file():
            path = pipeline.materialize(folder)
        if self._subject.decoder is not None:
            self._subject.decoder.complete_folder(path)
        return path

    def _describe(self, name: str, path: Path) -> ModelDescription:
        if name not in self._described:
            args, what = {"path": str(path)}, "reading the model"
            self._described[name] = self._ensure_reader().ask(ModelDescription, "graph.describe", args, what=what)
        return self._described[name]

    def _spec(self, made: BuildConfig, path: Path) -> ArmSpec:
        resolved = self._subject.targets[made.target]
        section = made.session
        given = options.with_threads(resolved.target, section.ep_options, section.threads)
        section = replace(section, ep_options=options.check_options(resolved.target, given))
        installed, decoder = resolved.installed, self._subject.decoder
        text = None if decoder is None else decoder.arm(path, resolved.target, section)
        return ArmSpec(
            Arm(artifact=str(path), target=resolved.target, session=section, generation=text),
            path.name,
            installed.python,
            installed.package.distribution,
            self._subject.inputs,
        )

    # --- guards

    def _baseline(self) -> _Base:
        """The baseline, built and probed once per run."""
        if self._base is None:
            built = self.build(self._subject.baseline)
            spec = self._specs[built.identity]
            started = time.monotonic()
            probe = self._run_probe(spec, FIRST_PROBE_TIMEOUT_S)
            check_machine(self._subject.measured_on, probe.environment.machine)
            self._base = _Base(built, spec, probe, time.monotonic() - started)
            self._probes[built.identity] = probe
        return self._base

    def _run_probe(self, spec: ArmSpec, timeout_s: float) -> Probe:
        return self._probers.probe(spec, self._folder / "probe.npz", timeout_s)

    def probe(self, built: Built) -> ProbeAnswer:
        base = self._baseline()
        spec = self._specs[built.identity]
        if built.identity not in self._probes:
            limit_s = measuring.hang_limit_s(base.probe, base.probe_s)
            self._probes[built.identity] = self._run_probe(spec, limit_s)
        probe = self._probes[built.identity]
        slowdown = 0.0
        if self._subject.objective in TIMED:
            mode = bench.choose_mode(base.spec, spec)
            clock = bench.choose_metric(base.spec, spec, mode, (base.probe, probe))
            slowdown = min(probe.on(clock)) / max(1, *base.probe.on(clock))
        return ProbeAnswer(
            slowdown=slowdown,
            verdict_s=self._verdict_s(base.probe),
            placement=probe.placement,
            ms={clock: median(probe.on(clock)) / 1e6 for clock in CLOCKS},
            environment=probe.environment if built.identity == base.built.identity else None,
        )

    def _verdict_s(self, probe: Probe) -> float:
        """Estimated time of the rounds of a first look: runs of both arms, and a process per round."""
        if self._subject.objective not in MEASURED:
            return 0.0
        protocol = self._subject.protocol
        run_s = median(probe.wall_ns) / 1e9
        round_s = 2 * max(protocol.min_round_s, protocol.few_pairs * run_s) + protocol.cool_down_s + 1.0
        return protocol.first_look * round_s

    def placement(self, config: ConfigJSON) -> Placement:
        """Where the nodes of a config go."""
        built = self.build(config)
        self.probe(built)
        return self._placement_of(built)

    def _placement_of(self, built: Built) -> Placement:
        found = self._probes[built.identity].placement
        assert found is not None  # only other programs than ONNX Runtime do not say it, and a search runs none
        return found

    def check(self, built: Built) -> GateAnswer:
        given = self.build({**self._subject.baseline, "precision": "fp32", "quantize": None, "compile": None})
        if built.identity == given.identity or not self._gate.ready:
            # The baseline of a preset can be quantized; it is then compared with the given model like any other config.
            reference = self._gate.reference(self._specs[given.identity])
            if built.identity == given.identity:
                return reference
        return self._gate.check(self._specs[built.identity])

    # --- measuring

    def _pair(self, built: Built, seed: int) -> tuple[tuple[ArmSpec, ArmSpec], ComparePlan]:
        base, spec = self._baseline(), self._specs[built.identity]
        if built.identity not in self._probes:
            self.probe(built)
        plan = measuring.plan_for(
            base.spec,
            spec,
            (base.probe, self._probes[built.identity]),
            protocol=self._subject.protocol,
            raise_priority=self._subject.raise_priority,
            timeout_s=ROUND_TIMEOUT_S,
            max_seconds=CONFIRM_S,
            seed=self._subject.seed + seed,
        )
        return measuring.alive_together(base.spec, spec, plan), plan

    def measure(self, built: Built, *, rounds: int, first: int) -> Series:
        if self._subject.objective not in MEASURED:
            return exact_series(self._count(built))
        specs, plan = self._pair(built, first)
        self._probers.close()
        progress = RoundProgress()
        with measuring.watching(plan.raise_priority) as raised:
            plan = replace(plan, raise_priority=raised)
            while progress.count < rounds:
                bench.measure_round(specs, plan, _start_for(plan), progress)
                self._on_event(RoundDone(first + progress.count))
        taken = bench.measurement(specs, plan, progress, self._baseline().probe.environment)
        self._keep(f"{_short(built)}-{first}", taken)
        return _series(taken, plan, progress)

    def _count(self, built: Built) -> float:
        """Log of the ratio to the baseline: of bytes, or of pieces."""
        base = self._baseline().built
        bytes_ratio = math.log(base.artifact.bytes / built.artifact.bytes)
        if self._subject.objective == "size":
            return bytes_ratio
        pieces = [count_pieces(self._placement_of(b)) for b in (base, built)]
        # Among builds with equally many pieces the smaller one is better; size alone hardly outweighs a piece.
        return math.log(pieces[0] / pieces[1]) + 0.1 * bytes_ratio

    def calibrate(self, built: Built) -> Calibration | None:
        """A/A rounds of the baseline, from the cache if present."""
        if self._subject.objective not in TIMED or not self._subject.calibrate:  # memory hardly varies
            return None
        (base, _), plan = self._pair(built, 0)
        self._probers.close()
        _, have = measuring.find_calibration(
            base,
            plan,
            graph=built.artifact.fingerprint or built.artifact.digest,
            environment=self._baseline().probe.environment,
            on_event=self._on_event,
        )
        values = have().values
        return {clock: values.on(clock) for clock in CLOCKS}

    def confirm(self, built: Built, within_s: float) -> tuple[Verdict, FreshRounds]:
        if self._subject.objective not in MEASURED:
            # Counted again in another process.
            self._probers.close()
            self._probes.pop(built.identity, None)
            self.probe(built)
            return Yardstick(self._subject.protocol).verdict(exact_series(self._count(built))), FreshRounds()
        specs, plan = self._pair(built, CONFIRM_SEED)
        plan = replace(plan, max_seconds=min(CONFIRM_S, within_s))
        known = self.calibrate(self._baseline().built) or {}
        calibration = ClockValues(cpu=known.get("cpu", ()), wall=known.get("wall", ()))
        self._probers.close()
        self._on_event(bench.expect_rounds(plan, calibration))
        with measuring.watching(plan.raise_priority) as raised:
            compared = bench.compare_arms(
                specs,
                replace(plan, raise_priority=raised),
                calibration=calibration,
                environment=self._baseline().probe.environment,
                start=_start_for(plan),
                progress=RoundProgress(),
                on_round=lambda p: self._on_event(RoundDone(p.count)),
            )
        name = f"{_short(built)}-confirmation"
        self._keep(name, compared.measurement)
        if plan.metric == "memory":
            return compared.verdict, FreshRounds(measurement=name, memory=arm_memory(compared.measurement))
        return compared.verdict, FreshRounds(measurement=name, times=arm_times(compared.measurement, plan.metric))


def _start_for(plan: ComparePlan) -> bench.Start:
    """Memory is that of a process with pages of the ordinary size."""
    return measuring.start_ordinary if plan.metric == "memory" else measuring.start


def _short(built: Built) -> str:
    return built.identity.removeprefix(digest.PREFIX)[:12]


EDGES = ("QuantizeLinear", "DequantizeLinear")
"""Operators that an EP leaves to the CPU at the float inputs and outputs of a quantized model."""


def count_pieces(placement: Placement) -> int:
    """Groups of nodes that the EP compiled, and nodes that run on the CPU in between."""
    if not placement.nodes.get(placement.requested):
        return 1 + placement.total
    left = sum(count for op, count in placement.cpu_ops.items() if op not in EDGES)
    return max(1, placement.partitions.get(placement.requested, 1)) + left


def _series(taken: Measurement, plan: ComparePlan, progress: RoundProgress) -> Series:
    if plan.metric == "memory":
        return Series("memory", {"memory": tuple(bench.values_of(taken, "memory"))})
    values: dict[str, tuple[float, ...]] = {clock: tuple(bench.values_of(taken, clock)) for clock in CLOCKS}
    reasons = [bench.disturbance(plan, conditions) for conditions in progress.conditions]
    medians: dict[str, tuple[tuple[float, float], ...]] = {
        clock: tuple(zip(*arm_medians_ms(taken, clock), strict=False)) for clock in CLOCKS
    }
    return Series(plan.metric, values, next((r for r in reasons if r is not None), None), medians)
