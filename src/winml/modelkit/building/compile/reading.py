"""Worker operations that read model files: the source before, the compiled model after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from winml.modelkit.building.compile.base import file_state
from winml.modelkit.building.compile.result import (
    ContextBinary,
    ContextFacts,
    ContextFile,
    ReadContext,
    SourceFacts,
)
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.graph import files
from winml.modelkit.graph.context import context_facts
from winml.modelkit.graph.facts import facts
from winml.modelkit.graph.precision import precision_of
from winml.modelkit.store import digest

SOURCE_NAME = "model.onnx"
"""What a source is called in its digest: renaming a model file does not make it another model."""


def source(args: dict[str, Any], context: object) -> SourceFacts:
    """What decides whether a model can be compiled, and its digest."""
    path = Path(args["model"])
    model = files.load(path, weights=False)
    known = facts(model)
    names = {SOURCE_NAME: path, **{f.relative_to(path.parent).as_posix(): f for f in files.external_files(path, model)}}
    states = {str(file): file_state(file) for file in names.values()}
    inputs = {value.name for value in known.inputs}
    places = {
        symbol: tuple(p for p in found if p.rpartition("[")[0] in inputs)
        for symbol, found in known.dynamic_axes.items()
    }
    return SourceFacts(
        digest=digest.of_files({name: digest.of_file(file) for name, file in names.items()}),
        states=states,
        compiled_for=known.compiled_for,
        symbolic={symbol: found for symbol, found in places.items() if found},
        precision=precision_of(model),
        inputs=known.inputs,
        outputs=known.outputs,
    )


def read_compiled(args: dict[str, Any], context: object) -> ReadContext:
    """What a compiled model is made of, read from its files."""
    path = Path(args["model"])
    model = files.load(path, weights=False)
    known, found = facts(model), context_facts(path, model)
    binaries = tuple(
        ContextBinary(
            file=name,
            bytes=(path.parent / name).stat().st_size,
            digest=digest.of_file(path.parent / name),
            nodes=nodes,
        )
        for name, nodes in found.binaries.items()
        if name not in found.missing
    )
    return ReadContext(
        facts=ContextFacts(
            file=ContextFile(file=path.name, bytes=path.stat().st_size, digest=digest.of_file(path)),
            ep_context_nodes=found.nodes,
            binaries=binaries,
            embedded_bytes=found.embedded_bytes,
            cpu_ops=found.other_ops,
            compatibility=found.compatibility,
            inputs=known.inputs,
            outputs=known.outputs,
        ),
        missing=tuple(found.missing),
    )


def users(args: dict[str, Any], context: object) -> dict[str, list[str]]:
    """Which models of a folder name which of the given binaries; a file that is not a model uses none."""
    found: dict[str, list[str]] = {}
    for path in sorted(Path(args["folder"]).glob("*.onnx")):
        try:
            named = context_facts(path).binaries
        except ModelkitError:
            continue  # whatever it is, it cannot be opened
        for binary in sorted(named.keys() & set(args["binaries"])):
            found.setdefault(binary, []).append(path.name)
    return found
