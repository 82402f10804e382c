"""The reports of `winml build` and of a build folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from winml.modelkit.render.figures.bars import Bar, bar_figure
from winml.modelkit.render.figures.dots import DotRow, dot_figure
from winml.modelkit.render.figures.shares import Share, share_figure
from winml.modelkit.render.pages.common import cosine_cover, model_name, notices, placement_blocks
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Group, Page, Table, slug, table
from winml.modelkit.render.units import counted, size

if TYPE_CHECKING:
    from winml.modelkit.building.manifest import BuildManifest, StageRecord
    from winml.modelkit.building.proof.proof import Proof
    from winml.modelkit.building.result import BuildPartsResult, BuildResult, BuildStage, Fallback

_SHORT_DIGEST = 19
_MOST_OUTPUTS = 30
_NOTABLE_S = 0.05


def build_page(result: BuildResult) -> Page:
    """What was built, whether it is proven, and what that took."""
    title = f"{model_name(result.model)} for {result.target}, {result.precision}"
    return Page("build", title, _answer(result), build_blocks(result), result.proof.status)


def build_blocks(result: BuildResult) -> tuple[Block, ...]:
    """Pictures and facts of one build."""
    return (
        *notices([*_fallbacks(result.fallbacks), *result.warnings]),
        *_agreement(result.proof),
        *_placement(result.proof),
        *_times(result.stages, result.proof, result.seconds),
        *_analysis(result),
        *notices(result.notes, "note"),
        _stage_table(result.stages, [(one.file, one.digest, "") for one in result.stages]),
        _facts(result),
    )


def parts_page(result: BuildPartsResult) -> Page:
    """The parts of a composite model."""
    bars = [
        Bar(one.part, f"{one.part}: {size(one.result.artifact.bytes)}, {one.result.proof.status}",
            one.result.artifact.bytes, (size(one.result.artifact.bytes),), one.result.proof.status)
        for one in result.parts
    ]  # fmt: skip
    statuses = [one.result.proof.status for one in result.parts]
    proven = sum(status == "proven on target" for status in statuses)
    whole = sum(one.result.artifact.bytes for one in result.parts)
    sentence = f"{counted(len(bars), 'part')} of {size(whole)} together; {proven} of them proven on {result.target}."
    first = Figure("parts", "Parts", sentence, lambda width: bar_figure(bars, sentence, width))
    groups = tuple(Group(one.part, _named(one.part, build_blocks(one.result))) for one in result.parts)
    title = f"{model_name(result.model)} for {result.target}, {result.precision}"
    blocks = (*notices(result.warnings), first, *groups, *notices(result.notes, "note"))
    return Page(
        "build", title, f"{counted(len(bars), 'part')} in {result.folder}; {sentence}", blocks, _worst(statuses)
    )


def _worst(statuses: Sequence[str]) -> str | None:
    for status in ("not proven", "proven on cpu only (target not here)", "proven on target"):
        if status in statuses:
            return status
    return None


def _named(part: str, blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Blocks whose pictures have names of their own."""
    return tuple(replace(one, name=f"{slug(part)}-{one.name}") if isinstance(one, Figure) else one for one in blocks)


def manifest_page(manifest: BuildManifest) -> Page:
    """What is in a build folder and how it was made."""
    title = f"{model_name(manifest.source.path)} for {manifest.target}, {manifest.precision}"
    proof = manifest.proof
    blocks = (
        *notices([*_fallbacks(manifest.fallbacks), *manifest.warnings]),
        *(() if proof is None else (*_agreement(proof), *_placement(proof))),
        *_times(manifest.stages, proof, manifest.seconds),
        *_sizes(manifest.stages),
        _stage_table(
            manifest.stages, [(one.artifact.main, one.artifact.digest, _libraries(one)) for one in manifest.stages]
        ),
        _manifest_facts(manifest),
    )
    status = "Nothing is known of a proof" if proof is None else _proof_words(proof)
    said = f"{manifest.artifact.file} of {model_name(manifest.source.path)}: {status}."
    return Page("build", title, said, blocks, None if proof is None else proof.status)


