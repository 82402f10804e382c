"""Why a model is refused before it is compiled. Pure functions over what is known of it."""

from __future__ import annotations

from winml.modelkit.building.compile.result import SourceFacts
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import ModelFileError, ModelkitError, RequestError
from winml.modelkit.core.target import Device
from winml.modelkit.ep import catalog
from winml.modelkit.ep.catalog import EPInfo


def ep_refusal(info: EPInfo) -> ModelkitError | None:
    """An EP that runs models as they are has nothing to compile to."""
    if info.can_compile:
        return None
    able = ", ".join(f"`{i.name}`" for i in catalog.TABLE if i.can_compile)
    return RequestError(f"execution provider `{info.name}` does not compile models", hint=f"those that do: {able}")


def sharing_refusal(section: CompileSection, *, shares: bool) -> ModelkitError | None:
    """What excludes a context that several models share."""
    if not shares:
        return RequestError(
            f"compiler `{section.compiler}` does not put several models into one context",
            hint="compile them one at a time, or use `--compiler ort`",
        )
    if section.embed:
        return RequestError(
            "a binary that several models share cannot be embedded in each of them",
            hint="drop `--embed`, or compile the models one at a time",
        )
    if any("," in section.provider_options.get(name, "") for name in ("soc_model", "htp_arch", "vtcm_mb")):
        return RequestError(
            "a context for several SoCs cannot be shared by several models", hint="name one SoC, or compile one model"
        )
    return None


def model_refusal(name: str, source: SourceFacts, info: EPInfo, device: Device) -> ModelkitError | None:
    """Why a model whose file was read cannot be compiled."""
    if source.compiled_for:
        return ModelFileError(
            f"`{name}` is already compiled, for {', '.join(source.compiled_for)}",
            hint="compile its source model",
        )
    if device == "npu" and source.symbolic:
        places = ", ".join(f"{symbol} ({' '.join(where)})" for symbol, where in source.symbolic.items())
        return ModelFileError(
            f"`{name}` has inputs without fixed sizes: {places}",
            hint="an NPU compiles for fixed shapes and would leave what depends on others to the CPU; "
            "`winml build --compile --dim NAME=N` fixes them",
        )
    if source.precision in info.uncompilable:
        return ModelFileError(
            f"`{name}` is in {source.precision}, which `{info.name}` cannot compile",
            hint="convert its weights to fp16 or fp32, or quantize it",
        )
    return None
