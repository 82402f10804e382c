"""`winml quantize --sensitivity`: what quantizing each layer alone does to the outputs, on the target itself."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from winml.modelkit.accuracy.advice import describe
from winml.modelkit.accuracy.debug import REFUSED
from winml.modelkit.accuracy.events import SensitivityStep
from winml.modelkit.accuracy.messages import (
    Grouping,
    MadeVariant,
    PlanArguments,
    PlannedVariants,
    RunArguments,
    VariantArguments,
    VariantRan,
)
from winml.modelkit.accuracy.naming import name_nodes
from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.accuracy.result import LayerNode, OutputNoise
from winml.modelkit.accuracy.sensitivity_result import Effect, EffectState, GroupEffect, SensitivityResult
from winml.modelkit.building import weight_range
from winml.modelkit.building.config import PRELOAD as PRELOAD_DATA
from winml.modelkit.building.config import describe_data
from winml.modelkit.building.events import Calibrating
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.pipeline.artifact import Source
from winml.modelkit.building.pipeline.steps import find_source
from winml.modelkit.building.quantize.command import QuantizeRequest, choose_section
from winml.modelkit.building.quantize.result import QuantizeArguments
from winml.modelkit.core.config import RANDOM, DataSection, QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, WorkerCrashed, WorkerTimeout
from winml.modelkit.core.events import OnEvent, TargetChosen, ignore
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.values import read, to_json
from winml.modelkit.data import sizes
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.evaluation.evaluate import EvalRequest, evaluate
from winml.modelkit.evaluation.result import EvalResult, Judging
from winml.modelkit.store import digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageKey
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

PRELOAD = ("winml.modelkit.accuracy.variants",)
SAMPLES = 64
"""Of the data, at most: sums over them, not the samples, decide."""
SIMULATED_SAMPLES = 4
"""The same on a simulated target, which takes a second for what a device does in a millisecond."""
STAGE, VERSION = "sensitivity", 1
"""In the cache; another version measures again."""
MOST = 3
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class SensitivityRequest:
    """Everything the user decided."""

    quantize: QuantizeRequest
    """The model, its target and how it is quantized; nothing is written to its output."""
    data: DataSection | None = None
    """What variants are run on; None is the calibration data."""
    task: str | None = None
    metric: str | None = None
    """With either, the drop of the metric ranks groups."""
    grouping: Grouping = "layer"
    samples: int | None = None
    """At most; None is 64, or 4 on a simulated target."""


def sensitivity(request: SensitivityRequest, on_event: OnEvent) -> SensitivityResult:
    """Quantize each group of nodes alone and run it on the target; what was measured before is not run again."""
    started = time.monotonic()
    asked = request.quantize
    model = model_path(asked.model, on_event)
    resolved = targets.resolve(asked.target, asked.ep, asked.device)
    on_event(TargetChosen(resolved.target))
    chosen, section = choose_section(asked, resolved.target)
    data = request.data or section.calibration
    if data is None:
        raise RequestError(
            f"there is no data to run variants on, and precision `{chosen}` needs none for calibration",
            hint="name inputs with `--data DATA`; `--data random` uses random ones",
        )
    request = replace(request, samples=request.samples or (SIMULATED_SAMPLES if resolved.target.simulated else SAMPLES))
    assert request.samples is not None
    with ScratchFolder("winml-sensitivity-") as folder:
        source = sizes.openable(name_nodes(model, folder), resolved.target, folder)
        with Worker(preload=PRELOAD_DATA) as worker:
            found = find_source(source, worker)
            section, _ = weight_range.resolve(section, resolved.target, worker)
            if section.calibration is not None:
                calibration = sizes.random_data(section.calibration, source, given=asked.dims, worker=worker)
                section = replace(section, calibration=describe_data(calibration, source, worker))
            data = replace(data, limit=min(data.limit or request.samples, request.samples))
            data = sizes.random_data(data, source, given=asked.dims, worker=worker)
            data = describe_data(data, source, worker)
        run = _Measuring(request, resolved, found, section, data, model.absolute().parent, folder, on_event)
        with run:
            planned, effects = run.measure()
    return _result(request, chosen, section, resolved, planned, effects, run, started)


class _Effects:
    """Effects of variants in the cache, by everything that they depend on."""

    def __init__(self, base: Mapping[str, Any], parent: str, calibration: str | None, folder: Path) -> None:
        self._cache, self._base, self._parent, self._calibration = Cache(), base, parent, calibration
        self._folder = folder
        self.found = 0

    def _key(self, part: Mapping[str, Any]) -> StageKey:
        return StageKey(STAGE, VERSION, {**self._base, **part}, self._parent, calibration=self._calibration)

    def find(self, form: type[T], part: Mapping[str, Any]) -> T | None:
        entry = self._cache.stages.find(self._key(part))
        return None if entry is None else read(form, entry.info, STAGE)

    def store(self, part: Mapping[str, Any], value: object) -> None:
        path = self._folder / "entry.json"
        path.write_text(json.dumps(to_json(value)), encoding="utf-8", newline="\n")
        self._cache.stages.store(self._key(part), {"entry.json": path}, to_json(value))


class _Measuring:
    """One run: two workers, of which one makes variants and the other runs them."""

    def __init__(
        self,
        request: SensitivityRequest,
        resolved: Resolved,
        source: Source,
        section: QuantizeSection,
        data: DataSection,
        model_folder: Path,
        folder: Path,
        on_event: OnEvent,
    ) -> None:
        self.request, self.resolved, self.section, self.data = request, resolved, section, data
        self.model_folder, self.folder, self.on_event = model_folder, folder, on_event
        self.source = source
        self.effects = _Effects(self.identity(), source.artifact.digest, _digest_of(section), folder)
        self.session = SessionSection()
        self.samples = 0
        self.cached = 0
        self._local: Worker | None = None
        self._there: Worker | None = None
        self._planned: PlannedVariants | None = None
        self.metric: str | None = None
        self.before: float | None = None

    def __enter__(self) -> _Measuring:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (self._local, self._there):
            if worker is not None:
                worker.close()

    @property
    def judged(self) -> bool:
        """Whether a metric is asked for."""
        return self.request.task is not None or self.request.metric is not None

    def identity(self) -> dict[str, Any]:
        """What every effect depends on besides its nodes, the model and the calibration."""
        section = to_json(replace(self.section, calibration=None))
        package = self.resolved.installed.package.distribution
        try:
            versions = {name: version(name) for name in ("onnxruntime", package)}
        except PackageNotFoundError:
            versions = {"python": str(self.resolved.installed.python)}  # a private environment is made for one version
        labels = Path(self.data.source)
        return {
            "quantize": section,
            "target": to_json(self.resolved.target),
            "versions": versions,
            "data": self.data.digest,
            "labels": digest.of_file(labels) if self.judged and labels.is_file() else None,
            "samples": self.request.samples,
            "task": self.request.task,
            "metric": self.request.metric,
        }

    def measure(self) -> tuple[PlannedVariants, list[Effect]]:
        """Effects of all groups, then of all together and of none."""
        planned = self.effects.find(PlannedVariants, {"grouping": self.request.grouping})
        planned = planned or self.plan()
        if self.judged:
            self.evaluate_before()
        everything = tuple(node for group in planned.groups for node in group.nodes)
        nothing: tuple[tuple[str, str], ...] = ()
        wanted = [*(group.nodes for group in planned.groups), everything, nothing]
        names = [*(group.label for group in planned.groups), "all together", "none"]
        made: list[Effect] = []
        for number, (nodes, label) in enumerate(zip(wanted, names, strict=True)):
            self.on_event(SensitivityStep(label=label, done=number, total=len(wanted)))
            made.append(self.effect(tuple(name for name, _ in nodes), number))
        return planned, made

    def plan(self) -> PlannedVariants:
        """Calibrate, and write what the model gives for the samples."""
        if self._planned is not None:
            return self._planned
        self._local = Worker(preload=PRELOAD)
        asked = PlanArguments(
            quantize=QuantizeArguments(
                model=str(self.source.path.absolute()),
                output=str(self.folder / "unused.onnx"),
                section=self.section,
                model_folder=str(self.model_folder),
                compare=False,
            ),
            grouping=self.request.grouping,
            data=self.data,
            samples=self.request.samples or SAMPLES,
            folder=str(self.folder),
        )

        def tell(event: Calibrating) -> None:
            self.on_event(SensitivityStep(label="calibrating", done=event.done, total=event.total))

        self.on_event(SensitivityStep(label="calibrating", done=0, total=1))
        self._planned = self._local.ask(
            PlannedVariants, "accuracy.plan_variants", asked, timeout_s=self.request.quantize.timeout_s,
            events=Calibrating, on_event=tell, what="calibrating the model",
        )  # fmt: skip
        self.effects.store({"grouping": self.request.grouping}, self._planned)
        self.samples = self._planned.samples
        if self.resolved.target.device == "npu":
            # NPUs compile for fixed shapes: those of the samples.
            self.session = replace(self.session, fixed_dims=dict(self._planned.sizes))
        return self._planned

    def effect(self, nodes: tuple[str, ...], number: int) -> Effect:
        """What a variant does; from the cache where it was measured before."""
        part = {"nodes": sorted(nodes)}
        found = self.effects.find(Effect, part)
        if found is not None:
            self.cached += 1
            return found
        self.plan()
        started = time.monotonic()
        effect = self.run_variant(nodes, number)
        effect = replace(effect, seconds=round(time.monotonic() - started, 3))
        if effect.state != "crashed":  # a process may have been ended for other reasons
            self.effects.store(part, effect)
        return effect

    def run_variant(self, nodes: tuple[str, ...], number: int) -> Effect:
        assert self._local is not None
        asked = VariantArguments(folder=str(self.folder), nodes=nodes, name=f"winml-variant-{number}.onnx")
        made = self._local.ask(MadeVariant, "accuracy.make_variant", asked, what="quantizing a part of the model")
        if nodes and not made.quantized:
            return Effect(state="not quantized", reason=self.plain(made.reason or "the quantizer left it as it was"))
        try:
            ran = self.ask_run(made.path)
            value, drop = self.evaluate(made.path) if self.judged else (None, None)
        except REFUSED as error:
            state: EffectState = "crashed" if isinstance(error, WorkerCrashed | WorkerTimeout) else "refused"
            return Effect(state=state, reason=self.plain(error.message))
        finally:
            Path(made.path).unlink(missing_ok=True)
        outputs = tuple(OutputNoise(output=name, noise=noise) for name, noise in ran.outputs.items())
        return Effect(state="measured", outputs=outputs, metric=value, drop=drop, placed=dict(ran.nodes))

    def ask_run(self, path: str) -> VariantRan:
        """Run a variant in the process that ran those before it, or in a new one where that is gone."""
        if self._there is None or not self._there.alive:
            self._there = Worker(preload=PRELOAD, python=self.resolved.installed.python)
        target = self.resolved.target
        return self._there.ask(
            VariantRan,
            "accuracy.run_variant",
            RunArguments(
                model=path,
                ep=target.ep,
                device=target.device,
                simulated=target.simulated,
                session=self.session,
                distribution=self.resolved.installed.package.distribution,
                folder=str(self.folder),
                samples=self.samples,
                tag="",
            ),
            timeout_s=self.request.quantize.timeout_s,
            what=f"running a variant on {target}",
        )

    # --- with a metric

    def evaluate_before(self) -> None:
        """The metric of the model as it was, on the CPU."""
        part = {"nodes": None, "before": True}
        found = self.effects.find(_Before, part)
        if found is None:
            self.on_event(SensitivityStep(label="evaluating the model before", done=0, total=1))
            result = self.ask_metric(str(self.source.path), "cpu")
            name = self.request.metric or result.metric or next(iter(result.metrics), None)
            if name is None or name not in result.metrics:
                raise RequestError(
                    f"task `{result.task}` has no metric" if name is None else f"there is no metric `{name}`",
                    hint="name a task with `--task`, or leave `--task` and `--metric` away to compare outputs",
                )
            found = _Before(metric=name, value=result.metrics[name].value)
            self.effects.store(part, found)
        self.metric, self.before = found.metric, found.value

    def evaluate(self, path: str) -> tuple[float | None, float | None]:
        """The metric of a variant, and by how much it is worse, sample by sample, than that of the model before."""
        assert self.metric is not None
        result = self.ask_metric(path, str(self.resolved.target), reference=str(self.source.path))
        drop = (result.drop or {}).get(self.metric)
        return result.metrics[self.metric].value, None if drop is None else drop.value

    def ask_metric(self, path: str, target: str, reference: str | None = None) -> EvalResult:
        data = replace(self.data, digest=None, processor=self.data.processor or str(self.model_folder))
        request = EvalRequest(
            model=path, data=data, task=self.request.task, target=target, judging=Judging(self.request.metric),
            reference=reference, reference_target=None if reference is None else "cpu",
            dims=self.request.quantize.dims, timeout_s=self.request.quantize.timeout_s,
        )  # fmt: skip
        return evaluate(request, ignore)

    def plain(self, message: str) -> str:
        """A message without the folder of this run."""
        return message.replace(f"{self.folder}/", "").replace(f"{self.folder}\\", "")


@dataclass(frozen=True)
class _Before:
    """A metric of the model before it is quantized."""

    metric: str
    value: float | None


def _digest_of(section: QuantizeSection) -> str | None:
    return None if section.calibration is None else section.calibration.digest


def _result(
    request: SensitivityRequest,
    precision: str,
    section: QuantizeSection,
    resolved: Resolved,
    planned: PlannedVariants,
    effects: list[Effect],
    run: _Measuring,
    started: float,
) -> SensitivityResult:
    *alone, whole, unquantized = effects
    groups = [
        GroupEffect(
            label=group.label, nodes=tuple(LayerNode(name=name, op=op) for name, op in group.nodes), effect=effect
        )
        for group, effect in zip(planned.groups, alone, strict=True)
    ]
    groups.sort(key=badness)
    data = request.data or section.calibration
    synthetic = run.data.source == RANDOM
    warnings = []
    if planned.not_compared:
        warnings.append(f"outputs that are not compared, as they are no floats: {', '.join(planned.not_compared)}")
    if synthetic:
        warnings.append("inputs are random: layers may do more or less on real ones")
    notes = [*planned.notes]
    total = len(effects)
    if run.cached:
        which = "all" if run.cached == total else str(run.cached)
        notes.append(f"{which} of {total} variants were measured in an earlier run")
    return SensitivityResult(
        model=request.quantize.model,
        target=resolved.target,
        precision=precision,
        section=section,
        grouping=request.grouping,
        data="" if data is None else data.source,
        synthetic=synthetic,
        samples=planned.samples,
        sizes=dict(planned.sizes),
        task=request.task,
        metric=run.metric,
        before=run.before,
        groups=tuple(groups),
        whole=whole,
        unquantized=unquantized,
        left=planned.left,
        cached=run.cached,
        summary=tuple(_summarize(groups, whole, unquantized, run.metric, f"{resolved.target}")),
        notes=tuple(notes),
        warnings=tuple(warnings),
        seconds=round(time.monotonic() - started, 3),
    )


def badness(group: GroupEffect) -> tuple[float, float, float]:
    """Lower comes first: what the target does not run, then by the drop of the metric, then by noise of the outputs."""
    effect, worst = group.effect, group.effect.worst
    rank = float("inf") if worst is None else worst.rank
    place = {"crashed": 0.0, "refused": 0.0, "measured": 1.0, "not quantized": 2.0}[effect.state]
    return place, -(effect.drop or 0.0), rank


def _summarize(
    groups: list[GroupEffect], whole: Effect, unquantized: Effect, metric: str | None, target: str
) -> Iterator[str]:
    """Sentences, the most important first."""
    yield f"all together: {_effect_text(whole, metric)}"
    floor = unquantized.worst
    if floor is not None and not floor.equal:
        yield f"nothing quantized on {target}: {_effect_text(unquantized, metric)}"
    for group in [group for group in groups if group.effect.state in ("refused", "crashed")][:MOST]:
        yield f"{group.label} ({group.kind}) alone: {group.effect.state}: {group.effect.reason}"
    measured = [group for group in groups if group.effect.state == "measured"]
    for group in measured[:MOST]:
        yield f"{group.label} ({group.kind}) alone: {_effect_text(group.effect, metric)}"


def _effect_text(effect: Effect, metric: str | None) -> str:
    if effect.state != "measured":
        return f"{effect.state}: {effect.reason}"
    worst: Noise | None = effect.worst
    text = "no output could be compared" if worst is None else f"outputs at {describe(worst)}"
    if metric is not None and effect.metric is not None:
        text = (
            f"{metric} {effect.metric:.4g}" + ("" if effect.drop is None else f" ({-effect.drop:+.4g})") + f", {text}"
        )
    return text