def _answer(result: BuildResult) -> str:
    artifact = result.artifact
    return f"{model_name(artifact.path)} ({size(artifact.bytes)}): {_proof_words(result.proof)}."


def _proof_words(proof: Proof) -> str:
    if proof.status == "not proven":
        return f"not proven ({proof.reason or 'no reason is known'})"
    words: str = proof.status
    known = proof.agreement
    if known is not None and known.cosine is not None:
        least = "" if proof.limit is None else f" (at least {proof.limit:g})"
        words += f"; {known.output} has a cosine of {known.cosine:.6f} to the source's{least}"
    if proof.compiled is not None:
        words += f"; the compiled form is not proven ({proof.compiled})"
    return words


def _fallbacks(fallbacks: Sequence[Fallback]) -> list[str]:
    return [f"precision {one.precision} was given up for {one.then}: {one.reason}" for one in fallbacks]


def _agreement(proof: Proof) -> tuple[Block, ...]:
    """How near the outputs of the artifact are to the source's."""
    if not proof.outputs:
        return ()
    title, values = "Agreement with the source", _output_table(proof)
    on = f" on {proof.on}" if proof.on else ""
    about = counted(proof.samples, "sample") + (f" of {model_name(proof.data)}" if proof.data else "")
    known = sorted(((one.name, one.cosine) for one in proof.outputs if one.cosine is not None), key=lambda one: one[1])
    if all(one.equal for one in proof.outputs):
        return (replace(values, title=title, note=f"All outputs{on} equal the source's, over {about}."),)
    if not known:
        return (replace(values, title=title, note=f"No cosine is known; {about}."),)
    sentence = f"{known[0][0]}{on} has a cosine of {known[0][1]:.6f} to the source's, over {about}."
    if len(known) > _MOST_OUTPUTS:
        sentence += f" The {_MOST_OUTPUTS} of {len(known)} outputs that agree least are drawn."
    dots, limit = [_cosine_row(*one, proof.limit) for one in known[:_MOST_OUTPUTS]], proof.limit
    line = None if limit is None else (limit, f"at least {limit:g}")
    cover, axis = cosine_cover([row.value for row in dots]), "cosine to the source's output"
    return (
        Figure("agreement", title, sentence,
               lambda width: dot_figure(dots, axis, sentence, width, line=line, log=False, cover=cover), values),
    )  # fmt: skip


def _cosine_row(output: str, cosine: float, limit: float | None) -> DotRow:
    role, sign = ("main", "") if limit is None else ("good", " ✓") if cosine >= limit else ("bad", " ✗")
    return DotRow(output, f"{output}: cosine {cosine:.6f}", cosine, f"{cosine:.6f}{sign}", None, (), role)


def _output_table(proof: Proof) -> Table:
    rows = [
        (
            one.name,
            "equal" if one.equal else "unknown" if one.cosine is None else Cell(f"{one.cosine:.6f}", sort=one.cosine),
            "" if one.scale is None else Cell(f"{one.scale:.4f}", sort=one.scale),
            "" if one.max_abs is None else Cell(f"{one.max_abs:.4g}", sort=one.max_abs),
            "" if one.sqnr_db is None else Cell(f"{one.sqnr_db:.1f}", sort=one.sqnr_db),
            "" if one.same_shape and one.finite and one.signal else _odd(one.same_shape, one.finite),
        )
        for one in proof.outputs
    ]
    head = ("output", "cosine", "times as large", "largest difference", "SQNR dB", "remark")
    return table("Outputs", head, rows, numeric=(1, 2, 3, 4))


def _odd(same_shape: bool, finite: bool) -> str:
    if not same_shape:
        return "another shape"
    return "no signal" if finite else "not finite"


def _placement(proof: Proof) -> tuple[Block, ...]:
    return () if proof.placement is None else placement_blocks(proof.placement)


