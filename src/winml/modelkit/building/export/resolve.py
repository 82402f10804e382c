"""From the options of a user to a complete section; a function of the model's config alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

from winml.modelkit.building.export import families, genai, signature
from winml.modelkit.building.export.derivation import InputDerivation
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.table import DEFAULT_OPSET, OPSETS
from winml.modelkit.core.config import RANDOM, DataSection, ExportSection, InputSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelFileError, RequestError
from winml.modelkit.core.placeholders import Placeholders
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.tasks import TASKS
from winml.modelkit.core.values import read, to_json
from winml.modelkit.graph.signature import Signature, SignatureInput
from winml.modelkit.graph.sizes import INPUTS_KEY


@dataclass(frozen=True)
class ExportOptions:
    """What a user may choose about an export; None and empty leave it to the model."""

    task: str | None = None
    part: str | None = None
    exporter: str | None = None
    """None: that of transformers, and the legacy one where it fails."""
    opset: int | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Sizes by the name of an axis, or whole shapes by the name of an input."""
    dynamic_axes: tuple[str, ...] | None = None
    """The axes that stay open; None leaves all open that the task has."""
    input_specs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keys of input sections by the name of the input; a name that is not known adds an input."""
    seed: int = 0
    verify: bool = True
    trust_remote_code: bool = False


def task_of(folder: ModelFolder, wanted: str | None) -> str:
    """The task to export for: the one named, or what the model was saved for."""
    if wanted is not None:
        own = () if folder.architecture is None else (families.task_of(folder.architecture, folder.family),)
        if wanted not in (*TASKS, *own):
            raise RequestError(f"unknown task `{wanted}`", hint=did_you_mean(wanted, (*TASKS, *own)))
        return wanted
    if folder.architecture is None:
        raise ModelFileError(
            f"the config of `{folder.path}` names no architecture, so that its task is not known",
            hint="name it with `--task`",
        )
    return families.task_of(folder.architecture, folder.family)


def is_derived(folder: ModelFolder, options: ExportOptions) -> bool:
    """Whether the inputs have to be derived from the class, because no table and no user names them."""
    return not options.input_specs and not families.covers(folder.family, task_of(folder, options.task))


def parts_of(folder: ModelFolder, options: ExportOptions, derived: InputDerivation | None = None) -> tuple[str, ...]:
    """The parts that a model is exported as; only the one that was named, when one was."""
    if options.part is not None:
        return (options.part,)
    if derived is not None:
        return derived.exported_parts
    if folder.family is None:
        return (WHOLE,)
    return families.parts_of(folder.family, task_of(folder, options.task))


def resolve(
    folder: ModelFolder, options: ExportOptions, part: str = WHOLE, derived: InputDerivation | None = None
) -> ExportSection:
    """The section for one part; `derived` for a model whose inputs are in no table."""
    refuse_remote_code(folder, trust_remote_code=options.trust_remote_code)
    task = task_of(folder, options.task)
    opset = options.opset or DEFAULT_OPSET
    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise RequestError(
            f"opset {opset} cannot be exported; known are {OPSETS[0]} to {OPSETS[1]}",
            hint=f"export with {DEFAULT_OPSET} and convert with `winml optimize --opset {opset}`",
        )
    if derived is not None:
        usual = derived.find_part(part).inputs
    elif options.input_specs and folder.family is None:
        usual = ()
    else:
        usual = signature.inputs_of(folder, folder.require_family(), task, part)
    exporter = _choose_exporter(folder, options, part)
    if exporter == genai.EXPORTER:
        usual, opset = genai.fit_inputs(usual), genai.OPSET
    named = _apply_specs(usual, options.input_specs)
    tried = {} if derived is None else dict(derived.find_part(part).fixed_sizes)
    opened = ExportSection(task=task, inputs=named, sizes=_sizes(folder, named, usual), fixed_sizes=tried)
    inputs = _apply_shapes(named, options, npu_sizes(folder, opened))
    sizes = _sizes(folder, inputs, usual)
    if exporter == genai.EXPORTER:
        sizes |= genai.SIZES
    if derived is not None:
        sizes |= {axis: size for axis, size in derived.find_part(part).sizes.items() if axis in sizes}
    return ExportSection(
        task=task,
        part=part,
        exporter=exporter,
        opset=opset,
        inputs=inputs,
        sizes=sizes,
        derived=() if derived is None else (*derived.notes, *derived.find_part(part).notes),
        fixed_sizes=tried,
        mean_noise=derived is not None and derived.mean_noise,
        fall_back=options.exporter is None and options.dynamic_axes is None,
        seed=options.seed,
        verify=options.verify,
    )


def _choose_exporter(folder: ModelFolder, options: ExportOptions, part: str) -> str:
    """The exporter that was asked for; otherwise onnxruntime-genai's builder for a decoder that it knows."""
    fits = part == DECODER and genai.covers(folder)
    if options.exporter == genai.EXPORTER and not fits:
        raise RequestError(
            f"onnxruntime-genai's builder does not make part `{part}` of {folder.architecture}",
            hint="`--exporter transformers` traces any part of a model",
        )
    asked = options.opset is not None or options.shapes or options.dynamic_axes is not None or options.input_specs
    if options.exporter == genai.EXPORTER and asked:
        raise RequestError(
            "onnxruntime-genai's builder has its own opset, shapes and inputs",
            hint="remove `--opset`, `--shape`, `--dynamic-axes` and `--input-specs`, or add `--exporter transformers`",
        )
    if options.exporter is None and fits and not asked and genai.is_installed():
        return genai.EXPORTER
    return options.exporter or "transformers"


