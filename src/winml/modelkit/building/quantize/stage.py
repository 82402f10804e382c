"""Worker operation: quantizes a model by a section and reports the outcome."""

from __future__ import annotations

import itertools
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from onnx import ModelProto

from winml.modelkit.building.events import Calibrating, LeavingNodes, QuantizedOutputs, WritingModel
from winml.modelkit.building.quantize import (
    adjusting,
    bias_correction,
    device_forms,
    fewer,
    fidelity,
    folding,
    scales,
    smoothing,
    static,
    weight_range,
    wide,
)
from winml.modelkit.building.quantize.calibrate import Calibration as Ranges
from winml.modelkit.building.quantize.calibrate import calibrate
from winml.modelkit.building.quantize.finish import finish, producer_of
from winml.modelkit.building.quantize.partial import as_many_as_work
from winml.modelkit.building.quantize.passes import Passes, Progress
from winml.modelkit.building.quantize.prepare import Prepared, load, prepare
from winml.modelkit.building.quantize.result import (
    Adjustment,
    Calibration,
    Fidelity,
    Granularity,
    NodeSummary,
    OutputFidelity,
    QuantizeArguments,
    QuantizeOutcome,
    QuantizeReport,
    Sizes,
)
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.select import NodeSelection, inputs_by_node, operators, summarize
from winml.modelkit.building.quantize.types import Values, ask_types, forget_types, note_types
from winml.modelkit.core.config import RANDOM, DataSection, QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import Interrupted, ModelkitError, RequestError, RunFailedError
from winml.modelkit.core.values import read
from winml.modelkit.data.dataset import open_dataset
from winml.modelkit.data.trials import attempts
from winml.modelkit.graph import files
from winml.modelkit.graph.inputs import Arrays, InputSpec
from winml.modelkit.session import saturation

if TYPE_CHECKING:
    from winml.modelkit.building.quantize.result import CalibrationMethod, Mode
    from winml.modelkit.worker.program import Context

_EVENT_EVERY_S = 0.25
SATURATED_DB = 6.0
"""Rounding in fused kernels costs some 2 dB; saturation of a few sums costs tens."""


class WithoutData(Protocol):
    """A way to quantize that needs no data; its module is one."""

    STREAMS: bool
    """Whether it takes a model whose large weights are in a file."""
    OPSET: int
    """What the model must have at least."""

    def check(self, section: QuantizeSection) -> None: ...

    def choose(self, model: ModelProto, section: QuantizeSection, types: Mapping[str, int]) -> NodeSelection: ...

    def quantize(
        self, model: ModelProto, section: QuantizeSection, selection: NodeSelection, source: Path
    ) -> tuple[ModelProto, NodeSelection]: ...


WITHOUT_DATA: dict[str, str] = {
    "fp16": "winml.modelkit.building.quantize.float16",
    "dynamic": "winml.modelkit.building.quantize.dynamic",
    "weight_only": "winml.modelkit.building.quantize.weight_only",
}
"""Modules by mode, imported when needed: that of `weight_only` costs more than all others together."""


@dataclass(frozen=True)
class _Job:
    """What to do, and where."""

    path: Path
    output: Path
    section: QuantizeSection
    """With all that it leaves open decided, for the first attempt at least."""
    asked: QuantizeSection
    model_folder: Path
    work: Path
    """A folder that is removed with the worker."""
    progress: Progress
    compare: bool
    """Whether the outputs of both models are compared at the end."""
    dims: Mapping[str, int]
    """Sizes of open dimensions for that comparison, where its inputs are random."""
    crash: str | None = None
    """How a process ended that ran the models before; they are not run then."""


@dataclass(frozen=True)
class _Outcome:
    """A quantized model and how it was made."""

    model: ModelProto
    selection: NodeSelection
    inputs: tuple[InputSpec, ...]
    notes: tuple[str, ...]
    nodes: NodeSummary
    calibration: Calibration | None = None
    granularity: Granularity | None = None
    """None where weights have no scales, or are not quantized."""
    adjustments: tuple[Adjustment, ...] = ()
    failure: str | None = None
    """Why not all of the nodes that can be quantized are."""

    @property
    def changed(self) -> bool:
        return bool(self.nodes.quantized)


