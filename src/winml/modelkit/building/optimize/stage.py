"""Worker operation `stages.optimize`: fixes dimensions, converts the opset, runs the passes, compares outputs."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from winml.modelkit.building.events import OptimizedOutputs, PassStarted
from winml.modelkit.building.optimize import dims, verify
from winml.modelkit.building.optimize.apply import Runner
from winml.modelkit.building.optimize.crashes import LIBRARY_CRASHES
from winml.modelkit.building.optimize.result import (
    Crashes,
    OptimizeArguments,
    OptimizeReport,
    PassResult,
    Verification,
    WrittenFile,
)
from winml.modelkit.building.optimize.support import find_unsupported
from winml.modelkit.building.optimize.table import Pass, find
from winml.modelkit.building.optimize.verify import Reference
from winml.modelkit.building.optimize.workspace import Version, Workspace, nameless
from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError, ModelkitError, RunFailedError
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.graph import files, opset
from winml.modelkit.graph.fingerprint import fingerprint
from winml.modelkit.graph.value_names import rename_generated, values_of

if TYPE_CHECKING:
    from winml.modelkit.worker.program import Context

MAX_NAMES = 5
"""Passes that a warning names one by one; the report names all."""


@dataclass(frozen=True)
class PassOutcome:
    """A pass that was tried."""

    row: Pass
    changed: bool
    seconds: float
    failure: str | None = None
    """Why its change was discarded."""
    note: str | None = None

    @property
    def result(self) -> PassResult:
        return PassResult(
            name=self.row.name,
            kind=self.row.kind,
            status="changed" if self.changed else "left out" if self.failure else "no change",
            changed=self.changed,
            seconds=round(self.seconds, 4),
            note=self.failure or self.note,
        )


@dataclass(frozen=True)
class OptimizeJob:
    """What does not change while passes run."""

    rows: tuple[Pass, ...]
    runner: Runner
    target: Target | None
    """Whose operators may be made; None when all may."""
    reference: Reference | None
    context: Context
    crashes: Crashes


def run(args: dict[str, Any], context: Context) -> OptimizeReport:
    """Optimize a model by a section and report what was done; `args` is an `OptimizeArguments`."""
    given = read(OptimizeArguments, args)
    section, crashes = given.section, given.crashes
    rows = tuple(map(find, section.passes))
    target = _target(given.target)
    source = files.load(given.model)
    value_names = values_of(source)
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix="optimize-", ignore_cleanup_errors=True) as folder:
        workspace = Workspace(Path(folder))
        first = _open(workspace, source, section)
        start = _prepare(workspace, first, section)
        reference = _reference(given, first, context)
        if reference is not None and start is not first:
            context.tell(OptimizedOutputs(of="prepared"))
            _require_equal(reference, start)
        job = OptimizeJob(rows, Runner(workspace), target, reference, context, crashes)
        last, outcomes, verification = _optimize(job, start)
        result = source if last is first else files.load(last.path)
        rename_generated(result, source=value_names)
        written = files.save(result, given.output)
    before, after = fingerprint(source), fingerprint(result)
    return OptimizeReport(
        changed=before != after,
        fingerprint_before=before,
        fingerprint_after=after,
        files=tuple(WrittenFile(path=path.name, bytes=path.stat().st_size) for path in written),
        passes=tuple(outcome.result for outcome in outcomes),
        nodes_before=sum(first.ops.values()),
        nodes_after=sum(last.ops.values()),
        ops_before=first.ops,
        ops_after=last.ops,
        opset_before=opset.opset(first.model),
        opset_after=opset.opset(last.model),
        fixed_dims=section.fixed_dims,
        verification=verification,
        warnings=_warnings(outcomes, last, verification),
    )


def _target(name: str | None) -> Target | None:
    asked = None if name is None else parse_target(name)
    if asked is None or asked.ep is None:
        return None
    return Target(asked.ep.name, asked.device or asked.ep.devices[0])


def _open(workspace: Workspace, source: ModelProto, section: OptimizeSection) -> Version:
    """The first version; dimensions that are fixed have names in it, so that inputs can be made for it too."""
    version = workspace.open(source)
    model = dims.name_dims(version.model, section.fixed_dims)
    return version if model is version.model else workspace.write(model)


def _prepare(workspace: Workspace, version: Version, section: OptimizeSection) -> Version:
    """The version with its dimensions fixed and in its new opset; itself when neither is requested."""
    model = dims.fix(version.model, section.fixed_dims) if section.fixed_dims else version.model
    model = opset.convert(model, section.opset) if section.opset is not None else model
    return version if model is version.model else workspace.write(model)


def _reference(given: OptimizeArguments, first: Version, context: Context) -> Reference | None:
    """What the unmodified model computes; None when outputs are not compared."""
    context.tell(OptimizedOutputs(of="source"))
    if not given.verify:
        return None
    if given.crashes.source is not None:
        return Reference((), f"running the unmodified model: {given.crashes.source}")
    return verify.reference(first.path, seed=given.seed, dims=given.section.fixed_dims)


def _require_equal(reference: Reference, start: Version) -> None:
    """Refuse an opset or dimensions that change outputs, or that the runtime refuses."""
    try:
        found = verify.compare(reference, start.path, tolerance=verify.ROUNDING)
    except ModelkitError as error:
        raise type(error)(nameless(error, start.path), hint=error.hint, details=error.details) from error
    if found.status == "failed":
        raise RunFailedError(
            "the new opset or dimensions alone change the outputs of the model",
            hint="drop `--opset` and `--dim`",
            details={"verification": to_json(found)},
        )


def _optimize(job: OptimizeJob, start: Version) -> tuple[Version, tuple[PassOutcome, ...], Verification]:
    """The last version, the outcome of each pass, and the comparison of outputs.

    Outputs are compared once at the end; only when they differ, every pass is compared and those at fault are skipped.
    """
    last, outcomes = _run_passes(job, start, careful=job.crashes.careful)
    job.context.tell(OptimizedOutputs(of="result"))
    verification = _verify(job, last, outcomes)
    if verification.status == "failed" and not job.crashes.careful:
        last, outcomes = _run_passes(job, start, careful=True)
        verification = _verify(job, last, outcomes)
    return last, outcomes, verification


def _verify(job: OptimizeJob, version: Version, outcomes: Iterable[PassOutcome]) -> Verification:
    """How the outputs of a version compare; one that the runtime refuses has failed."""
    approximate = any(outcome.changed and outcome.row.approximate for outcome in outcomes)
    tolerance = verify.APPROXIMATION if approximate else verify.ROUNDING
    if job.reference is None:
        return Verification(status="not asked for")
    try:
        return verify.compare(job.reference, version.path, tolerance=tolerance)
    except ModelkitError as error:
        return verify.refusal(job.reference, nameless(error, version.path), tolerance=tolerance)


def _run_passes(job: OptimizeJob, start: Version, *, careful: bool) -> tuple[Version, tuple[PassOutcome, ...]]:
    """Run every pass once, in order; with `careful` outputs are compared after each that changed something."""
    version = start
    outcomes: tuple[PassOutcome, ...] = ()
    for row in job.rows:
        job.context.tell(PassStarted(name=row.name, done=len(outcomes), total=len(job.rows)))
        version, outcome = _run_pass(job, row, version, outcomes if careful else None)
        outcomes = (*outcomes, outcome)
    return version, outcomes


def _run_pass(
    job: OptimizeJob, row: Pass, version: Version, compared: tuple[PassOutcome, ...] | None
) -> tuple[Version, PassOutcome]:
    """The version after one pass; the one before it when the pass fails, does nothing or makes what it must not."""
    crash = _crash(job, row)
    if crash is not None:
        return version, PassOutcome(row, False, 0.0, crash)
    started = time.perf_counter()
    made, failure, note = None, None, None
    try:
        made = job.runner.apply(row, version)
        failure = None if made is None else _objection(job, row, version, made, compared)
        note = job.runner.why_not(row, version) if made is None else None
    except (RunFailedError, ModelFileError) as error:
        # A result without the passes that ran out of disk space is not the one requested.
        job.runner.workspace.require_space()
        failure = error.message
    seconds = time.perf_counter() - started
    if made is None or failure is not None:
        return version, PassOutcome(row, False, seconds, failure, note)
    return made, PassOutcome(row, True, seconds)


def _crash(job: OptimizeJob, row: Pass) -> str | None:
    """Why a pass is not tried again, or at all, after crashes."""
    if row.name in job.crashes.passes:
        return job.crashes.passes[row.name]
    of_library = [name for name in job.crashes.passes if find(name).kind == row.kind]
    if len(of_library) >= LIBRARY_CRASHES:
        return f"{', '.join(of_library)}, which the same library runs, crashed"
    return None


def _objection(
    job: OptimizeJob, row: Pass, version: Version, made: Version, compared: tuple[PassOutcome, ...] | None
) -> str | None:
    """Why the change of a pass is discarded, or None."""
    never = find_unsupported(job.target, set(made.ops) - set(version.ops))
    if never:
        return f"would make {', '.join(never)}, which {job.target} is not known to support"
    if compared is None:
        return None
    found = _verify(job, made, (*compared, PassOutcome(row, True, 0.0)))
    if found.status == "failed":
        return found.reason or "would change the outputs of the model"
    return None


def _warnings(outcomes: tuple[PassOutcome, ...], last: Version, verification: Verification) -> tuple[str, ...]:
    found = []
    by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.failure is not None:
            by_reason.setdefault(outcome.failure, []).append(outcome.row.name)
    for reason, names in by_reason.items():
        which = ", ".join(names) if len(names) <= MAX_NAMES else f"{len(names)} passes"
        found.append(f"skipped {which}: {reason}")
    approximate = [outcome.row.name for outcome in outcomes if outcome.changed and outcome.row.approximate]
    if approximate:
        found.append(f"results are approximations: {', '.join(approximate)}")
    if any(op.startswith("com.microsoft.nchwc:") for op in last.ops):
        found.append("the blocked layout (nchwc) runs only on processors like this one")
    if verification.status == "not run":
        found.append(f"outputs were not compared: {verification.reason}")
    return tuple(found)
