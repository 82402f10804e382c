"""Worker operations that need the EP: compile a model, and run the result beside its source."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.building.compile import table
from winml.modelkit.building.compile.base import CompileJob
from winml.modelkit.building.compile.result import ComparedOutput, CompileCost, ValidationRun
from winml.modelkit.building.events import ValidationStep
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read
from winml.modelkit.ep import options
from winml.modelkit.graph.inputs import Arrays, InputRequest, synthetic
from winml.modelkit.session.distance import distance_of
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.worker.memory import memory_of

if TYPE_CHECKING:
    from winml.modelkit.worker.program import Context


def model(args: dict[str, Any], context: object) -> CompileCost:
    """Compile one model in this process; models that share a context follow each other in one process."""
    job = read(CompileJob, args)
    started = time.perf_counter()
    used = table.find(job.section.compiler).compile(job)
    memory = memory_of()
    return CompileCost(
        seconds=time.perf_counter() - started,
        peak_bytes=None if memory is None else memory["peak_bytes"],
        provider_options=used,
    )


def _open(path: Path, target: Target, section: SessionSection, distribution: str | None) -> WinMLSession | str:
    """A session, or why there is none."""
    try:
        return WinMLSession(path, target=target, section=section, distribution=distribution)
    except ModelkitError as error:
        return error.message


def _compare(got: dict[str, Any], reference: WinMLSession | str, arrays: Arrays) -> ValidationRun:
    """Distances by output from what the reference computes."""
    if isinstance(reference, str):
        return ValidationRun(opened=True, reason=reference)
    with reference:
        try:
            expected = reference.run_arrays(arrays)
        except ModelkitError as error:
            return ValidationRun(opened=True, reason=error.message)
    outputs = {
        name: ComparedOutput(**vars(distance_of(value, got[name])), is_float=value.dtype.kind in "fc")
        for name, value in expected.items()
        if name in got
    }
    return ValidationRun(opened=True, outputs=outputs)


def validate(args: dict[str, Any], context: Context) -> ValidationRun:
    """Run the compiled model and its source on the same target and inputs.

    A compiled model that does not open here, and a source that does not run, are answers with a reason.
    """
    job = read(CompileJob, args)
    section = SessionSection(ep_options=options.for_session(job.target, job.section.provider_options))
    # The source first: a shared binary, which the QNN simulator cannot load, is refused when another session is open,
    # and ends the process when there is none.
    context.tell(ValidationStep(at="source"))
    source = _open(job.model, job.target, section, job.distribution)
    context.tell(ValidationStep(at="compiled"))
    compiled = _open(job.output, job.target, section, job.distribution)
    if isinstance(compiled, str):
        return ValidationRun(opened=False, reason=compiled)
    context.tell(ValidationStep(at="running"))
    arrays = synthetic(compiled.inputs, InputRequest(seed=job.seed))
    got = compiled.run_arrays(arrays)
    compiled.close()
    context.tell(ValidationStep(at="reference"))
    return _compare(got, source, arrays)