_Quantized = tuple[ModelProto, NodeSelection, tuple[Adjustment, ...]]


class _QuantizePlan:
    """A model that is ready to be quantized, as often as it takes; a quantizer uses up the one it gets."""

    def __init__(
        self,
        prepared: Prepared,
        runnable: Runnable,
        values: Values,
        *,
        selection: NodeSelection,
        notes: tuple[str, ...],
        section: QuantizeSection,
        quantize: Callable[[ModelProto, NodeSelection, QuantizeSection], _Quantized],
        calibration: Calibration | None = None,
    ) -> None:
        self._model: ModelProto | None = prepared.model
        self._runnable, self._values, self._quantize = runnable, values, quantize
        self._notes, self._calibration, self.section = notes, calibration, section
        self._producer = producer_of(prepared.model)
        self.one_scale = prepared.one_scale
        self.selection = selection
        self.inputs = values.inputs
        self.operators = operators(prepared.model)
        self._inputs = inputs_by_node(prepared.model)

    def outcome(self, selection: NodeSelection, section: QuantizeSection | None = None) -> _Outcome:
        """The model with the nodes of a selection quantized, by another section where one is given."""
        adjustments: tuple[Adjustment, ...] = ()
        model, done = self._fresh(), selection
        if selection.chosen:
            model, done, adjustments = self._quantize(model, selection, section or self.section)
        finish(model, self._producer)
        nodes = summarize(self.operators, done)
        return _Outcome(model, done, self.inputs, self._notes, nodes, self._calibration, adjustments=adjustments)

    def write_some(self, nodes: Collection[str], path: Path) -> NodeSelection:
        """Write the model with these of its nodes alone quantized; returns which of them are.

        Weights that they do not read stay in one file that all such models share, so that one costs little more than
        its nodes. `path` must be in the folder of that file.
        """
        self._model = None
        needed = {name for reads in (self._inputs[node] for node in nodes) for name in reads}
        model = self._runnable.load_some(needed)
        note_types(model, self._values.types)
        others = self.selection.chosen.difference(nodes)
        selection = self.selection.without(dict.fromkeys(others, "not in this variant"))
        if selection.chosen:
            # Corrections are for a model as a whole.
            model, selection, _ = self._quantize(model, selection, replace(self.section, bias_correction=None))
        finish(model, self._producer)
        path.write_bytes(model.SerializeToString())
        return selection

    @property
    def folder(self) -> Path:
        """Where `write_some` can write."""
        return self._runnable.folder

    @property
    def structure(self) -> ModelProto:
        """The model before it is quantized, without its large weights."""
        return self._runnable.structure

    def _fresh(self) -> ModelProto:
        model, self._model = self._model, None
        if model is None:
            model = self._runnable.load()
            note_types(model, self._values.types)
        return model


def open_plan(given: QuantizeArguments, work: Path, context: Context) -> _QuantizePlan:
    """The plan of a model, calibrated once, for callers that quantize parts of it; its files are in `work`."""
    section, _ = weight_range.resolve(scales.settle(given.section), saturation.saturates)
    path = Path(given.model)
    job = _Job(
        path=path,
        output=Path(given.output),
        section=section,
        asked=given.section,
        model_folder=Path(given.model_folder or path.parent),
        work=work,
        progress=_progress(context),
        compare=False,
        dims=given.dims,
    )
    try:
        return _plan(job)
    except ModelkitError as error:
        raise _about(error, job) from error