def _times(stages: Sequence[BuildStage | StageRecord], proof: Proof | None, seconds: float) -> tuple[Block, ...]:
    """Stages by time; what came from the cache is an outline of what it took when it was made."""
    bars = [_stage_bar(one) for one in stages]
    spent = sum(one.seconds for one in stages if one.cache == "miss")
    if proof is not None and proof.seconds and proof.cache is not None:
        hit = proof.cache == "hit"
        text = "from the cache" if hit else f"{proof.seconds:.1f} s"
        said = f"proof: {proof.seconds:.2f} s{', taken from the cache' if hit else ''}, {proof.status}"
        bars.append(Bar("proof", said, proof.seconds, (text,), proof.status, faint=hit))
        spent += 0.0 if hit else proof.seconds
    if not bars:
        return ()
    slowest = max((one for one in bars if not one.faint), key=lambda one: one.value or 0.0, default=None)
    cached = sum(one.faint for one in bars)
    rest = seconds - spent
    if rest > _NOTABLE_S:
        said = f"besides stages and proof: {rest:.2f} s"
        bars.append(Bar("the rest", said, rest, (f"{rest:.1f} s",), "besides stages and proof", "plain"))
    sentence = f"The build took {seconds:.1f} s"
    if slowest is not None:
        sentence += f"; {slowest.label} took longest ({slowest.texts[0]})"
    if cached:
        sentence += f"; {counted(cached, 'step')} came from the cache: outlines are what that took when it was made"
    sentence += "."
    return (Figure("stages", "What took the time", sentence, lambda width: bar_figure(bars, sentence, width)),)


def _stage_bar(stage: BuildStage | StageRecord) -> Bar:
    hit = stage.cache == "hit"
    said = f"{stage.stage}: {stage.seconds:.2f} s{', taken from the cache' if hit else ''} ({stage.reason})"
    text = "from the cache" if hit else f"{stage.seconds:.1f} s"
    return Bar(stage.stage, said, stage.seconds, (text,), stage.reason, "plain" if hit else "main", faint=hit)


def _stage_table(stages: Sequence[BuildStage | StageRecord], made: Sequence[tuple[str, str, str]]) -> Block:
    """`made` is file, digest and libraries of every stage; only the record in a folder has the libraries."""
    if not stages:
        return Facts("Stages", (("stages", "none ran: the artifact is the model itself"),))
    rows = []
    for one, (file, digest, libraries) in zip(stages, made, strict=True):
        how = "from the cache" if one.cache == "hit" else "ran"
        seconds = Cell(f"{one.seconds:.2f}", sort=one.seconds)
        rows.append((one.stage, how, seconds, file, digest[:_SHORT_DIGEST], libraries, one.reason))
    head = ("stage", "how", "seconds", "file", "digest", "libraries", "why")
    hits = sum(one.cache == "hit" for one in stages)
    folded = f"{counted(len(stages), 'stage')}, {hits} from the cache"
    return table("Stages", head, rows, numeric=(2,), folded=folded)


def _libraries(stage: StageRecord) -> str:
    return ", ".join(f"{name} {version}" for name, version in stage.libraries.items())


def _sizes(stages: Sequence[StageRecord]) -> tuple[Block, ...]:
    """What the model had after each stage, as far as their reports say so."""
    known: list[tuple[str, int]] = []
    for one in stages:
        before, after = report_sizes(one.report)
        if before is not None and not known:
            known.append(("before", before))
        if after is not None:
            known.append((f"after {one.stage}", after))
    if len(known) < 2:
        return ()
    bars = [Bar(name, f"{name}: {count:,} bytes", count, (size(count),)) for name, count in known]
    first, last = known[0], known[-1]
    sentence = f"From {size(first[1])} {first[0]} to {size(last[1])} {last[0]}"
    sentence += f" ({last[1] / first[1]:.2f} times)." if first[1] else "."
    return (Figure("sizes", "Size of the model", sentence, lambda width: bar_figure(bars, sentence, width)),)


