"""`winml quantize`: a model in smaller numbers, with how far its outputs changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building import output_model, weight_range
from winml.modelkit.building.config import PRELOAD, describe_data
from winml.modelkit.building.events import StageStarted
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.pipeline.alone import StageAlone
from winml.modelkit.building.pipeline.stage import StageWords
from winml.modelkit.building.pipeline.steps import quantize_step
from winml.modelkit.building.quantize import advice
from winml.modelkit.building.quantize.result import QuantizeOutcome, QuantizeReport, QuantizeResult
from winml.modelkit.core import values
from winml.modelkit.core.config import RANDOM, DataSection, QuantizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent, TargetChosen
from winml.modelkit.core.target import Target
from winml.modelkit.data import sizes
from winml.modelkit.ep import precision
from winml.modelkit.ep import probing as targets
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import match_sizes
from winml.modelkit.worker.client import Worker

DEFAULT_PRECISION = "int8"
"""Where a target prefers no precision of its own."""
WORDS = StageWords("quantizing", "", "; nothing was written")
RANDOM_DOUBT = "calibrated on random inputs; measure the accuracy with `winml eval` before you use it"

_CHOICE = ("op_types", "exclude_op_types", "nodes", "exclude_nodes")
_WEIGHTS = ("weight_type", "per_channel", "symmetric_weights", "reduce_range")
MEANINGFUL: dict[str, tuple[str, ...]] = {
    "fp16": ("keep_io_types", *_CHOICE),
    "dynamic": (*_WEIGHTS, *_CHOICE),
    "static": (
        "activation_type", "symmetric_activations", "rules", "calibration_method", "percentile", "wide_nodes",
        "bias_correction", "smoothing", *_WEIGHTS, *_CHOICE,
    ),
    "weight_only": (
        "weight_type", "symmetric_weights", "block_size", "block_method", "block_compute", *_CHOICE,
    ),
}  # fmt: skip
"""Keys of the section that each mode looks at; any other would be ignored."""


@dataclass(frozen=True)
class QuantizeRequest:
    """Everything the user decided."""

    model: str
    output: str
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    precision: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)
    """Keys of the section that differ from what the target prefers."""
    dims: dict[str, int] = field(default_factory=dict)
    """Sizes of open dimensions in random inputs, by name or place."""
    data: DataSection | None = None
    sample_data: DataSection | None = None
    """What the sample model comes with, for a precision that needs data."""
    compare: bool = True
    overwrite: bool = False
    rebuild: bool = False
    timeout_s: float | None = None


def quantize(request: QuantizeRequest, on_event: OnEvent) -> QuantizeResult:
    """Quantize in a worker, or take the result from the cache."""
    model = model_path(request.model, on_event)
    output = Path(request.output).absolute()
    output_model.check(output, model, overwrite=request.overwrite)
    target = targets.plan(request.target, request.ep, request.device).target
    on_event(TargetChosen(target))
    chosen, section = choose_section(request, target)
    dims = match_sizes(read_signature(model).inputs, request.dims) if request.dims else {}
    options: dict[str, Any] = {"dims": dims} if dims else {}
    options |= {} if request.compare else {"compare": False}
    with output_model.stage_output(output, overwrite=request.overwrite) as staged, Worker(preload=PRELOAD) as worker:
        described = section
        if section.calibration is not None:
            data = sizes.random_data(section.calibration, model, given=dims, worker=worker)
            section = replace(section, calibration=data)
            described = replace(section, calibration=describe_data(data, model, worker))
        described, range_notes = weight_range.resolve(described, target, worker)
        doubts = advice.check(described, target)
        on_event(StageStarted("quantize"))
        alone = StageAlone(model, worker, rebuild=request.rebuild, timeout_s=request.timeout_s, on_event=on_event)
        step = quantize_step(described, model.parent, options)
        report, done = alone.run(QuantizeReport, replace(step, words=WORDS))
        alone.copy(done, staged)
    if section.calibration is not None and section.calibration.source == RANDOM:
        doubts.append(RANDOM_DOUBT)
    return QuantizeResult(
        model=request.model,
        output=request.output,
        target=target,
        precision=chosen,
        section=replace(section, reduce_range=report.reduce_range, per_channel=report.per_channel),
        cache=done.cache,
        outcome=_complete(report.outcome, section.calibration, notes=range_notes, warnings=doubts),
    )


def _complete(
    outcome: QuantizeOutcome, data: DataSection | None, *, notes: Sequence[str], warnings: Sequence[str]
) -> QuantizeOutcome:
    """The outcome with what was found before the stage, and with the path of its data: the cache knows its content."""
    if data is not None and outcome.calibration is not None:
        fidelity = outcome.fidelity
        outcome = replace(
            outcome,
            calibration=replace(outcome.calibration, source=data.source),
            fidelity=fidelity if fidelity.source == RANDOM else replace(fidelity, source=data.source),
        )
    return replace(
        outcome,
        notes=(*notes, *outcome.notes) if outcome.changed else outcome.notes,
        warnings=(*warnings, *outcome.warnings),
    )


def choose_section(request: QuantizeRequest, target: Target) -> tuple[str, QuantizeSection]:
    """The precision and the section for it; what the user changed must apply to it."""
    chosen = precision.resolve(target, request.precision or precision.AUTO)
    if chosen == precision.UNQUANTIZED and request.precision is None:
        chosen = DEFAULT_PRECISION
    section = precision.quantize_section(target, chosen)
    if section is None:
        raise RequestError(
            f"precision `{chosen}` leaves the model as it is",
            hint=f"name another one with `-p`: {', '.join(p for p in precision.PRECISIONS if p != chosen)}",
        )
    for name in request.changes:
        if name not in MEANINGFUL[section.mode]:
            raise RequestError(f"`{name}` does not apply to precision `{chosen}`", hint="drop the option")
    if section.mode != "static" and request.data is not None:
        raise RequestError(f"precision `{chosen}` needs no calibration data", hint="drop `--calibration`")
    data = (request.data or request.sample_data) if section.mode == "static" else None
    if section.mode == "static" and data is None:
        raise RequestError(
            f"precision `{chosen}` needs calibration data",
            hint="name real samples with `--calibration FILE`; `--calibration random` uses random inputs, at the cost "
            "of accuracy",
        )
    changed = replace(section, **request.changes, calibration=data and data.absolute())
    # Read back, so that a value from the command line is checked like one from a config.
    return chosen, values.read(QuantizeSection, values.to_json(changed), "quantize")
