"""A session that writes what it compiled when it is opened."""

from __future__ import annotations

from winml.modelkit.building.compile.base import CompileJob, CompileTools, Missing
from winml.modelkit.building.compile.result import CompilerName
from winml.modelkit.building.compile.shared_context import share_entries
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.ep.catalog import EPInfo


class ORTJitCompiler:
    """Opens the model with `ep.context_enable`: the graph is optimized first, so the EP may get larger parts."""

    name: CompilerName = "ort_jit"
    summary = "an ONNX Runtime session with ep.context_enable"
    needs_ep = True
    shares = True

    def missing(self, info: EPInfo, tools: CompileTools) -> Missing | None:
        return None

    def version(self, tools: CompileTools) -> str | None:
        return None

    def compile(self, job: CompileJob) -> dict[str, str]:
        from winml.modelkit.session.session import WinMLSession

        entries = {
            "ep.context_enable": "1",
            "ep.context_file_path": str(job.output),
            "ep.context_embed_mode": "1" if job.section.embed else "0",
            **share_entries(job.share),
        }
        section = SessionSection(config_entries=entries, ep_options=job.section.provider_options)
        with WinMLSession(job.model, target=job.target, section=section, distribution=job.distribution) as session:
            return session.provider_options