def report_sizes(report: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Bytes before and after a stage by its report; null where it does not say."""
    found = report.get("size")
    if isinstance(found, Mapping):
        before, after = found.get("before_bytes"), found.get("after_bytes")
        return before if isinstance(before, int) else None, after if isinstance(after, int) else None
    files = report.get("files")
    if not isinstance(files, list | tuple):
        return None, None
    sizes = [one.get("bytes") if isinstance(one, Mapping) else None for one in files]
    known = [one for one in sizes if isinstance(one, int)]
    return None, sum(known) if known and len(known) == len(sizes) else None


def _analysis(result: BuildResult) -> tuple[Block, ...]:
    """Operator types by what the target does with them; folded where it takes them all."""
    found = result.analysis
    if found is None:
        return ()
    counts = (
        ("supported", found.supported, "good", "✓"),
        ("partial", found.partial, "open", "~"),
        ("unsupported", found.unsupported, "bad", "✗"),
        ("unknown", found.unknown, "plain", "?"),
    )
    whole = sum(count for _, count, _, _ in counts)
    if not whole:
        return ()
    how = "the target was asked" if found.source == "asked" else f"by {found.source}"
    if found.supported == whole:
        said = f"{result.target} takes all {whole} operator types before quantization ({how})"
        return (Facts("Operators", (("supported", f"{whole} of {whole} types"), ("known by", how)), said),)
    shares = [Share(name, f"{name}: {counted(count, 'type')} of {whole}", count, f"{count}", role, glyph)
              for name, count, role, glyph in counts if count]  # fmt: skip
    sentence = f"{result.target} takes {found.supported} of {whole} operator types before quantization ({how})."
    return (Figure("operators", "Operator types", sentence, lambda width: share_figure(shares, sentence, width)),)


def _facts(result: BuildResult) -> Facts:
    artifact, proof = result.artifact, result.proof
    pairs = [
        ("model", result.model),
        ("target", f"{result.target}{' (simulated)' if result.target.simulated else ''}"),
        ("precision", result.precision),
        ("artifact", artifact.path),
        ("size", f"{size(artifact.bytes)} ({artifact.bytes:,} bytes)"),
        ("digest", artifact.digest),
        ("files", "links to the cache" if result.files_by == "link" else "copies of those in the cache"),
        *_proof_pairs(proof),
        ("took", f"{result.seconds:.1f} s"),
    ]
    return Facts("Build", tuple(pairs))


def _proof_pairs(proof: Proof) -> list[tuple[str, str]]:
    pairs = [("proof", _proof_words(proof))]
    if proof.data is not None:
        pairs.append(("proven with", f"{counted(proof.samples, 'sample')} of {proof.data}"))
    if proof.weights_at_risk:
        pairs.append(("8-bit weights that saturate here", f"{proof.weights_at_risk:,}"))
    return pairs


def _memory_pairs(stages: Sequence[StageRecord]) -> list[tuple[str, str]]:
    """The most memory that stages had resident, as far as their reports say so."""
    known = {one.stage: one.report.get("peak_memory_bytes") for one in stages}
    return [(f"memory of {stage}, at most", size(peak)) for stage, peak in known.items() if type(peak) is int]


def _manifest_facts(manifest: BuildManifest) -> Facts:
    pairs = [
        ("source", manifest.source.path),
        ("target", f"{manifest.target}{' (simulated)' if manifest.target.simulated else ''}"),
        ("precision", manifest.precision),
        ("artifact", manifest.artifact.file),
        ("digest", manifest.artifact.digest),
        ("identity of the build", manifest.identity),
        ("skipped stages", ", ".join(manifest.skipped) or "none"),
        ("files", f"{', '.join(manifest.folder)} ({'links' if manifest.files_by == 'link' else 'copies'})"),
        *([] if manifest.proof is None else _proof_pairs(manifest.proof)),
        ("made by", f"winml {manifest.winml}"),
        ("took", f"{manifest.seconds:.1f} s"),
        *_memory_pairs(manifest.stages),
    ]
    if manifest.calibration is not None:
        pairs.insert(6, ("calibration", str(manifest.calibration.source)))
    return Facts("Build", tuple(pairs))
