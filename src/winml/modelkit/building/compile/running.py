"""Worker operations that need the EP: compile a model, and run what came out beside what went in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from winml.modelkit.building.compile import table
from winml.modelkit.building.compile.base import job_from_json
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.ep import options
from winml.modelkit.graph.inputs import Arrays, InputRequest, synthetic
from winml.modelkit.session.distance import distance_of
from winml.modelkit.session.measure import Context
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.worker.memory import memory_of


def model(args: dict[str, Any], context: object) -> dict[str, Any]:
    """Compile one model in this process; models that share a context follow each other in one process."""
    job = job_from_json(args)
    started = time.perf_counter()
    used = table.find(job.section.compiler).compile(job)
    memory = memory_of()
    return {
        "seconds": time.perf_counter() - started,
        "peak_bytes": None if memory is None else memory["peak_bytes"],
        "provider_options": used,
    }


def _opened(path: Path, target: Target, section: SessionSection, distribution: str | None) -> WinMLSession | str:
    """A session, or why there is none."""
    try:
        return WinMLSession(path, target=target, section=section, distribution=distribution)
    except ModelkitError as error:
        return error.message


def _compared(got: dict[str, Any], reference: WinMLSession | str, arrays: Arrays) -> dict[str, Any]:
    """Distances by output from what the reference computes; strings and sequences have none and are left out."""
    if isinstance(reference, str):
        return {"reason": reference, "outputs": {}}
    with reference:
        try:
            expected = reference.run(arrays)
        except ModelkitError as error:
            return {"reason": error.message, "outputs": {}}
    outputs = {
        name: {**distance_of(value, got[name]), "float": value.dtype.kind in "fc"}
        for name, value in expected.items()
        if isinstance(value, np.ndarray) and isinstance(got.get(name), np.ndarray)
    }
    return {"reason": None, "outputs": outputs}


def validate(args: dict[str, Any], context: object) -> dict[str, Any]:
    """Run the compiled model and its source on the same target and inputs.

    A compiled model that does not open here, and a source that does not run, are answers with a reason.
    """
    job = job_from_json(args)
    section = SessionSection(ep_options=options.for_session(job.target, job.section.provider_options))
    # The source first: a shared binary, which the QNN simulator cannot load, is refused when another session is open,
    # and ends the process when there is none.
    step = cast("Context", context).event
    step("step", step="source")
    source = _opened(job.model, job.target, section, job.distribution)
    step("step", step="compiled")
    compiled = _opened(job.output, job.target, section, job.distribution)
    if isinstance(compiled, str):
        return {"opened": False, "reason": compiled, "comparison": None}
    step("step", step="running")
    arrays = synthetic(compiled.inputs, InputRequest(seed=args["seed"]))
    got = compiled.run(arrays)
    compiled.close()
    step("step", step="reference")
    return {"opened": True, "reason": None, "comparison": _compared(got, source, arrays)}