def run(args: dict[str, Any], context: Context) -> QuantizeReport:
    """Quantize a model by a section; `args` is a `QuantizeArguments`; nothing is written unless all went well."""
    given = read(QuantizeArguments, args)
    asked = given.section
    # A caller that computes a key has decided the range before; one that has not gets the same answer here.
    section, range_notes = weight_range.resolve(scales.settle(asked), saturation.saturates)
    path = Path(given.model)
    with tempfile.TemporaryDirectory(prefix="quantize-", dir=Path.cwd(), ignore_cleanup_errors=True) as folder:
        job = _Job(
            path=path,
            output=Path(given.output),
            section=section,
            asked=asked,
            model_folder=Path(given.model_folder or path.parent),
            work=Path(folder),
            progress=_progress(context),
            compare=given.compare,
            dims=given.dims,
            crash=given.crashes.source,
        )
        try:
            plan = _plan(job)
            if plan.one_scale is not None:
                job = replace(
                    job,
                    section=replace(job.section, per_channel=False),
                    asked=replace(job.asked, per_channel=False),
                )
            outcome, written, compared = _finish(job, plan, context)
            outcome = _measure_correction(job, plan, outcome)
        except ModelkitError as error:
            raise _about(error, job) from error
    limited = plan.one_scale if asked.per_channel is None and outcome.changed else None
    if limited is not None:
        outcome = replace(outcome, granularity=Granularity("tensor", limited))
    before = (path, *files.external_files(path))
    adjustments = outcome.adjustments if outcome.changed else ()
    return QuantizeReport(
        reduce_range=section.reduce_range,
        per_channel=section.per_channel if outcome.granularity is None else outcome.granularity.per_channel,
        outcome=QuantizeOutcome(
            changed=outcome.changed,
            mode=cast("Mode", section.mode),
            granularity=outcome.granularity,
            nodes=outcome.nodes,
            calibration=outcome.calibration,
            size=Sizes(before_bytes=_size(before), after_bytes=_size(written)),
            fidelity=compared,
            notes=(*range_notes, *outcome.notes, *map(adjusting.note, adjustments)) if outcome.changed else (),
            warnings=(
                *(() if limited is None else (f"weights have one scale per tensor: {limited}",)),
                *_warnings(outcome, compared, saturation.saturates()),
            ),
            adjustments=adjustments,
        ),
    )


def _size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _progress(context: Context) -> Progress:
    """Reports samples to the caller now and then, and stops between two of them when the caller requests it."""
    next_event = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal next_event
        if context.stop.is_set():
            raise Interrupted("calibration was interrupted")
        if done == total or time.monotonic() >= next_event:
            context.tell(Calibrating(done=done, total=total))
            next_event = time.monotonic() + _EVENT_EVERY_S

    return tell


def _about(error: ModelkitError, job: _Job) -> ModelkitError:
    """The error about the user's model instead of a copy, whose name means nothing to the user."""
    message = re.sub(rf"`?{re.escape(str(job.work))}[\w./\\-]*`?", f"`{job.path.name}`", error.message)
    return type(error)(message, hint=error.hint, details=error.details)


_Finished = tuple[_Outcome, tuple[Path, ...], Fidelity]


def _finish(job: _Job, plan: _QuantizePlan, context: Context) -> _Finished:
    """The outcome, its files and the comparison; nodes that cannot be quantized stay in float."""
    outcome, failure, sizes = None, None, None
    try:
        outcome = plan.outcome(plan.selection)
    except RunFailedError as error:
        failure = error.message
    if outcome is not None:
        written, compared = _write(job, outcome, context)
        failure = _refusal(job, outcome, compared)
        sizes = compared.sizes if compared.status == "measured" else None
    if failure is None and outcome is not None:
        return _best(job, plan, (outcome, written, compared), context)
    context.tell(LeavingNodes(reason=failure))
    feeds = _feeds(job, plan.inputs, sizes)
    selection = as_many_as_work(plan.selection, plan.operators, lambda chosen: _attempt(job, plan, chosen, feeds))
    outcome = replace(plan.outcome(selection), failure=failure)
    written, compared = _write(job, outcome, context)
    chosen = scales.first_choice(job.asked, job.section, fewer.least_cosine(compared))
    return replace(outcome, granularity=chosen), written, compared


@dataclass(frozen=True)
class _Candidate:
    """One way to quantize, and how its outputs agree on the samples that decide."""

    outcome: _Outcome
    selection: NodeSelection
    section: QuantizeSection
    compared: Fidelity

    @property
    def cosine(self) -> float | None:
        return fewer.least_cosine(self.compared)

    def add_note(self, note: str, granularity: Granularity | None) -> _Candidate:
        return replace(self, outcome=replace(self.outcome, notes=(*self.outcome.notes, note), granularity=granularity))


