"""`winml debug`: which layers of a quantized model lose its accuracy, on the target itself."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

from winml.modelkit.accuracy.advice import describe, summarize
from winml.modelkit.accuracy.events import DebugStep
from winml.modelkit.accuracy.fused import Fused, find_fused
from winml.modelkit.accuracy.messages import (
    AGAIN,
    EXPOSED,
    ON_CPU,
    OWN,
    PLAIN,
    REFERENCE,
    SEEN,
    DistanceArguments,
    ExposeArguments,
    JoinArguments,
    JudgeArguments,
    Judged,
    JudgedLayer,
    PrepareArguments,
    Prepared,
    RanOnTarget,
    RunArguments,
    RunDistance,
    Work,
)
from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.accuracy.result import DebugResult, FusedLayers, LayerNode, LayerNoise, Matching, OutputNoise, State
from winml.modelkit.building.model_argument import ModelArgument, model_argument
from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import (
    ModelFileError,
    PlacementError,
    RequestError,
    RunFailedError,
    SessionError,
    WorkerCrashed,
    WorkerTimeout,
)
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.data import sizes
from winml.modelkit.ep import options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.targets import Resolved
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

PRELOAD = ("winml.modelkit.accuracy.operations",)
SAMPLES = 4
"""Enough to tell layers apart: their noise differs by orders of magnitude, not by percents."""
EFFECTS = 24
"""How many layers at least, those with the most noise, are asked what it does to the outputs."""
UNEXPLAINED_DB = 10.0
"""A layer that differs so much more within the model than it loses by itself is computed in another way there."""
EXPLAINED_DB = 60.0
"""More than this is as good as no noise."""
HEALED_DB = 10.0
"""Outputs that come this much nearer when values are exposed were spoiled by what the EP fuses."""
FUSED_SESSIONS = 40
"""Sessions that are opened at most to find which layers these are."""
EXPOSING_DB = 20.0
"""Exposing values may change outputs by a hundredth of the noise that is looked for."""
FIRST = 20
REFUSED = (ModelFileError, SessionError, PlacementError, RunFailedError, WorkerCrashed, WorkerTimeout)
"""What an EP that does not run a model raises."""


@dataclass(frozen=True)
class DebugRequest:
    """Everything the user decided."""

    model: str
    reference: str
    data: DataSection
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    samples: int = SAMPLES
    dims: dict[str, int] = field(default_factory=dict)
    """Sizes of open dimensions in random inputs, by name or place."""
    effects: int = EFFECTS
    ep_options: dict[str, str] = field(default_factory=dict)
    timeout_s: float | None = None
    trust: Trust = NOTHING


def debug(request: DebugRequest, on_event: OnEvent) -> DebugResult:
    """Run both models on the same inputs and rank the layers of the first."""
    started = time.monotonic()
    model = model_argument(request.model, on_event, trust=request.trust.with_typed(request.ep_options))
    reference = model_argument(request.reference, on_event, trust=request.trust)
    if model.path.resolve() == reference.path.resolve():
        raise RequestError(
            "the model and its reference are the same file", hint="give the model before it was quantized"
        )
    chosen = targets.choose(model.target, request.target, request.ep, request.device)
    on_event(TargetChosen(chosen.resolved.target))
    data = sizes.random_data(request.data, reference.path, given=request.dims)
    with ScratchFolder("winml-debug-") as folder:
        found = _Debugging(request, model, reference, chosen.resolved, data, folder, on_event).run()
    return replace(found, warnings=(*chosen.notes, *found.warnings), seconds=round(time.monotonic() - started, 3))


class _Debugging:
    """One run, step by step."""

    def __init__(
        self,
        request: DebugRequest,
        model: ModelArgument,
        reference: ModelArgument,
        resolved: Resolved,
        data: DataSection,
        folder: Path,
        on_event: OnEvent,
    ) -> None:
        self.request = request
        self.resolved = resolved
        self.data = data
        self.folder = folder
        self.on_event = on_event
        opened = sizes.openable(model.path, resolved.target, folder)
        self.work = Work(model=str(opened.absolute()), reference=str(reference.path.absolute()), folder=str(folder))
        given = {**model.section.ep_options, **request.ep_options}
        checked = options.check_options(resolved.target, given)
        self.session = replace(model.section, ep_options=checked)
        self.model_folder = str(reference.path.absolute().parent)
        self.samples = 1
        self.sessions = 0
        self.failed: dict[int, tuple[State, str]] = {}
        self.eps: dict[int, str] = {}
        self.warnings: list[str] = []
        self.fused: Fused | None = None

    @property
    def target(self) -> Target:
        return self.resolved.target

    @property
    def elsewhere(self) -> bool:
        """Whether the CPU is asked as well."""
        return self.target.ep != "cpu"

    def run(self) -> DebugResult:
        with Worker(preload=PRELOAD) as local:
            self.tell("running the reference", 0)
            prepared = local.ask(
                Prepared,
                "accuracy.prepare",
                PrepareArguments(
                    work=self.work, data=self.data.absolute(), model_folder=self.model_folder,
                    samples=self.request.samples,
                ),
                timeout_s=self.request.timeout_s,
                what="running the reference",
            )  # fmt: skip
            self.samples = prepared.samples
            if self.target.device == "npu":
                # NPUs compile for fixed shapes: those of the samples.
                self.session = replace(self.session, fixed_dims=dict(prepared.sizes))
            self.tell(f"running the model on {self.target}", 1)
            with self.start() as there:
                self.ask_run(there, self.work.model, PLAIN)
            self.tell(f"running {len(prepared.layers)} layers by themselves on {self.target}", 2)
            own = self.run_layers(local, tuple(range(len(prepared.layers))))
            if self.elsewhere and own:
                self.run_on_cpu(own)
            self.tell("comparing", 3)
            judged, method = self.judge(local, prepared, own)
        return self.result(prepared, judged, method)

    def tell(self, what: str, done: int) -> None:
        self.on_event(DebugStep(what, done, 4))

    def start(self) -> Worker:
        return Worker(preload=PRELOAD, python=self.resolved.installed.python)

    def ask_run(
        self,
        worker: Worker,
        model: str,
        tag: str,
        *,
        on_cpu: bool = False,
        base: str = REFERENCE,
        sources: dict[str, str] | None = None,
    ) -> RanOnTarget:
        """Run a model on the target, or on the CPU."""
        target = Target("cpu", "cpu") if on_cpu else self.target
        distribution = None if on_cpu else self.resolved.installed.package.distribution
        self.sessions += 0 if on_cpu else 1
        return worker.ask(
            RanOnTarget,
            "accuracy.run",
            RunArguments(
                model=model,
                ep=target.ep,
                device=target.device,
                simulated=target.simulated,
                session=SessionSection() if on_cpu else self.session,
                distribution=distribution,
                folder=str(self.folder),
                samples=self.samples,
                tag=tag,
                base=base,
                sources=sources or {},
            ),
            timeout_s=self.request.timeout_s,
            what=f"running `{Path(model).name}` on {target}",
        )

    def run_layers(self, local: Worker, layers: tuple[int, ...]) -> dict[int, str]:
        """Run layers by themselves, as many in a session as the EP takes; the tag of the files of each.

        Where a session fails its layers are divided, so that what the EP refuses or crashes at is one layer.
        """
        tags: dict[int, str] = {}
        waiting = [layers] if layers else []
        while waiting:
            chosen = waiting.pop()
            tag = f"{OWN}{chosen[0]}x{len(chosen)}"
            (path,) = self.join(local, {f"{tag}.onnx": chosen})
            try:
                with self.start() as there:
                    ran = self.ask_run(there, path, tag)
            except REFUSED as error:
                if len(chosen) > 1:
                    middle = len(chosen) // 2
                    waiting += [chosen[middle:], chosen[:middle]]
                    continue
                crashed = isinstance(error, WorkerCrashed | WorkerTimeout)
                self.failed[chosen[0]] = ("crashed" if crashed else "refused", self.plain(error.message))
                continue
            tags |= dict.fromkeys(chosen, tag)
            self.eps |= {int(index): ep for index, ep in ran.layers.items()}
        return tags

    def plain(self, message: str) -> str:
        """A message without the folder of this run."""
        return message.replace(f"{self.folder}{os.sep}", "")

    def join(self, local: Worker, models: dict[str, tuple[int, ...]]) -> tuple[str, ...]:
        return local.ask(tuple[str, ...], "accuracy.join", JoinArguments(work=self.work, models=models))

    def run_on_cpu(self, own: dict[int, str]) -> None:
        with Worker(preload=PRELOAD) as cpu:
            for tag in sorted(set(own.values())):
                self.ask_run(cpu, str(self.folder / f"{tag}.onnx"), f"{ON_CPU}-{tag}", on_cpu=True)

    def judge(self, local: Worker, prepared: Prepared, own: dict[int, str]) -> tuple[Judged, str]:
        """What the runs come to; layer after layer where exposing values changes what the EP does."""
        layers = len(prepared.layers)
        reason = None
        try:
            with self.start() as there:
                self.ask_run(there, str(self.folder / "exposed.onnx"), EXPOSED)
        except REFUSED as error:
            reason = f"the EP does not run the model with its values as outputs: {self.plain(error.message)}"
        if reason is None:
            again = self.run_again(local, own)
            judged = self.ask_judge(local, own, dict.fromkeys(range(layers), EXPOSED), again=again)
            reason = self.exposing_matters(judged)
            if reason is None:
                return judged, "exposed"
            if any(find_unexplained(judged)):
                return judged, "exposed"
            exposed, plain = self.distance(local, EXPOSED), self.distance(local, PLAIN)
            if exposed is not None and plain is not None and exposed.rank >= plain.rank + HEALED_DB:
                operators = [" ".join(layer.operators) for layer in judged.layers]
                self.fused = self.find_fused(local, operators, plain, exposed)
                return judged, "exposed"
        self.warnings.append(f"{reason}; noise was accumulated layer after layer, each in a session of its own")
        return self.ask_judge(local, own, self.chain(local, prepared.layers)), "chained"

    def run_again(self, local: Worker, own: dict[int, str]) -> bool:
        """Run layers by themselves on what they read within the model; whether the EP did so.

        A layer that gives something else there than here is computed together with its neighbours, and wrongly.
        """
        if not own:
            return False
        asked = DistanceArguments(work=self.work, tag=EXPOSED, samples=self.samples)
        local.ask(int, "accuracy.rename", asked)
        try:
            for tag in sorted(set(own.values())):
                with self.start() as there:
                    self.ask_run(there, str(self.folder / f"{tag}.onnx"), f"{AGAIN}-{tag}", base=SEEN)
        except REFUSED as error:
            self.warnings.append(f"layers were not run on what they read within the model: {self.plain(error.message)}")
            return False
        return True

    def distance(self, local: Worker, tag: str) -> Noise | None:
        asked = DistanceArguments(work=self.work, tag=tag, samples=self.samples)
        return local.ask(RunDistance, "accuracy.distance", asked).noise

    def find_fused(self, local: Worker, operators: Sequence[str], plain: Noise, exposed: Noise) -> Fused:
        """As few layers as can be found whose values, as outputs, make the outputs of the model right."""
        asked = 0

        def heals(layers: tuple[int, ...]) -> Noise | None:
            nonlocal asked
            asked += 1
            self.on_event(DebugStep(f"looking for what is fused wrongly among {len(layers)} layers", 3, 4))
            noise = self.expose(local, layers, f"{EXPOSED}-{asked}")
            return noise if noise is not None and noise.rank >= exposed.rank - HEALED_DB / 2 else None

        return find_fused(operators, plain, exposed, heals, FUSED_SESSIONS)

    def expose(self, local: Worker, layers: tuple[int, ...], tag: str) -> Noise | None:
        """How far outputs are from the reference's with the values of some layers as outputs; None if refused."""
        path = local.ask(str, "accuracy.expose", ExposeArguments(work=self.work, layers=layers, name=f"{tag}.onnx"))
        try:
            with self.start() as there:
                self.ask_run(there, path, tag)
        except REFUSED:
            return None
        return self.distance(local, tag)

    def ask_judge(
        self, local: Worker, own: dict[int, str], accumulated: dict[int, str], *, again: bool = False
    ) -> Judged:
        return local.ask(
            Judged,
            "accuracy.judge",
            JudgeArguments(
                work=self.work,
                samples=self.samples,
                own={str(index): tag for index, tag in own.items()},
                on_cpu=self.elsewhere,
                again=again,
                accumulated={str(index): tag for index, tag in accumulated.items()},
                effects=self.request.effects,
            ),
            timeout_s=self.request.timeout_s,
            what="comparing layers",
        )

    def exposing_matters(self, judged: Judged) -> str | None:
        """Why the values that were exposed are not those of the model, if they are not."""
        found = judged.exposing
        lost = min((one.rank for one in judged.outputs.values()), default=float("inf"))
        if found is None or found.equal or (not found.not_finite and found.rank >= lost + EXPOSING_DB):
            return None
        return f"with its values as outputs the model gives other outputs on {self.target} ({describe(found)})"

    def chain(self, local: Worker, layers: Sequence[str]) -> dict[int, str]:
        """Run layer after layer on what the layers before gave; the tag of each.

        A layer that the EP does not run ends the noise of those before it: what follows gets the reference's value.
        """
        self.join(local, {f"chain{index}.onnx": (index,) for index in range(len(layers))})
        made: dict[str, str] = {}
        tags: dict[int, str] = {}
        for index, value in enumerate(layers):
            if index in self.failed:
                continue
            self.on_event(DebugStep("running layer after layer", index, len(layers)))
            name = f"chain{index}"
            path = str(self.folder / f"{name}.onnx")
            try:
                with self.start() as there:
                    self.ask_run(there, path, name, sources=made)
            except REFUSED as error:
                self.failed[index] = ("refused", self.plain(error.message))
                continue
            tags[index] = made[value] = name
        return tags

    def result(self, prepared: Prepared, judged: Judged, method: str) -> DebugResult:
        unexplained = find_unexplained(judged)
        rows = [self.row(index, judged, unexplained[index]) for index in range(len(judged.layers))]
        fused = None
        if self.fused is not None:
            fused = FusedLayers(
                values=tuple(judged.layers[index].value for index in self.fused.layers),
                nodes=tuple(node for index in self.fused.layers for node in rows[index].nodes)[:FIRST],
                before=self.fused.before,
                after=self.fused.after,
            )
        rows.sort(key=_badness)
        outputs = tuple(OutputNoise(output=name, noise=noise) for name, noise in judged.outputs.items())
        notes = [*prepared.data_notes]
        if prepared.by_structure:
            notes.append(f"values that were matched by the order of operators, not by name: {prepared.by_structure}")
        if prepared.unmatched:
            notes.append(
                f"{len(prepared.unmatched)} of {prepared.matched + len(prepared.unmatched)} values of the reference "
                "have no counterpart; their layers are part of others"
            )
        warnings = list(self.warnings)
        if judged.not_compared:
            names = ", ".join(judged.not_compared[:FIRST])
            warnings.append(f"outputs that are not compared, as they are no floats of one shape in both: {names}")
        if not judged.deterministic:
            warnings.append("the reference gives other outputs each time: what layers do to the outputs is not known")
        alone = sum(row.alone_only for row in rows)
        if alone:
            warnings.append(
                f"{alone} layers are computed otherwise within the model than by themselves; they come last"
            )
        synthetic = self.data.source == RANDOM
        if synthetic:
            warnings.append("inputs are random: layers may lose more or less on real ones")
        return DebugResult(
            model=self.request.model,
            reference=self.request.reference,
            target=self.target,
            data=self.request.data.source,
            synthetic=synthetic,
            samples=self.samples,
            sizes=dict(prepared.sizes),
            method="exposed" if method == "exposed" else "chained",
            outputs=outputs,
            layers=tuple(rows),
            matching=Matching(
                matched=prepared.matched,
                by_structure=prepared.by_structure,
                unmatched=prepared.unmatched[:FIRST],
                unmatched_count=len(prepared.unmatched),
            ),
            fused=fused,
            sessions=self.sessions,
            summary=tuple(summarize(rows, outputs, fused, self.target)),
            notes=tuple(notes),
            warnings=tuple(warnings),
            seconds=0.0,
        )

    def row(self, index: int, judged: Judged, unexplained_db: float | None) -> LayerNoise:
        found = judged.layers[index]
        state: State
        reason: str | None
        state, reason = self.failed.get(index, ("measured", None))
        if state == "measured" and (not found.comparable or found.own is None):
            state, reason = "not comparable", "its value has another shape or type than the reference's"
        return LayerNoise(
            value=found.value,
            nodes=tuple(LayerNode(name=name, op=op) for name, op in found.nodes),
            operators=found.operators,
            state=state,
            reason=reason,
            own=found.own,
            on_cpu=found.on_cpu,
            accumulated=found.accumulated,
            within=found.within,
            clipped=found.clipped,
            alone_only=_is_alone_only(found),
            effect=found.effect,
            unexplained_db=unexplained_db,
            ep=self.eps.get(index),
        )


