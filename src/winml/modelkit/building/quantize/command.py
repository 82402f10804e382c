"""`winml quantize`: a model in smaller numbers, with how far its outputs changed."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building import output_model
from winml.modelkit.building.events import StageStarted
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.pipeline.stage import run_alone
from winml.modelkit.building.pipeline.table import QUANTIZE
from winml.modelkit.building.quantize import advice, weight_range
from winml.modelkit.building.quantize.result import QuantizeArguments, QuantizeReport, QuantizeResult
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

DEFAULT_PRECISION = "int8"
"""Where a target prefers no precision of its own."""
RANDOM_DOUBT = "calibrated on random inputs; measure the accuracy with `winml eval` before you use it"

_CHOICE = ("op_types", "exclude_op_types", "nodes", "exclude_nodes")
_WEIGHTS = ("weight_type", "per_channel", "symmetric_weights", "reduce_range")
MEANINGFUL: dict[str, tuple[str, ...]] = {
    "fp16": ("keep_io_types", *_CHOICE),
    "dynamic": (*_WEIGHTS, *_CHOICE),
    "static": (
        "activation_type", "symmetric_activations", "rules", "calibration_method", "percentile", *_WEIGHTS, *_CHOICE,
    ),
    "weight_only": ("weight_type", "symmetric_weights", "block_size", *_CHOICE),
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
    timeout_s: float | None = None


def quantize(request: QuantizeRequest, on_event: OnEvent) -> QuantizeResult:
    """Quantize in a worker."""
    model = model_path(request.model, on_event)
    output = Path(request.output).absolute()
    output_model.check(output, model, overwrite=request.overwrite)
    target = targets.plan(request.target, request.ep, request.device).target
    on_event(TargetChosen(target))
    chosen, section = _section(request, target)
    dims = match_sizes(read_signature(model).inputs, request.dims) if request.dims else {}
    if section.calibration is not None:
        section = replace(section, calibration=sizes.random_data(section.calibration, model, given=dims))
    if target.ep != "cpu":
        section, _ = weight_range.resolve(section, lambda: False)
    doubts = advice.check(section, target)
    on_event(StageStarted("quantize"))
    given = QuantizeArguments(
        model=str(model),
        output=str(output),
        section=section,
        model_folder=str(model.parent),
        compare=request.compare,
        dims=dims,
    )
    report = run_alone(
        QuantizeReport,
        QUANTIZE,
        given,
        output,
        overwrite=request.overwrite,
        timeout_s=request.timeout_s,
        on_event=on_event,
        what="quantizing",
    )
    if section.calibration is not None and section.calibration.source == RANDOM:
        doubts.append(RANDOM_DOUBT)
    return QuantizeResult(
        model=request.model,
        output=request.output,
        target=target,
        precision=chosen,
        section=replace(section, reduce_range=report.reduce_range, per_channel=report.per_channel),
        outcome=replace(report.outcome, warnings=(*doubts, *report.outcome.warnings)),
    )


def _section(request: QuantizeRequest, target: Target) -> tuple[str, QuantizeSection]:
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