def _best(job: _Job, plan: _QuantizePlan, done: _Finished, context: Context) -> _Finished:
    """What was done, or the same with fewer operators or other scales where it agrees poorly and that agrees better."""
    outcome, _, compared = done
    cosine = fewer.least_cosine(compared)
    if not outcome.changed:
        return done
    outcome = replace(outcome, granularity=scales.first_choice(job.asked, job.section, cosine))
    has_rivals = fewer.is_open(job.section) or scales.is_measured(job.asked)
    if cosine is None or cosine >= fewer.POOR_COSINE or not has_rivals:
        return outcome, *done[1:]
    first = _Candidate(outcome, plan.selection, job.section, _compare(job, outcome, fidelity.SAMPLES_TO_CHOOSE))
    best = _with_scales(job, plan, _with_fewer(job, plan, first, context), context)
    if best is first:
        return outcome, *done[1:]
    written = files.save(best.outcome.model, job.output, overwrite=True, source=job.path)
    return best.outcome, written, best.compared


def _with_fewer(job: _Job, plan: _QuantizePlan, best: _Candidate, context: Context) -> _Candidate:
    """The candidate, or the one with fewer operators."""
    selection, cosine = fewer.products_only(plan.selection, plan.operators), best.cosine
    open_ = fewer.is_open(job.section) and selection.chosen and selection != plan.selection
    if not open_ or cosine is None or cosine >= fewer.POOR_COSINE:
        return best
    rival = _candidate(job, plan, selection, job.section, context)
    found = None if rival is None else rival.cosine
    winner = rival if rival is not None and fewer.is_better(found, cosine) else best
    return winner.add_note(fewer.note(found, cosine), best.outcome.granularity)


def _with_scales(job: _Job, plan: _QuantizePlan, best: _Candidate, context: Context) -> _Candidate:
    """The candidate, or the one with scales per tensor."""
    cosine = best.cosine
    if not scales.is_measured(job.asked) or cosine is None:
        return best
    if cosine >= fewer.POOR_COSINE:
        chosen = scales.first_choice(job.asked, job.section, cosine)
        return replace(best, outcome=replace(best.outcome, granularity=chosen))
    rival = _candidate(job, plan, best.selection, replace(job.section, per_channel=False), context)
    chosen = scales.choose(cosine, None if rival is None else rival.cosine)
    if rival is None or chosen.per_channel:
        return best.add_note(chosen.note, chosen)
    kept = replace(rival, outcome=replace(rival.outcome, notes=best.outcome.notes))
    return kept.add_note(chosen.note, chosen)


def _candidate(
    job: _Job, plan: _QuantizePlan, selection: NodeSelection, section: QuantizeSection, context: Context
) -> _Candidate | None:
    """Another way to quantize, written and compared; None where it is not possible."""
    try:
        outcome = plan.outcome(selection, section)
    except RunFailedError:
        return None  # the first choice works
    _, compared = _write(job, outcome, context, fidelity.SAMPLES_TO_CHOOSE)
    return _Candidate(outcome, selection, section, compared) if _refusal(job, outcome, compared) is None else None


def _attempt(job: _Job, plan: _QuantizePlan, selection: NodeSelection, feeds: Sequence[Arrays]) -> str | None:
    """Why a selection cannot be quantized."""
    try:
        outcome = plan.outcome(selection, replace(plan.section, bias_correction=None))
    except RunFailedError as error:
        return error.message
    files.save(outcome.model, job.output, overwrite=True, source=job.path)
    may_run = outcome.changed and job.compare and job.crash is None
    return fidelity.refusal(job.output, feeds, levels=_levels(job)) if may_run else None


def _write(
    job: _Job, outcome: _Outcome, context: Context, samples: int = fidelity.SAMPLES
) -> tuple[tuple[Path, ...], Fidelity]:
    context.tell(WritingModel())
    model = outcome.model if outcome.changed else files.load(job.path, weights=False)
    written = files.save(model, job.output, overwrite=True, source=job.path)
    context.tell(QuantizedOutputs())
    return written, _compare(job, outcome, samples)


