"""Worker operation: the whole stage for one model in one process, as a pipeline runs it."""

from __future__ import annotations

from typing import Any

from winml.modelkit.core.errors import RequestError
from winml.modelkit.ep import catalog
from winml.modelkit.stages.compile import parity, reading, running
from winml.modelkit.stages.compile.base import job_from_json
from winml.modelkit.stages.compile.refusals import ep_refusal, model_refusal
from winml.modelkit.stages.compile.report import model_report
from winml.modelkit.stages.compile.stage import SEED


def compile_model(args: dict[str, Any], context: object) -> dict[str, Any]:
    """Compile `model` into `output` by `section` for `target`; the report of it.

    Validated unless `validate` is false. A caller that wants a crash to be a result asks a worker.
    """
    job = job_from_json(args)
    if job.share != "alone":
        raise RequestError("a stage of a build compiles one model on its own")
    info = catalog.BY_NAME[job.target.ep]
    name = job.model.name
    source = reading.source({"model": str(job.model)}, context)
    refused = ep_refusal(info) or model_refusal(name, source, info, job.target.device)
    if refused is not None:
        raise refused
    answer = running.model(args, context)
    found = reading.compiled({"model": str(job.output)}, context)
    report = model_report(name, source, found, answer, job.section)
    if not args.get("validate", True):
        return report
    answer = running.validate({**args, "seed": SEED}, context)
    here = None if parity.elsewhere(job.target, job.section) else str(job.target)
    return {**report, "validation": parity.checked(name, answer, source["precision"], here=here)}
