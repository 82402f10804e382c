"""The text of `winml build` and `winml config`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.building.proof.proof import Proof
    from winml.modelkit.building.result import BuildPartsResult, BuildResult, BuildStage, ConfigResult
    from winml.modelkit.core.config import QuantizeSection
    from winml.modelkit.store.stage_cache import Change


def _stage(run: BuildStage, *, explain: bool) -> tuple[str, ...]:
    took = "from the cache" if run.cache == "hit" else f"{run.seconds:.1f} s"
    row = (run.stage, took, run.file, run.digest[:19])
    return (*row, run.reason) if explain else row


def _change(change: Change) -> str:
    before, now = change.before, change.now
    if isinstance(before, list) and isinstance(now, list):
        more = [f"+{name}" for name in now if name not in before]
        less = [f"-{name}" for name in before if name not in now]
        return f"{change.part} {' '.join([*more, *less]) or 'is in a different order'}"
    return f"{change.part} was {_value(before)}, is {_value(now)}"


def _value(value: object) -> str:
    return value[:19] if isinstance(value, str) and value.startswith("sha256:") else repr(value)


def build_text(result: BuildResult, *, explain: bool = False) -> str:
    """What was built, stage by stage, and where it is."""
    simulated = " (simulated)" if result.target.simulated else ""
    lines = [f"{Path(result.model).name} for {result.target}{simulated}, precision {result.precision}"]
    if result.stages:
        rows = [_stage(run, explain=explain) for run in result.stages]
        names = ("stage", "took", "file", "digest", "reason")[: len(rows[0])]
        below = 4 if explain else None
        lines.append(table(rows, indent="  ", right=frozenset({1}), names=names, drop=(3,), below=below))
    else:
        lines.append("  no stage ran: the artifact is the model itself")
    if explain:
        lines += [f"  {run.stage}: {_change(change)}" for run in result.stages for change in run.changes]
    if result.analysis is not None:
        found = result.analysis
        lines.append(
            f"  operator types before quantization: {found.supported} supported, {found.partial} partial, "
            f"{found.unsupported} unsupported, {found.unknown} unknown ({found.source})"
        )
    lines.append(f"  {proof_text(result.proof)}")
    artifact = result.artifact
    lines.append(f"{artifact.path}  {size(artifact.bytes)}  {artifact.digest[:19]}")
    if result.files_by == "copy":
        lines.append("the files are copies of those in the cache, not links")
    return "\n".join(lines)


def proof_text(proof: Proof) -> str:
    """Whether the artifact was proven on its target, and how."""
    if proof.status == "not proven":
        return f"{mark(proof.status)}: {proof.reason}"
    text = mark(proof.status)
    if proof.agreement is not None and proof.agreement.cosine is not None:
        found = proof.agreement
        text += f": `{found.output}` has a cosine of {found.cosine:.4f} with the source's (at least {proof.limit:g})"
    if proof.placement is not None:
        nodes = proof.placement.nodes
        text += f", {nodes.get(proof.placement.requested, 0)} of {sum(nodes.values())} nodes on {proof.on}"
    return text if proof.compiled is None else f"{text}; compiled form not proven"


def parts_text(result: BuildPartsResult, *, explain: bool = False) -> str:
    """What was built of a composite model, part by part."""
    blocks = [f"{part.part}: {build_text(part.result, explain=explain)}" for part in result.parts]
    return "\n\n".join([*blocks, f"{len(blocks)} parts in {result.folder}"])


def _words(shown: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in shown.items() if value not in (None, {}, False))


def _quantize_words(section: QuantizeSection) -> str:
    return _words(
        {
            "mode": section.mode,
            "activation_type": section.activation_type,
            "weight_type": section.weight_type,
            "per_channel": section.per_channel,
            "rules": section.rules,
        }
    )


def config_text(result: ConfigResult) -> str:
    """A summary of the sections."""
    config = result.config
    optimize, quantize = config.optimize, config.quantize
    export, compiled = "skipped", "skipped"
    if config.export is not None:
        section = config.export
        export = _words(
            {"task": section.task, "part": section.part, "exporter": section.exporter, "opset": section.opset}
        )
    if config.compile is not None:
        compiler, options = config.compile.compiler, config.compile.provider_options
        compiled = _words({"compiler": compiler, "embed": config.compile.embed, "provider_options": options})
    dims = "" if optimize is None else "".join(f", {name}={size}" for name, size in optimize.fixed_dims.items())
    rows = [
        ("model", config.model or ""),
        ("target", config.target),
        ("precision", config.precision),
        ("export", export),
        ("optimize", "skipped" if optimize is None else f"{len(optimize.passes)} passes{dims}"),
        ("quantize", "skipped" if quantize is None else _quantize_words(quantize)),
        ("compile", compiled),
    ]
    if quantize is not None and quantize.calibration is not None:
        data = quantize.calibration
        rows.append(("calibration", f"{data.source}, {data.limit or 'all'} samples, seed {data.seed}"))
    return table(rows)