def _levels(job: _Job) -> tuple[str, ...]:
    """Levels of the runtime at which the result has to open; kernels of the CPU do not matter for an NPU."""
    return ("disable",) if job.section.rules == "qnn" else ("disable", "all")


def _refusal(job: _Job, outcome: _Outcome, compared: Fidelity) -> str | None:
    """Why the runtime refuses the result although it takes the original; None when it does not."""
    if not outcome.changed or compared.status == "skipped" or job.crash is not None:
        return None
    measured = compared.status == "measured"
    # What was compared has been opened and run at the highest level.
    levels = tuple(level for level in _levels(job) if not measured or level != "all")
    feeds = _feeds(job, outcome.inputs, compared.sizes if measured else None)
    reason = fidelity.refusal(job.output, feeds, levels=levels)
    if reason is not None and fidelity.refusal(job.path, feeds, levels=levels) is not None:
        return None
    return reason


def _feeds(job: _Job, inputs: tuple[InputSpec, ...], sizes: Mapping[str, int] | None) -> list[Arrays]:
    """One sample of the sizes given, or the first that the original runs on; none when it runs on nothing."""
    if not job.compare or job.crash is not None:
        return []
    for data in attempts(_data(job), job.path, inputs, job.dims):
        if sizes is not None and data.dims != sizes:
            continue
        try:
            dataset = open_dataset(data, inputs, model_folder=job.model_folder, labels=False)
        except RequestError:
            continue  # why no inputs can be made is reported where outputs are compared
        feeds = [sample.inputs for sample in itertools.islice(dataset, 1)]
        if sizes is not None or fidelity.refusal(job.path, feeds, levels=("disable",)) is None:
            return feeds
    return []


def _data(job: _Job) -> DataSection:
    return job.section.calibration or DataSection(RANDOM, limit=fidelity.SAMPLES)


def _plan(job: _Job) -> _QuantizePlan:
    if job.section.mode == "static":
        return _static(job)
    if job.section.calibration is not None:
        raise RequestError(f"mode `{job.section.mode}` takes no calibration data")
    return _without_data(job, cast(WithoutData, import_module(WITHOUT_DATA[job.section.mode])))


def _without_data(job: _Job, mode: WithoutData) -> _QuantizePlan:
    mode.check(job.section)
    is_streamed = mode.STREAMS and _size(files.external_files(job.path)) >= files.STREAMED_BYTES
    prepared = prepare(
        load(job.path, streamed=is_streamed), opset=mode.OPSET, reason=f"operators of mode `{job.section.mode}`"
    )
    runnable = Runnable(prepared.model, job.work)
    values = ask_types(prepared.model, runnable)
    return _QuantizePlan(
        prepared,
        runnable,
        values,
        selection=mode.choose(prepared.model, job.section, values.types),
        notes=prepared.notes,
        section=job.section,
        quantize=lambda model, chosen, section: (*mode.quantize(model, section, chosen, job.path), ()),
    )


def _prepare_static(path: Path, section: QuantizeSection, asked: QuantizeSection) -> Prepared:
    model = load(path)
    needs = static.needs(section, model, channels=asked.per_channel is True)
    prepared = prepare(
        model,
        opset=needs.opset,
        reason=needs.reason,
        contrib_from=needs.contrib_from,
        one_scale_from=needs.one_scale_from,
    )
    wide.check_names(prepared.model, section)
    folded = folding.fold(prepared.model, section)
    return replace(prepared, notes=(*prepared.notes, *folded, *device_forms.rewrite(prepared.model, section.rules)))


