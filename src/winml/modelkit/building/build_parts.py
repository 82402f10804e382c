"""`winml build` and `winml export` of composite models: every part in a build folder of its own, and a manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from winml.modelkit.building import config as configs
from winml.modelkit.building import exported
from winml.modelkit.building.build import Attempt, BuildRequest, Ready, build, deliver, make_ready, with_fallbacks
from winml.modelkit.building.config import PRELOAD, ConfigRequest
from winml.modelkit.building.events import PartStarted
from winml.modelkit.building.export import resolve
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.warm import warm_exports
from winml.modelkit.building.pipeline import folder as folders
from winml.modelkit.building.proof.links import find_linked_inputs
from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.building.proof.prove import prove_parts
from winml.modelkit.building.result import BuildPartsResult, BuildResult, BuiltPart
from winml.modelkit.core import model_ref
from winml.modelkit.core.build_folder import CONFIG, PARTS, PartEntry, PartsFile
from winml.modelkit.core.config import RANDOM, OptimizeSection
from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.events import OnEvent, ignore
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import precision
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import metadata_ranges, metadata_sizes
from winml.modelkit.worker.client import Worker


def build_model(request: BuildRequest, on_event: OnEvent) -> BuildResult | BuildPartsResult:
    """Build a model; a composite one part by part."""
    request, own = _split_precision(request)
    parts = parts_of(request, on_event)
    _check_precisions(request, own, parts)
    if parts == (WHOLE,):
        return build(request, on_event)
    if parts == (DECODER,):
        return build(replace(of_part(request, DECODER), or_whole=True), on_event)
    with warm_exports():
        return _build_parts(request, parts, own, on_event)


def _split_precision(request: BuildRequest) -> tuple[BuildRequest, dict[str, str]]:
    """The request with the precision of the model alone, and the precisions of single parts."""
    config = request.config
    if not isinstance(config, ConfigRequest) or "=" not in config.precision:
        return request, {}
    base, own = precision.split_parts(config.precision)
    return replace(request, config=replace(config, precision=base)), own


def _check_precisions(request: BuildRequest, own: Mapping[str, str], parts: tuple[str, ...]) -> None:
    """Refuse precisions of parts that the model has not, and those with which its parts do not fit together."""
    for part in own:
        if parts in ((WHOLE,), (DECODER,)):
            raise RequestError(f"precision `{part}={own[part]}` is for a part, and this model is built as one graph")
        if part not in parts:
            raise RequestError(
                f"precision `{part}={own[part]}` is for a part that the model does not have: it has {', '.join(parts)}",
                hint=did_you_mean(part, parts),
            )
    if own and request.fallback_precision:
        raise RequestError("`--fallback-precision` has one precision for all parts; leave out those of single parts")
    if own and "encoder" not in parts:
        assert isinstance(request.config, ConfigRequest)
        others = precision.parse_precision(request.config.precision)
        halves = {own.get(part, others) == "fp16" for part in parts}
        if len(halves) > 1:
            raise RequestError(
                f"{' and '.join(parts)} hand a cache to one another, which is float16 with `fp16` alone",
                hint="give all of them fp16, or none",
            )


def _at_own_precision(request: BuildRequest, own: Mapping[str, str], part: str) -> BuildRequest:
    config = request.config
    if part not in own or not isinstance(config, ConfigRequest):
        return request
    return replace(request, config=replace(config, precision=own[part]))


def parts_of(request: BuildRequest, on_event: OnEvent = ignore) -> tuple[str, ...]:
    """The parts that a request asks for; a config is for one."""
    if not isinstance(request.config, ConfigRequest):
        return (WHOLE,)
    ref = model_ref.parse(request.config.model)
    if not ref.is_exported or request.config.export.part is not None:
        return (WHOLE,)
    chosen = request.config.export
    located = exported.locate(ref, weights=False, code=chosen.trust_remote_code, on_event=on_event)
    derived = exported.find_derivation(located, chosen, on_event=on_event, timeout_s=request.timeout_s)
    parts = resolve.parts_of(located.folder, chosen, derived)
    return (DECODER,) if configs.is_one_decoder(request.config, located.folder, derived) else parts


def of_part(request: BuildRequest, part: str) -> BuildRequest:
    """The request for one part of its model."""
    assert isinstance(request.config, ConfigRequest)
    return replace(request, config=replace(request.config, export=replace(request.config.export, part=part)))


def _build_parts(
    request: BuildRequest, parts: tuple[str, ...], own: Mapping[str, str], on_event: OnEvent
) -> BuildPartsResult:
    """Build every part, prove them together, and only then write anything."""
    if request.output is None:
        raise RequestError("a composite model has several artifacts", hint="name a folder for them with `-o DIR`")
    folder = folders.place(request.output)
    _check(folder, parts, overwrite=request.overwrite)
    axes = _find_axes(request, parts, on_event)

    def run(attempt: Attempt) -> BuildPartsResult:
        with Worker(preload=PRELOAD) as worker:
            ready: dict[str, Ready] = {}
            ranges: dict[str, tuple[float, float]] = {}
            for number, part in enumerate(parts, 1):
                on_event(PartStarted(part, number, len(parts)))
                request_of_part = _at_own_precision(attempt.request, own, part)
                asked = _with_dims(_in_ranges(request_of_part, ranges), part, axes)
                ready[part] = _make_ready(asked, part, folder, on_event, worker)
                measured = _measure_ranges(part, ready[part], worker)
                if _takes(ready[part], set(measured) - set(ranges)):  # its own cache, whose range is known only now
                    asked = _with_dims(_in_ranges(request_of_part, ranges | measured), part, axes)
                    ready[part] = _make_ready(asked, part, folder, on_event, worker)
                ranges |= measured
            attempt.plan = ready[parts[0]].plan
            proofs = _proofs(ready, worker)
        built = {part: deliver(one, proofs[part], attempt) for part, one in ready.items()}
        return _result(folder, built)

    try:
        return with_fallbacks(request, on_event, run)
    finally:
        with contextlib.suppress(OSError):  # it holds what was built
            folder.rmdir()


def _find_axes(request: BuildRequest, parts: tuple[str, ...], on_event: OnEvent) -> dict[str, set[str]]:
    """The open axes of every part, where sizes were given: a size is for the parts that have the axis."""
    config = request.config
    if not isinstance(config, ConfigRequest) or not config.dims:
        return {}
    ref, chosen = model_ref.parse(config.model), config.export
    located = exported.locate(ref, weights=False, code=chosen.trust_remote_code, on_event=on_event)
    derived = exported.find_derivation(located, chosen, on_event=on_event, timeout_s=request.timeout_s)
    return {part: set(resolve.resolve(located.folder, chosen, part, derived).sizes) for part in parts}


def _with_dims(request: BuildRequest, part: str, axes: Mapping[str, set[str]]) -> BuildRequest:
    """The request with the sizes that are meant for a part; one that no part has stays, and is an error there."""
    config = request.config
    if not axes or not isinstance(config, ConfigRequest):
        return request
    others = set().union(*axes.values()) - axes[part]
    dims = {name: size for name, size in config.dims.items() if name not in others}
    return replace(request, config=replace(config, dims=dims))


def _make_ready(request: BuildRequest, part: str, folder: Path, on_event: OnEvent, worker: Worker) -> Ready:
    try:
        folder.mkdir(exist_ok=True)
        return make_ready(replace(of_part(request, part), output=str(folder / part)), on_event, worker)
    except RunFailedError as error:
        raise type(error)(
            f"part `{part}`: {error.message}", hint=error.hint, details=error.details, result=error.result
        ) from error


def _measure_ranges(part: str, ready: Ready, worker: Worker) -> dict[str, tuple[float, float]]:
    """The ranges of what a part passes to later ones: their synthetic inputs must have such values.

    A cache of numbers from -1 to 1 would be cut off there once the next part is quantized for it.
    """
    section = ready.plan.config.quantize
    if section is None or section.calibration is None or section.calibration.source != RANDOM:
        return {}
    subject = ready.subject
    args = {
        "source": str(subject.reference),
        "data": to_json(subject.data),
        "model_folder": str(subject.model_folder),
    }
    what = f"running part `{part}`"
    found = worker.ask(dict[str, tuple[float, float]], "evaluate.ranges", args, timeout_s=subject.seconds, what=what)
    return {name: found[output] for output, name in find_linked_inputs(part, found).items()}


def _takes(ready: Ready, names: set[str]) -> bool:
    """Whether a part has an input of one of these names."""
    return any(entry.name in names for entry in read_signature(ready.subject.reference).inputs)


def _in_ranges(request: BuildRequest, ranges: dict[str, tuple[float, float]]) -> BuildRequest:
    config = request.config
    if not isinstance(config, ConfigRequest) or config.data is None or not ranges:
        return request
    return replace(request, config=replace(config, data=replace(config.data, ranges=ranges)))


def _proofs(ready: Mapping[str, Ready], worker: Worker) -> dict[str, Proof]:
    first = next(iter(ready.values()))
    if first.given_proof is not None:
        return dict.fromkeys(ready, first.given_proof)
    with first.blaming():
        return prove_parts({part: (one.subject, one.place(worker)) for part, one in ready.items()})


def _result(folder: Path, built: Mapping[str, BuildResult]) -> BuildPartsResult:
    """Write the list of parts, for programs that run them together, and return the result."""
    first = next(iter(built.values()))
    parts = {part: _part_entry(part, Path(result.artifact.path), result) for part, result in built.items()}
    folders.write_json(folder / PARTS, PartsFile(model=first.model, target=str(first.target), parts=parts))
    return BuildPartsResult(
        model=first.model,
        target=first.target,
        precision=_name_precisions(built),
        folder=str(folder),
        parts=tuple(BuiltPart(part=part, result=result) for part, result in built.items()),
        notes=_lines({part: result.notes for part, result in built.items()}),
        warnings=_lines({part: result.warnings for part, result in built.items()}),
    )


def _name_precisions(built: Mapping[str, BuildResult]) -> str:
    """One precision where all parts have it, else that of every part."""
    found = {part: result.precision for part, result in built.items()}
    alone = set(found.values())
    return alone.pop() if len(alone) == 1 else ",".join(f"{part}={name}" for part, name in found.items())


def _part_entry(part: str, model: Path, result: BuildResult) -> PartEntry:
    """A part with the sizes of open dimensions that it is used with, those that are written into it among them."""
    metadata = read_signature(model).metadata
    fixed = (configs.load(str(model.parent / CONFIG)).optimize or OptimizeSection()).fixed_dims
    return PartEntry(
        folder=part,
        file=model.name,
        digest=result.artifact.digest,
        sizes={**metadata_sizes(metadata), **fixed},
        ranges=metadata_ranges(metadata),
    )


def _check(folder: Path, parts: tuple[str, ...], *, overwrite: bool) -> None:
    """Refuse a folder that holds anything but an earlier build of the same parts."""
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"output `{folder}` is a file", hint="name a folder")
    if not folder.exists():
        if not folder.parent.is_dir():
            raise RequestError(f"output folder's parent not found: `{folder.parent}`", hint=near_path(folder.parent))
        return
    foreign = sorted(path.name for path in folder.iterdir() if path.name not in (*parts, PARTS))
    if foreign:
        raise RequestError(
            f"output folder `{folder}` holds files that do not belong to a build: `{foreign[0]}`",
            hint="name a new folder",
        )
    if (folder / PARTS).exists() and not overwrite:
        raise RequestError(f"output folder holds another build: `{folder}`", hint="add `--overwrite` to replace it")


def _lines(lines: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The lines of every part; a line that all parts have is listed once."""
    common = [line for line in next(iter(lines.values())) if all(line in others for others in lines.values())]
    rest = [f"{part}: {line}" for part, own in lines.items() for line in own if line not in common]
    return (*common, *rest)