def refuse_remote_code(folder: ModelFolder, *, trust_remote_code: bool) -> None:
    """Raise when a model comes with code that was not allowed to run."""
    if folder.remote_code and not trust_remote_code:
        named = next(iter(folder.remote_code.values()))
        raise RequestError(
            f"the model needs code that comes with it (`{named}`)",
            hint="read the code, then allow it to run with `--trust-remote-code`",
        )


def _apply_specs(inputs: tuple[InputSection, ...], specs: Mapping[str, Mapping[str, Any]]) -> tuple[InputSection, ...]:
    """The inputs, updated from a file of specs."""
    by_name = {entry.name: to_json(entry) for entry in inputs}
    for name, spec in specs.items():
        if not isinstance(spec, Mapping):
            raise RequestError(f"the spec of input `{name}` must be an object but got {spec!r:.80}")
        by_name[name] = {**by_name.get(name, {"name": name}), **spec}
    return tuple(read(InputSection, value, f"inputs.{name}") for name, value in by_name.items())


def _apply_shapes(
    inputs: tuple[InputSection, ...], options: ExportOptions, closed: Mapping[str, int]
) -> tuple[InputSection, ...]:
    """The inputs with the sizes that were given in place of open axes; `closed` are those of axes to be closed."""
    shapes = dict(options.shapes)
    axes = {axis for entry in inputs for axis in entry.shape if isinstance(axis, str)}
    named = {entry.name: entry for entry in inputs}
    for name, shape in shapes.items():
        if name not in axes and name not in named:
            raise RequestError(f"the model has no axis or input `{name}`", hint=did_you_mean(name, {*axes, *named}))
        if name in axes and len(shape) != 1:
            raise RequestError(f"axis `{name}` has one size but got {', '.join(map(str, shape))}")
        if name in named and len(shape) != len(named[name].shape):
            raise RequestError(f"input `{name}` has {len(named[name].shape)} axes but got {len(shape)} sizes")
    for name in options.dynamic_axes or ():
        if name not in axes:
            raise RequestError(f"the model has no open axis `{name}`", hint=did_you_mean(name, axes))
    return tuple(replace(entry, shape=_fix_shape(entry, shapes, options.dynamic_axes, closed)) for entry in inputs)


def _fix_shape(
    entry: InputSection,
    shapes: Mapping[str, tuple[int, ...]],
    open_axes: tuple[str, ...] | None,
    closed: Mapping[str, int],
) -> tuple[int | str, ...]:
    if entry.name in shapes:
        return shapes[entry.name]
    found: list[int | str] = []
    for axis in entry.shape:
        if isinstance(axis, int):
            found.append(axis)
        elif axis in shapes:
            found.append(shapes[axis][0])
        elif open_axes is not None and axis not in open_axes:
            found.append(closed[axis])
        else:
            found.append(axis)
    return tuple(found)


def _sizes(folder: ModelFolder, inputs: tuple[InputSection, ...], usual: tuple[InputSection, ...]) -> dict[str, int]:
    """Sizes of open axes in the sample, within what the model can take; one that is usually fixed keeps its size."""
    shapes = {entry.name: entry.shape for entry in usual}
    found: dict[str, int] = {}
    for entry in inputs:
        before = shapes.get(entry.name, entry.shape)
        for axis, size in zip(entry.shape, before if len(before) == len(entry.shape) else entry.shape, strict=True):
            if isinstance(axis, str):
                found.setdefault(axis, size if isinstance(size, int) else signature.SIZES.get(axis, 2))
    longest = signature.longest(folder)
    if longest is not None and "sequence" in found:
        found["sequence"] = max(2, min(found["sequence"], longest))
    return {**found, **signature.total_size(inputs, found)}


def value_ranges(
    section: ExportSection, fixed: Mapping[str, int] = MappingProxyType({})
) -> dict[str, tuple[float, float]]:
    """Least and greatest value of every input: those of the sample that is traced, with axes `fixed` at other sizes.

    Masks have both of theirs: what a mask adds where it is 0 would otherwise never be seen, and be cut off. Positions
    continue after the cached words: those beyond the calibrated ones would be taken for the last of them.
    """
    sizes = {**section.sizes, **fixed}
    caches = [e.shape[2] for e in section.inputs if e.name.startswith("past_") and "_encoder_" not in e.name]
    past = _size(caches[0], sizes) if caches else 0
    return {entry.name: _values(entry, sizes, past) for entry in section.inputs}