def _static(job: _Job) -> _QuantizePlan:
    section = job.section
    static.check(section)
    data = section.calibration
    if data is None:
        raise RequestError(
            "static quantization needs calibration data",
            hint="name real samples with `--calibration FILE`; `--calibration random` uses random inputs, at the cost "
            "of accuracy",
        )
    prepared = _prepare_static(job.path, section, job.asked)
    if prepared.one_scale is not None:
        section = replace(section, per_channel=False)
    runnable = Runnable(prepared.model, job.work)
    values = ask_types(prepared.model, runnable)
    chosen = static.choose(prepared.model, section)
    if not chosen.chosen:
        # Without anything to quantize there is nothing that data could be wrong for.
        return _QuantizePlan(
            prepared,
            runnable,
            values,
            selection=chosen,
            notes=prepared.notes,
            section=section,
            quantize=lambda model, few, _: (model, few, ()),
        )
    dataset = open_dataset(data, values.inputs, model_folder=job.model_folder, labels=False)
    outputs = [value.name for value in prepared.model.graph.output]
    smoothed: tuple[Adjustment, ...] = ()
    if section.smoothing is not None:
        passes = Passes(runnable, outputs, dataset, job.progress)
        found = smoothing.smooth(prepared.model, chosen, passes, section.smoothing)
        smoothed = (found.adjustment,)
        forget_types(prepared.model)
        (job.work / "smoothed").mkdir()
        runnable = Runnable(prepared.model, job.work / "smoothed")
        values = ask_types(prepared.model, runnable)
        chosen = static.choose(prepared.model, section).without(found.added)
    wanted = static.to_calibrate(prepared.model, chosen, values.types)
    calibration = calibrate(
        runnable, wanted.tensors, outputs, dataset, section, job.progress, types=values.types
    ).extend(wanted.same)
    facts = Calibration(
        source=dataset.source,
        digest=dataset.digest,
        samples=len(dataset),
        runs=calibration.runs,
        seed=data.seed,
        method=cast("CalibrationMethod", section.calibration_method),
        tensors=len(calibration.ranges),
        methods=_count_methods(calibration) if section.calibration_method == "best" else None,
    )

    def quantize(model: ModelProto, few: NodeSelection, way: QuantizeSection) -> _Quantized:
        def once(fresh: ModelProto) -> tuple[ModelProto, NodeSelection]:
            return static.quantize(replace(prepared, model=fresh), way, few, calibration, values.types)

        if not way.bias_correction:
            return *once(model), smoothed
        tools = bias_correction.Tools(runnable, outputs, dataset, job.progress, job.work)
        result, done, adjustment = _correct(tools, values.types, model, once)
        return result, done, (*smoothed, adjustment)

    return _QuantizePlan(
        prepared,
        runnable,
        values,
        selection=chosen.without(static.without_range(prepared.model, calibration.endless)),
        notes=(*prepared.notes, *dataset.notes),
        section=section,
        quantize=quantize,
        calibration=facts,
    )


def _count_methods(found: Ranges) -> dict[str, int]:
    """How many tensors have their range by each method; those without a choice have all they reach."""
    counts = Counter(found.methods.get(name, "minmax") for name in found.ranges)
    return {name: counts[name] for name in sorted(counts)}


def _correct(
    tools: bias_correction.Tools,
    types: Mapping[str, int],
    model: ModelProto,
    once: Callable[[ModelProto], tuple[ModelProto, NodeSelection]],
) -> tuple[ModelProto, NodeSelection, Adjustment]:
    """The model quantized again, with biases that take back what the first time shifted."""
    first, done = once(model)

    def correct(errors: bias_correction.Errors) -> tuple[int, ModelProto, NodeSelection]:
        fresh = tools.runnable.load()
        layers = bias_correction.apply(fresh, done, errors)
        note_types(fresh, types)
        return layers, *once(fresh)

    found = bias_correction.measure(tools.runnable.load(), first, done, tools, lambda errors: correct(errors)[1])
    layers, result, selection = correct(found.by_layer)
    return result, selection, Adjustment(name="bias_correction", layers=layers, left=found.left)


