"""`winml perf` of a composite model: every part by itself, one after another."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from winml.modelkit.core.build_folder import MODEL, PARTS, kind_of_parts
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError, RequestError
from winml.modelkit.core.events import Event, OnEvent
from winml.modelkit.core.generation import is_decoder_folder
from winml.modelkit.core.model_file import part_names
from winml.modelkit.core.plain_text import shell_word
from winml.modelkit.core.result import CommandResult
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import key
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import match_sizes
from winml.modelkit.measuring.generation import GenerationPerf, perf_generation
from winml.modelkit.measuring.perf import GenerationSettings, PerfRequest, PerfResult, perf
from winml.modelkit.measuring.processes import Processes
from winml.modelkit.measuring.sessions import PartialPerf


@dataclass(frozen=True, kw_only=True)
class PartPerf:
    """A part of a composite model."""

    part: str
    result: PerfResult = key(inline=True)


@dataclass(frozen=True, kw_only=True, repr=False)
class PerfParts(CommandResult):
    """Every part of a composite model by itself."""

    schema: Literal["winml/perf-parts/1"] = "winml/perf-parts/1"
    ok: Literal[True] = True
    model: str
    target: Target = key(inline=True)
    parts: tuple[PartPerf, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PartialPerfParts:
    """What was measured before a part failed."""

    parts: tuple[PartPerf, ...]
    part: str
    result: PartialPerf | PerfResult | None = key(inline=True)

    @property
    def has_samples(self) -> bool:
        return not isinstance(self.result, PartialPerf) or self.result.has_samples


@dataclass(frozen=True)
class PartStarted(Event):
    part: str


def perf_model(
    request: PerfRequest, on_event: OnEvent, processes: Processes | None = None
) -> PerfResult | PerfParts | GenerationPerf:
    """Measure a model: of a decoder folder the texts it generates, of a composite one every part.

    Parts that generate text together are measured so where the request says something about texts.
    """
    folder = Path(request.model)
    if is_decoder_folder(folder):
        return perf_generation(request, on_event, processes)
    if not (folder / PARTS).is_file():
        return perf(request, on_event, processes)
    traced = request.op_tracing is not None and kind_of_parts(part_names(folder)) == "decoder"
    if request.generation != GenerationSettings() or traced:
        return perf_generation(request, on_event, processes)
    return _measure_parts(request, folder, on_event, processes)


def _measure_parts(request: PerfRequest, folder: Path, on_event: OnEvent, processes: Processes | None) -> PerfParts:
    request.check()
    parts = part_names(folder)
    if not parts:
        raise RequestError(f"`{folder / PARTS}` lists no parts", hint="build the model again")
    if request.op_tracing is not None or request.inputs.npz is not None:
        raise RequestError(
            "a trace or inputs from a file need a single part",
            hint=f"name one: `winml perf -m {shell_word(str(folder / parts[-1]))}`",
        )
    dims = _dims_by_part(folder, parts, request.inputs.dims)
    measured: list[PartPerf] = []
    for part in parts:
        inputs = replace(request.inputs, dims=dims[part])
        on_event(PartStarted(part))
        try:
            result = perf(replace(request, model=str(folder / part), inputs=inputs), on_event, processes)
        except ModelkitError as error:
            so_far = error.result if isinstance(error.result, PartialPerf | PerfResult) else None
            raise type(error)(
                f"part `{part}`: {error.message}",
                hint=error.hint,
                details=error.details,
                result=PartialPerfParts(parts=tuple(measured), part=part, result=so_far),
            ) from error
        measured.append(PartPerf(part=part, result=result))
    warnings = dict.fromkeys(f"{one.part}: {word}" for one in measured for word in one.result.warnings)
    return PerfParts(
        model=request.model, target=measured[0].result.target, parts=tuple(measured), warnings=tuple(warnings)
    )


def _dims_by_part(folder: Path, parts: list[str], dims: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The sizes that the user gave, for the parts that have a place for them; one that no part has is rejected."""
    found: dict[str, dict[str, int]] = {part: {} for part in parts}
    for word, size in dims.items():
        for part in parts:
            with contextlib.suppress(RequestError):
                match_sizes(read_signature(folder / part / MODEL).inputs, {word: size})
                found[part][word] = size
        if all(word not in sizes for sizes in found.values()):
            raise RequestError(f"no part of the model has a symbolic dimension `{word}`")
    return found
