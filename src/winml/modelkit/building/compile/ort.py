"""ONNX Runtime's ModelCompiler, the default."""

from __future__ import annotations

from winml.modelkit.building.compile.base import CompileJob, CompileTools, Missing
from winml.modelkit.building.compile.result import CompilerName
from winml.modelkit.building.compile.shared_context import share_entries
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.ep.catalog import EPInfo


class ORTCompiler:
    """Compiles without opening a session; fails when the EP took nothing."""

    name: CompilerName = "ort"
    summary = "ONNX Runtime's ModelCompiler"
    needs_ep = True
    shares = True

    def missing(self, info: EPInfo, tools: CompileTools) -> Missing | None:
        return None

    def version(self, tools: CompileTools) -> str | None:
        return None

    def compile(self, job: CompileJob) -> dict[str, str]:
        from winml.modelkit.session.compiling import compile_to_file

        section = SessionSection(config_entries=share_entries(job.share), ep_options=job.section.provider_options)
        chosen = compile_to_file(
            job.model,
            job.output,
            target=job.target,
            section=section,
            embed=job.section.embed,
            distribution=job.distribution,
        )
        return chosen.provider_options
