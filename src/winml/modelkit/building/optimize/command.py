"""`winml optimize`: a model through passes, with the proof that its outputs stay the same."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building import output_model
from winml.modelkit.building.events import StageStarted
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.optimize import table
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.building.optimize.result import (
    OptimizeReport,
    OptimizeResult,
    PassRow,
    PassTable,
)
from winml.modelkit.building.optimize.support import find_unsupported
from winml.modelkit.building.pipeline.alone import StageAlone
from winml.modelkit.building.pipeline.stage import StageWords
from winml.modelkit.building.pipeline.steps import optimize_step
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.target import Target
from winml.modelkit.ep import probing as targets
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import match_sizes
from winml.modelkit.worker.client import Worker

DEFAULT_TIMEOUT_S = 1800.0
PRELOAD = ("winml.modelkit.graph.source",)
WORDS = StageWords(
    "optimizing",
    "`--no-verify` runs no model; the passes may still do so where they fold constants",
    "; nothing was written",
)


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
    rebuild: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S


def optimize(request: OptimizeRequest, on_event: OnEvent) -> OptimizeResult:
    """Run the passes in a worker, or take their result from the cache."""
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
    compared: dict[str, Any] = {"seed": request.seed} if request.seed else {}
    options = compared if request.verify else {"verify": False}
    with output_model.stage_output(output, overwrite=request.overwrite) as staged, Worker(preload=PRELOAD) as worker:
        alone = StageAlone(model, worker, rebuild=request.rebuild, timeout_s=request.timeout_s, on_event=on_event)
        report, done = alone.run(OptimizeReport, replace(optimize_step(section, options), words=WORDS))
        refused = find_unsupported(target, set(report.ops_after) - set(report.ops_before))
        if refused and not request.allow_unsupported:
            # A pass made what it does not declare: with the target every pass is checked, and those are skipped.
            step = optimize_step(section, {**options, "target": str(target)})
            report, done = alone.run(OptimizeReport, replace(step, words=WORDS))
        files = alone.copy(done, staged)
    return OptimizeResult(
        model=request.model,
        output=request.output,
        target=None if target is None else str(target),
        section=section,
        cache=done.cache,
        report=replace(report, files=files),
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
