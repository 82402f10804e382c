"""`winml optimize`: a model through passes, with the proof that its outputs stay the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.optimize import crashes, table
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.building.optimize.support import refused
from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError, WorkerCrashed, WorkerTimeout
from winml.modelkit.core.target import Target
from winml.modelkit.ep import probing as targets
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import given_sizes
from winml.modelkit.worker.client import Worker

SCHEMA = "winml/optimize/1"
PRELOAD = ("winml.modelkit.building.optimize.stage",)
DEFAULT_TIMEOUT_S = 1800.0

OnEvent = Callable[[dict[str, Any]], None]


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


def optimize(request: OptimizeRequest, on_event: OnEvent) -> dict[str, Any]:
    """Run the passes in a worker and return the JSON object of the contract."""
    target = _target(request.target, request.ep, request.device)
    section = resolve(
        level=request.level,
        enable=request.enable,
        disable=request.disable,
        target=target,
        opset=request.opset,
        allow_unsupported=request.allow_unsupported,
    )
    model, output = model_path(request.model, on_event), Path(request.output).absolute()
    fixed = given_sizes(read_signature(model).inputs, request.dims) if request.dims else {}
    section = replace(section, fixed_dims=fixed)
    _check_output(output, model, overwrite=request.overwrite)
    args = {
        "model": str(model),
        "output": str(output),
        "section": sections.plain(section),
        "target": None if target is None else str(target),
        "allow_unsupported": request.allow_unsupported,
        "verify": request.verify,
        "seed": request.seed,
        "overwrite": request.overwrite,
    }
    report = _run(args, request.timeout_s, on_event)
    return {
        "schema": SCHEMA,
        "ok": True,
        "model": request.model,
        "output": request.output,
        "target": args["target"],
        "section": args["section"],
        **report,
    }


def passes(target: str | None, ep: str | None, device: str | None) -> dict[str, Any]:
    """The table of passes, with what a target would not take of what they make."""
    named = _target(target, ep, device)
    rows = [
        {
            "name": row.name,
            "kind": row.kind,
            "level": row.level,
            "what": row.what,
            "produces": list(row.produces),
            "refused": refused(named, row.produces),
            "needs": list(row.needs),
            "approximate": row.approximate,
            "unavailable": row.unavailable,
        }
        for row in table.PASSES
    ]
    return {"schema": SCHEMA, "ok": True, "target": None if named is None else str(named), "table": rows}


def _target(target: str | None, ep: str | None, device: str | None) -> Target | None:
    """The target that was named, here or not; None is good for all."""
    if target is None and ep is None and device is None:
        return None
    return targets.plan(target, ep, device).target


def _check_output(output: Path, model: Path, *, overwrite: bool) -> None:
    """Whether the result can be written, asked before the work starts."""
    if output.is_dir():
        raise RequestError(f"output `{output}` is a directory", hint="name a file")
    if not output.parent.is_dir():
        raise RequestError(f"output folder not found: `{output.parent}`", hint="create it or choose another one")
    if output.exists():
        if output.samefile(model):
            raise RequestError(f"output `{output}` is the model itself", hint="choose another name")
        if not overwrite:
            raise RequestError(f"output file exists: `{output}`", hint="add `--overwrite` to replace it")


def _run(args: dict[str, Any], timeout_s: float, on_event: OnEvent) -> dict[str, Any]:
    """The report of the stage; what takes the process down and cannot be left out is named."""
    current: list[str | None] = []

    def listen(event: dict[str, Any]) -> None:
        current[:] = [event.get("pass")]
        on_event(event)

    try:
        report: dict[str, Any] = crashes.call(
            lambda: Worker(preload=PRELOAD),
            "stages.optimize",
            args,
            timeout_s=timeout_s,
            on_event=listen,
            what="optimizing",
        )
    except (WorkerCrashed, WorkerTimeout) as error:
        if not current:
            raise
        raise _blamed(error, current[0]) from error
    return report


def _blamed(error: WorkerCrashed | WorkerTimeout, name: str | None) -> WorkerCrashed | WorkerTimeout:
    """The death of the worker with what it was at: a pass, or the comparison of outputs."""
    what, hint = (
        "comparing outputs",
        "`--no-verify` runs no model; the passes may still do so where they fold constants",
    )
    if name is not None:
        what, hint = f"pass `{name}`", f"leave it out with `--disable {name}`"
    return type(error)(f"{what}: {error.message}; nothing was written", hint=hint, details=error.details)
