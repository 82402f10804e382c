"""The text of `winml compile`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.build import proof_text
from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.building.compile.result import (
        Comparison,
        CompiledModel,
        CompileResult,
        CompilerList,
        FailedModel,
        Validation,
    )
    from winml.modelkit.graph.description import ValueFacts


def _number(value: float | None, pattern: str, otherwise: str) -> str:
    return otherwise if value is None else pattern.format(value)


def _comparison(word: str, found: Comparison) -> str:
    if found.passed is None:
        return f"{word}: {found.reason or 'nothing to compare'}"
    if found.max_abs == 0:
        return f"{word}: equal"
    return (
        f"{word}: max abs {_number(found.max_abs, '{:.2g}', 'unknown')}, "
        f"cosine {_number(found.cosine, '{:.5f}', 'unknown')}, "
        f"SQNR {_number(found.sqnr_db, '{:.1f} dB', 'unknown')}"
    )


def _validation(validation: Validation) -> str:
    found = validation.comparisons.source
    if validation.status != "passed" or found is None:
        return f"not validated: {validation.reason}"
    return _comparison("same target", found)


def _values(values: tuple[ValueFacts, ...]) -> str:
    shapes = ("?" if v.shape is None else str(list(v.shape)) for v in values)
    return ", ".join(f"{v.name} {v.dtype}{shape}" for v, shape in zip(values, shapes, strict=True))


def _model_rows(row: CompiledModel) -> list[tuple[str, str]]:
    facts, cost = row.compiled.facts, row.compiled.cost
    binaries = [f"{b.file} ({size(b.bytes)}, {b.digest[:19]})" for b in facts.binaries]
    if facts.embedded_bytes:
        binaries.append(f"inside ({size(facts.embedded_bytes)})")
    ops = ", ".join(f"{op} x{n}" for op, n in facts.cpu_ops.items())
    memory = "" if cost.peak_bytes is None else f", peak memory {size(cost.peak_bytes)}"
    lines = [
        ("binary", ", ".join(binaries) or "none"),
        ("nodes", f"{facts.ep_context_nodes} compiled, {row.cpu_nodes} on the CPU{f': {ops}' if ops else ''}"),
        ("took", "from the cache" if row.cached else f"{cost.seconds:.1f} s{memory}"),
        ("inputs", _values(facts.inputs)),
        ("outputs", _values(facts.outputs)),
        ("parity", _validation(row.validation)),
        ("proof", proof_text(row.proof)),
    ]
    if row.alone is not None and row.alone.validation is not None:
        lines.append(("alone", _validation(row.alone.validation)))
    lines += [("runs on", f"{ep.removesuffix('ExecutionProvider')} {text}") for ep, text in facts.compatibility.items()]
    return lines


def _model(row: CompiledModel | FailedModel) -> str:
    if row.status == "failed":
        return f"{row.model} · {mark('failed')}\n{table([('why', row.error.message)], indent='  ')}"
    return f"{row.model} -> {row.output}\n{table(_model_rows(row), indent='  ')}"


def compile_text(result: CompileResult) -> str:
    """Every model with its files, then what sharing saves."""
    simulated = " (simulated)" if result.target.simulated else ""
    given = " ".join(f"{k}={v}" for k, v in result.provider_options.items())
    head = f"{result.target}{simulated} · compiler {result.compiler}" + (f" · {given}" if given else "")
    blocks = [head, *map(_model, result.models)]
    found = result.sharing
    if found is not None:
        lines = [f"{b.file}  {size(b.bytes)}  used by {', '.join(b.models)}" for b in found.binaries]
        total = f"{size(found.bytes)} together, {size(found.bytes_alone)} compiled alone: {found.saved_pct:.1f} % saved"
        blocks.append("\n  ".join(["shared context" if found.shared else "no shared context", *lines, total]))
    return "\n\n".join(blocks)


def compilers_text(result: CompilerList) -> str:
    """One line per compiler: whether it is available, and why not."""
    rows = [("compiler", "status", "uses", "")]
    for row in result.compilers:
        ready = mark("ready", "ready, default" if row.default else "ready")
        status = ready if row.available else mark("not available")
        why = "; ".join(w for w in (row.reason, row.hint) if w)
        rows.append((row.compiler, status, row.summary, why))
    return table(rows, head=True, below=3)