def _size(axis: int | str, sizes: Mapping[str, int]) -> int:
    return sizes[axis] if isinstance(axis, str) else axis


def _values(entry: InputSection, sizes: Mapping[str, int], past: int) -> tuple[float, float]:
    if entry.values == "positions":
        return (0.0, float(past + _size(entry.shape[-1], sizes)) - 1)
    return (float(entry.low), float(entry.high))


def placeholders_of(section: ExportSection) -> dict[str, Placeholders]:
    """The words of its inputs that stand for what others hold."""
    return {entry.name: entry.placeholders for entry in section.inputs if entry.placeholders is not None}


def sample_sizes(section: ExportSection) -> dict[str, int]:
    """Sizes of open axes in one sample of the data: those of the sample that is traced, which is a batch."""
    leading = {entry.shape[0] for entry in section.inputs if entry.shape}
    return {axis: 1 if axis in leading else size for axis, size in section.sizes.items()}


def random_inputs(section: ExportSection) -> DataSection:
    """Synthetic data with the values and sizes that the export was traced with."""
    return DataSection(
        RANDOM,
        ranges=value_ranges(section),
        dims=sample_sizes(section),
        placeholders=placeholders_of(section) or None,
    )


def npu_sizes(folder: ModelFolder, section: ExportSection) -> dict[str, int]:
    """Sizes for the open axes where a device needs fixed shapes, by what such models are used with."""
    longest = signature.longest(folder)
    found = {axis: signature.NPU_SIZES.get(axis, 1) for axis in section.sizes}
    if longest is not None:
        if "sequence" in found:
            found["sequence"] = min(found["sequence"], longest)
        if "past" in found:  # with the new words it is the text, which not every part has an axis for
            found["past"] = min(found["past"], longest - found.get("decoder_sequence", 1))
    if "total" in found:
        usual = signature.NPU_PAIR_TEXT if _is_pair(section) else signature.NPU_TEXT
        found["total"] = min(usual, longest or usual)
        if "prompt_past" in found and "sequence" in found:
            found["sequence"] = max(1, min(signature.NPU_CHUNK, found["total"] // 2))
        found |= _follow(section, {"total": found["total"]}, found)
    return {axis: section.fixed_sizes.get(axis, size) for axis, size in found.items()}


def _is_pair(section: ExportSection) -> bool:
    return any(entry.name == signature.PAIR_MASK for entry in section.inputs)


def complete_sizes(section: ExportSection, given: Mapping[str, int], usual: Mapping[str, int]) -> dict[str, int]:
    """The sizes that were given, with those that follow: a mask is as long as the cache and the new tokens together."""
    axes = signature.text_axes(section.inputs)
    if axes is None or not {*axes, "total"} & set(given):
        return dict(given)
    words, cache = axes
    found = {**_follow(section, given, usual), **given}
    sizes = {**usual, **found}
    if _size(cache, sizes) < 1:
        raise RequestError(
            f"a text of {sizes['total']} tokens (`total`) leaves no room for a cache beside {_size(words, sizes)} new "
            "ones",
            hint=f"build for longer texts with `--dim total=N`, or read fewer tokens at once with `--dim {words}=N`",
        )
    if sizes["total"] != _size(cache, sizes) + _size(words, sizes):
        raise RequestError(
            f"`total` is {sizes['total']}, and must be the sum of `{cache}` ({_size(cache, sizes)}) and `{words}` "
            f"({_size(words, sizes)})",
            hint=f"`--dim total=N` is enough: `{cache}` follows",
        )
    return found


def _follow(section: ExportSection, given: Mapping[str, int], usual: Mapping[str, int]) -> dict[str, int]:
    """The length of the cache in a text of this length; or that of the text where the cache was given alone."""
    axes = signature.text_axes(section.inputs)
    if axes is None:
        return {}
    words, cache = axes
    sizes = {**usual, **given}
    if cache in given and "total" not in given:
        return {"total": sizes[str(cache)] + _size(words, sizes)}
    return {} if isinstance(cache, int) else {cache: sizes["total"] - _size(words, sizes)}


def signature_of(folder: ModelFolder, section: ExportSection) -> Signature:
    """The inputs that the exported model will have, with what it will record of them (`finalize.note_sizes`)."""
    inputs = tuple(
        SignatureInput(entry.name, entry.shape, unnamed=False, whole=entry.dtype == "int64") for entry in section.inputs
    )
    noted: dict[str, Any] = {
        "sizes": npu_sizes(folder, section),
        "ranges": {name: [int(low), int(high)] for name, (low, high) in value_ranges(section).items()},
    }
    placeholders = placeholders_of(section)
    if placeholders:
        noted["placeholders"] = {name: [one.word, one.count] for name, one in placeholders.items()}
    return Signature(inputs, {INPUTS_KEY: json.dumps(noted)})
