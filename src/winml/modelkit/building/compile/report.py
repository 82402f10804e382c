"""Describes compiled models. Pure functions over what was read from their files."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.building.compile.result import (
    CompileCost,
    Compiled,
    ContextFacts,
    ReadContext,
    SharedBinary,
    Sharing,
    SourceFacts,
)
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import RunFailedError


def describe_model(
    name: str, source: SourceFacts, found: ReadContext, cost: CompileCost, section: CompileSection
) -> Compiled:
    """One model: what its files hold, what compiling it took, and what is unusual about it.

    A model that names a binary which is not there is no result.
    """
    if found.missing:
        lacking = ", ".join(f"`{file}`" for file in found.missing)
        raise RunFailedError(f"compiling `{name}` wrote no {lacking}, which the model names")
    return Compiled(
        facts=found.facts, cost=cost, precision=source.precision, warnings=_warnings(source, found.facts, section)
    )


def _warnings(source: SourceFacts, found: ContextFacts, section: CompileSection) -> tuple[str, ...]:
    warnings = []
    if not section.embed and not found.binaries:
        warnings.append("no binary was written beside the model: the execution provider put it into the ONNX file")
    for kind, now, before in (("inputs", found.inputs, source.inputs), ("outputs", found.outputs, source.outputs)):
        if now != before:
            listed = ", ".join(f"{v.name} {v.dtype}{None if v.shape is None else list(v.shape)}" for v in now)
            warnings.append(f"the {kind} differ from those of the source: {listed}")
    return tuple(warnings)


def compare_sizes(together: Sequence[Compiled], alone: Sequence[Compiled]) -> Sharing:
    """Which models refer to which binary, and how many bytes that saves, from the files of both ways to compile."""
    sizes = {b.file: b.bytes for made in together for b in made.facts.binaries}
    users = {
        name: tuple(m.facts.file.file for m in together if any(b.file == name for b in m.facts.binaries))
        for name in sizes
    }
    shared_bytes, alone_bytes = sum(sizes.values()), sum(made.facts.binary_bytes for made in alone)
    peaks = [made.cost.peak_bytes for made in together if made.cost.peak_bytes is not None]
    return Sharing(
        shared=any(len(models) == len(together) for models in users.values()),
        binaries=tuple(SharedBinary(file=name, bytes=sizes[name], models=users[name]) for name in sorted(sizes)),
        bytes=shared_bytes,
        bytes_alone=alone_bytes,
        saved_pct=100.0 * (1.0 - shared_bytes / alone_bytes) if alone_bytes else 0.0,
        seconds=sum(made.cost.seconds for made in together),
        peak_bytes=max(peaks, default=None),
    )
