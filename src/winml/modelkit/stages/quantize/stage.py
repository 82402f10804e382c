"""Worker operation: a model, quantized as a section says, and the report of what became of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from onnx import ModelProto

from winml.modelkit.core import sections
from winml.modelkit.core.config import RANDOM, DataSection, QuantizeSection
from winml.modelkit.core.errors import Interrupted, RequestError
from winml.modelkit.data.dataset import open_dataset
from winml.modelkit.data.trials import attempts
from winml.modelkit.graph import files
from winml.modelkit.graph.inputs import InputSpec
from winml.modelkit.stages.quantize import device_forms, fidelity, folding, static
from winml.modelkit.stages.quantize.calibrate import Progress, calibrate
from winml.modelkit.stages.quantize.finish import finish, producer_of
from winml.modelkit.stages.quantize.prepare import Prepared, load, prepare
from winml.modelkit.stages.quantize.runnable import Runnable
from winml.modelkit.stages.quantize.select import Selection, operators, summary
from winml.modelkit.stages.quantize.types import ask_types

if TYPE_CHECKING:
    from winml.modelkit.worker.program import Context

POOR_COSINE = 0.99
SATURATED_DB = 6.0
"""Rounding in fused kernels costs some 2 dB; saturation of a few sums costs tens."""


class Mode(Protocol):
    """A way to quantize that needs no data; its module is one."""

    OPSET: int
    """What the model must have at least."""

    def check(self, section: QuantizeSection) -> None: ...

    def choose(self, model: ModelProto, section: QuantizeSection, types: Mapping[str, int]) -> Selection: ...

    def quantize(
        self, model: ModelProto, section: QuantizeSection, selection: Selection
    ) -> tuple[ModelProto, Selection]: ...


WITHOUT_DATA: dict[str, str] = {
    "fp16": "winml.modelkit.stages.quantize.float16",
    "dynamic": "winml.modelkit.stages.quantize.dynamic",
    "weight_only": "winml.modelkit.stages.quantize.weight_only",
}
"""Modules by mode, imported when needed: that of `weight_only` costs more than all others together."""


@dataclass(frozen=True)
class _Job:
    """What is to be done, and where."""

    path: Path
    output: Path
    section: QuantizeSection
    model_folder: Path
    work: Path
    """A folder that goes with the worker."""
    progress: Progress
    compare: bool
    """Whether the outputs of both models are compared at the end."""
    dims: dict[str, int]
    """Sizes of open dimensions for that comparison, where its inputs are random."""


@dataclass(frozen=True)
class _Outcome:
    """A quantized model and how it came about."""

    model: ModelProto
    inputs: tuple[InputSpec, ...]
    notes: tuple[str, ...]
    nodes: dict[str, Any]
    calibration: dict[str, Any] | None = None

    @property
    def changed(self) -> bool:
        return bool(self.nodes["quantized"])


def run(args: dict[str, Any], context: Context) -> dict[str, Any]:
    """Quantize `model` into `output` as `section` says; nothing is written unless all went well."""
    section = sections.read(QuantizeSection, args["section"], "quantize")
    path = Path(args["model"])
    with tempfile.TemporaryDirectory(prefix="quantize-", dir=Path.cwd()) as folder:
        job = _Job(
            path=path,
            output=Path(args["output"]),
            section=section,
            model_folder=Path(args.get("model_folder") or path.parent),
            work=Path(folder),
            progress=_progress(context),
            compare=args.get("compare", True),
            dims=args.get("dims", {}),
        )
        outcome = _quantized(job)
        context.event("writing")
        written = files.save(outcome.model if outcome.changed else files.load(path), job.output, overwrite=True)
        context.event("comparing")
        compared = _compared(job, outcome)
    return {
        "changed": outcome.changed,
        "mode": section.mode,
        "nodes": outcome.nodes,
        "calibration": outcome.calibration,
        "size": {"before_bytes": _size((path, *files.external_files(path))), "after_bytes": _size(written)},
        "fidelity": compared,
        "notes": list(outcome.notes) if outcome.changed else [],
        "warnings": _warnings(outcome, compared),
    }


def _size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths)


def _progress(context: Context) -> Progress:
    """Tells the caller of every sample, and stops between two of them when the caller wants that."""

    def tell(done: int, total: int) -> None:
        if context.stop.is_set():
            raise Interrupted("calibration was interrupted")
        context.event("calibrating", done=done, total=total)

    return tell


def _quantized(job: _Job) -> _Outcome:
    if job.section.mode == "static":
        return _static(job)
    if job.section.calibration is not None:
        raise RequestError(f"mode `{job.section.mode}` takes no calibration data")
    return _without_data(job, cast(Mode, import_module(WITHOUT_DATA[job.section.mode])))


def _without_data(job: _Job, mode: Mode) -> _Outcome:
    mode.check(job.section)
    prepared = prepare(load(job.path), opset=mode.OPSET)
    values = ask_types(prepared.model, Runnable(prepared.model, job.work))
    ops, producer = operators(prepared.model), producer_of(prepared.model)
    chosen = mode.choose(prepared.model, job.section, values.types)
    model, done = mode.quantize(prepared.model, job.section, chosen)
    finish(model, producer)
    return _Outcome(model, values.inputs, prepared.notes, summary(ops, done))


def _prepared(path: Path, section: QuantizeSection) -> Prepared:
    model = load(path)
    opset, contrib_from = static.needs(section, model)
    prepared = prepare(model, opset=opset, contrib_from=contrib_from)
    folded = folding.fold(prepared.model, section)
    return replace(prepared, notes=(*prepared.notes, *folded, *device_forms.rewrite(prepared.model, section.rules)))


def _static(job: _Job) -> _Outcome:
    section = job.section
    static.check(section)
    if section.calibration is None:
        raise RequestError(
            "static quantization needs calibration data",
            hint="name real samples with `--data`; `--calibration random` makes some up, at the cost of accuracy",
        )
    prepared = _prepared(job.path, section)
    runnable = Runnable(prepared.model, job.work)
    values = ask_types(prepared.model, runnable)
    dataset = open_dataset(section.calibration, values.inputs, model_folder=job.model_folder, labels=False)
    ops, producer = operators(prepared.model), producer_of(prepared.model)
    chosen = static.choose(prepared.model, section)
    wanted = static.to_calibrate(prepared.model, chosen, values.types)
    outputs = [value.name for value in prepared.model.graph.output]
    calibration = calibrate(runnable, wanted.tensors, outputs, dataset, section, job.progress).extended(wanted.same)
    chosen = chosen.without(static.without_range(prepared.model, calibration.endless))
    model, done = static.quantize(prepared, section, chosen, calibration, values.types)
    finish(model, producer)
    facts = {
        "source": dataset.source,
        "digest": dataset.digest,
        "samples": len(dataset),
        "runs": calibration.runs,
        "seed": section.calibration.seed,
        "method": section.calibration_method,
        "tensors": len(calibration.ranges),
    }
    return _Outcome(model, values.inputs, (*prepared.notes, *dataset.notes), summary(ops, done), facts)


def _compared(job: _Job, outcome: _Outcome) -> dict[str, Any]:
    """How far the outputs moved, on the first samples of the calibration data or on random inputs."""
    data = job.section.calibration or DataSection(RANDOM, limit=fidelity.SAMPLES)
    if not outcome.changed or not job.compare:
        return fidelity.skipped(data.source, "not asked for" if outcome.changed else "nothing changed")
    found = fidelity.unknown(data.source, "no inputs can be made")
    for attempt in attempts(data, job.path, outcome.inputs, job.dims):
        found = _measured(job, attempt, outcome.inputs)
        if found["status"] == "measured":
            break
    return found


def _measured(job: _Job, data: DataSection, inputs: tuple[InputSpec, ...]) -> dict[str, Any]:
    try:
        dataset = open_dataset(data, inputs, model_folder=job.model_folder, labels=False)
    except RequestError as error:
        return fidelity.unknown(data.source, f"no inputs can be made: {error.message}")
    exact = job.section.mode == "static" and job.section.activation_type in ("uint8", "int8")
    feeds = (sample.inputs for sample in dataset)
    found = fidelity.measure(job.path, job.output, feeds, source=data.source, exact=exact)
    return {**found, "sizes": data.dims}


def _warnings(outcome: _Outcome, compared: dict[str, Any]) -> list[str]:
    found = []
    if not outcome.changed:
        found.append("no change: nothing in the model could be quantized; the output is the model as it was")
    fused = [entry for entry in outcome.nodes["left"] if entry["reason"] == static.FUSED]
    if fused:
        listed = ", ".join(f"{entry['op']} x{entry['nodes']}" for entry in fused)
        found.append(f"operators that were fused before stay in float: {listed}; quantize first, then fuse")
    if compared["status"] == "unknown":
        found.append(f"the outputs were not compared with the original's: {compared['reason']}")
    poor = [entry for entry in compared["outputs"] if (entry["cosine"] or 0.0) < POOR_COSINE and not entry["identical"]]
    saturated = [entry for entry in compared["outputs"] if saturates(entry)]
    return [*found, *(_saturation(entry) for entry in saturated), *(_poor(e) for e in poor if e not in saturated)]


def saturates(entry: dict[str, Any]) -> bool:
    """Whether integer kernels lose more than quantization itself."""
    real, exact = entry["sqnr_db"], entry["exact_sqnr_db"]
    return real is not None and exact is not None and exact - real > SATURATED_DB


def _saturation(entry: dict[str, Any]) -> str:
    return (
        f"the 8-bit kernels of this processor saturate: output `{entry['name']}` has {entry['sqnr_db']:.0f} dB against "
        f"{entry['exact_sqnr_db']:.0f} dB in exact arithmetic; processors with VNNI do not, and "
        "`winml quantize --reduce-range` (`reduce_range` in a config) avoids it"
    )


def _poor(entry: dict[str, Any]) -> str:
    cosine = "is all zero" if entry["cosine"] is None else f"keeps a cosine of only {entry['cosine']:.3f}"
    return (
        f"output `{entry['name']}` {cosine}; try a wider precision (`-p`), another calibration "
        "(`winml quantize --method percentile`), or fewer operators"
    )
