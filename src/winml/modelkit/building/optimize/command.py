"""`winml optimize`: a model through passes, with the proof that its outputs stay the same."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path

from winml.modelkit.building import output_model
from winml.modelkit.building.events import StageStarted
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.optimize import table
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.building.optimize.result import (
    OptimizeArguments,
    OptimizeReport,
    OptimizeResult,
    PassRow,
    PassTable,
)
from winml.modelkit.building.optimize.support import find_unsupported
from winml.modelkit.building.pipeline.stage import run_alone
from winml.modelkit.building.pipeline.table import OPTIMIZE
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.target import Target
from winml.modelkit.ep import probing as targets
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import match_sizes

DEFAULT_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class OptimizeRequest:
    """Everything the user decided."""

    model: str
    output: str
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    level: str | None = None
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    opset: int | None = None
    dims: dict[str, int] = field(default_factory=dict)
    allow_unsupported: bool = False
    verify: bool = True
    seed: int = 0
    overwrite: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S


def optimize(request: OptimizeRequest, on_event: OnEvent) -> OptimizeResult:
    """Run the passes in a worker."""
    target = _target(request.target, request.ep, request.device)
    section = resolve(
        level=request.level,
        enable=request.enable,
        disable=request.disable,
        target=target,
        opset=request.opset,
        allow_unsupported=request.allow_unsupported,
    )
    on_event(StageStarted("optimize"))
    model = model_path(request.model, on_event)
    output = Path(request.output).absolute()
    fixed = match_sizes(read_signature(model).inputs, request.dims) if request.dims else {}
    section = replace(section, fixed_dims=fixed)
    output_model.check(output, model, overwrite=request.overwrite)
    given = OptimizeArguments(
        model=str(model),
        output=str(output),
        section=section,
        target=None if target is None else str(target),
        allow_unsupported=request.allow_unsupported,
        verify=request.verify,
        seed=request.seed,
    )
    report = run_alone(
        OptimizeReport,
        OPTIMIZE,
        given,
        output,
        overwrite=request.overwrite,
        timeout_s=request.timeout_s,
        on_event=on_event,
        what="optimizing",
        uncompared="`--no-verify` runs no model; the passes may still do so where they fold constants",
    )
    return OptimizeResult(
        model=request.model, output=request.output, target=given.target, section=section, report=report
    )


def list_passes(target: str | None, ep: str | None, device: str | None) -> PassTable:
    """The table of passes, with what a target would not take of what they make."""
    named = _target(target, ep, device)
    rows = tuple(
        PassRow(
            name=row.name,
            kind=row.kind,
            level=row.level,
            what=row.what,
            produces=row.produces,
            refused=tuple(find_unsupported(named, row.produces)),
            needs=row.needs,
            approximate=row.approximate,
            unavailable=row.unavailable,
        )
        for row in table.PASSES
    )
    return PassTable(target=None if named is None else str(named), table=rows)


def _target(target: str | None, ep: str | None, device: str | None) -> Target | None:
    """The target that was named, here or not; None is good for all."""
    if target is None and ep is None and device is None:
        return None
    return targets.plan(target, ep, device).target