def find_unexplained(judged: Judged) -> list[float | None]:
    """For every layer, how far it is within the model from what it gives by itself for the same inputs.

    In decibels below what is as good as equal; None where that is little, or less than the layer loses anyway.
    """
    found: list[float | None] = []
    for layer in judged.layers:
        if layer.own is None or layer.within is None:
            found.append(None)
            continue
        lost = min(layer.own.rank, EXPLAINED_DB) - layer.within.rank
        found.append(lost if lost >= UNEXPLAINED_DB and not _is_alone_only(layer) else None)
    return found


def _is_alone_only(layer: JudgedLayer) -> bool:
    """Whether a layer gives by itself what it does not give within the model, where it is right."""
    if layer.own is None or layer.accumulated is None or layer.within is None:
        return False
    better = layer.accumulated.rank >= min(layer.own.rank, EXPLAINED_DB) + UNEXPLAINED_DB
    return better and layer.within.rank < layer.accumulated.rank


def _badness(row: LayerNoise) -> tuple[float, float, float]:
    """Lower comes first: numbers that are none, then what the layer does to the outputs, then its own noise.

    What a layer does within the model alone is not in the noise that it makes by itself: there its difference counts.
    One without an effect is ranked by its own noise, which is its effect where it makes an output.
    """
    nothing = float("inf")
    own = nothing if row.own is None else row.own.rank
    effect = own if row.effect is None else row.effect.rank
    if row.alone_only and row.accumulated is not None:
        effect = max(effect, row.accumulated.rank)
    elif row.unexplained_db is not None and row.within is not None:
        effect = min(effect, row.within.rank)
    failed = row.state in ("crashed", "refused")
    if failed and row.accumulated is not None:
        effect = row.accumulated.rank
        failed = False
    return (0.0 if _has_broken(row.own) else 1.0 if failed else 2.0, effect, own)


def _has_broken(noise: Noise | None) -> bool:
    return noise is not None and noise.not_finite > 0