def _measure_correction(job: _Job, plan: _QuantizePlan, outcome: _Outcome) -> _Outcome:
    """The outcome with what bias correction did to the outputs, where they are compared."""
    corrected = [found for found in outcome.adjustments if found.name == "bias_correction" and found.layers]
    if not corrected or not outcome.changed or not job.compare or job.crash is not None:
        return outcome
    section = replace(plan.section, bias_correction=None)
    if outcome.granularity is not None:
        section = replace(section, per_channel=outcome.granularity.per_channel)
    other = job.work / "without.onnx"
    files.save(plan.outcome(outcome.selection, section).model, other, overwrite=True, source=job.path)
    without = _compare(replace(job, output=other), outcome, fidelity.SAMPLES_TO_CHOOSE)
    measured = replace(
        corrected[0],
        without_db=adjusting.least_db(without),
        with_db=adjusting.least_db(_compare(job, outcome, fidelity.SAMPLES_TO_CHOOSE)),
    )
    kept = tuple(measured if found is corrected[0] else found for found in outcome.adjustments)
    return replace(outcome, adjustments=kept)


def _compare(job: _Job, outcome: _Outcome, samples: int = fidelity.SAMPLES) -> Fidelity:
    """How far the outputs changed, on the first samples of the calibration data or on random inputs."""
    data = _data(job)
    if not outcome.changed or not job.compare:
        reason = "not asked for" if outcome.changed else "nothing changed"
        return Fidelity(status="skipped", reason=reason, source=data.source)
    if job.crash is not None:
        return fidelity.unknown(data.source, f"running them: {job.crash}")
    found = fidelity.unknown(data.source, "no inputs can be made")
    for attempt in attempts(data, job.path, outcome.inputs, job.dims):
        found = _measure(job, attempt, outcome.inputs, samples)
        if found.status == "measured":
            break
    return found


def _measure(job: _Job, data: DataSection, inputs: tuple[InputSpec, ...], samples: int) -> Fidelity:
    try:
        dataset = open_dataset(data, inputs, model_folder=job.model_folder, labels=False)
    except RequestError as error:
        return fidelity.unknown(data.source, f"no inputs can be made: {error.message}")
    exact = job.section.mode == "static" and job.section.activation_type in ("uint8", "int8")
    feeds = (sample.inputs for sample in dataset)
    return fidelity.measure(
        job.path, job.output, feeds, source=data.source, exact=exact, samples=samples, sizes=data.dims
    )


def _warnings(outcome: _Outcome, compared: Fidelity, saturating: bool) -> tuple[str, ...]:
    found = []
    if not outcome.changed:
        found.append("no change: nothing in the model could be quantized; the output is the unmodified model")
    fused = [left for left in outcome.nodes.left if left.reason == static.FUSED]
    if fused:
        listed = ", ".join(f"{left.op} x{left.nodes}" for left in fused)
        found.append(f"operators that were fused before stay in float: {listed}; quantize first, then fuse")
    if outcome.failure is not None:
        found.append(f"nodes stay in float because they cannot be quantized: {outcome.failure}")
    if compared.status == "unknown":
        found.append(f"the outputs were not compared with the original's: {compared.reason}")
    poor = [o for o in compared.outputs if (o.cosine or 0.0) < fewer.POOR_COSINE and not o.identical]
    saturated = [output for output in compared.outputs if saturating and saturates(output)]
    return (*found, *(_saturation(o) for o in saturated), *(_poor(o) for o in poor if o not in saturated))


def saturates(output: OutputFidelity) -> bool:
    """Whether integer kernels lose more than quantization itself."""
    real, exact = output.sqnr_db, output.exact_sqnr_db
    return real is not None and exact is not None and exact - real > SATURATED_DB


def _saturation(output: OutputFidelity) -> str:
    return (
        f"the 8-bit kernels of this processor saturate: output `{output.name}` has {output.sqnr_db:.0f} dB against "
        f"{output.exact_sqnr_db:.0f} dB in exact arithmetic; processors with VNNI do not, and "
        "`winml quantize --reduce-range` (`reduce_range` in a config) avoids it"
    )


def _poor(output: OutputFidelity) -> str:
    cosine = "is all zero" if output.cosine is None else f"keeps a cosine of only {output.cosine:.3f}"
    return (
        f"output `{output.name}` {cosine}; try a wider precision (`-p`), another calibration "
        "(`winml quantize --method percentile`), or fewer operators"
    )
