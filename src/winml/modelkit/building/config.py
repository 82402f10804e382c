"""`winml config`: from a few words to a config that leaves nothing open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from winml.modelkit.building import exported as exports
from winml.modelkit.building import weight_range
from winml.modelkit.building.export import resolve as export
from winml.modelkit.building.export.families import WHOLE
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.export.table import NPU_OPSET
from winml.modelkit.building.exported import Exported, Exporting
from winml.modelkit.building.model_argument import ModelArgument, model_argument, model_path
from winml.modelkit.building.optimize import resolve as optimize
from winml.modelkit.building.result import ConfigResult
from winml.modelkit.core import model_ref
from winml.modelkit.core.config import (
    RANDOM,
    SCHEMA,
    BuildConfig,
    CompileSection,
    DataSection,
    OptimizeSection,
    QuantizeSection,
    config_from_json,
)
from winml.modelkit.core.errors import EPUnavailableError, RequestError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.values import to_json
from winml.modelkit.data import sizes
from winml.modelkit.ep import catalog, options, precision
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.probing import Planned
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.graph.signature import read_signature
from winml.modelkit.graph.sizes import given_sizes, quoted
from winml.modelkit.worker.client import Worker

PRELOAD = ("winml.modelkit.graph.source",)


@dataclass(frozen=True)
class ConfigRequest:
    """Everything the user decided."""

    model: str
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    precision: str = precision.AUTO
    data: DataSection | None = None
    """Calibration data; the digest is found out."""
    sample_data: DataSection | None = None
    """What the sample brings along, for a precision that needs data."""
    optimize: bool = True
    level: str | None = None
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()
    opset: int | None = None
    dims: dict[str, int] = field(default_factory=dict)
    compile: bool = False
    compiler: str = "ort"
    embed: bool = False
    threads: int | None = None
    ep_options: dict[str, str] = field(default_factory=dict)
    export: ExportOptions = field(default_factory=ExportOptions)
    """How a Hugging Face model is exported; the opset is the one above."""
    trust: Trust = NOTHING


@dataclass(frozen=True)
class MadeConfig:
    """A config, the target it is for, and what was decided for the user."""

    config: BuildConfig
    planned: Planned
    notes: tuple[str, ...]
    exported: Exported | None = None
    """The export that the build starts from; None when the model is ONNX."""


def absent_note(absent: EPUnavailableError) -> str:
    return f"{absent.message}; the build goes on without it, and nothing is asked of it"


def make(request: ConfigRequest, worker: Worker, exporting: Exporting | None = None) -> MadeConfig:
    """The config for a request; the worker is asked about the model and the data.

    A Hugging Face model is exported on the way: its axes and what data it takes are not known before.
    """
    planned = targets.plan(request.target, request.ep, request.device)
    exported = _exported(request, planned, exporting)
    argument = _argument(request, exported)
    model = argument.path
    notes = [] if planned.absent is None else [absent_note(planned.absent)]
    word = precision.resolve(planned.target, request.precision)
    if request.precision.strip().casefold() == precision.AUTO:
        notes.append(f"precision auto is {word} on {planned.target}")
    dims, dim_notes = _fixed_dims(request, planned, model, worker)
    quantize = _quantize(request, planned, word, model, exported, dims, worker)
    quantize, range_notes = _with_range(quantize, planned, worker)
    if request.data is not None and (quantize is None or quantize.calibration is None):
        notes.append(f"the calibration data is not used: precision {word} needs none")
    section, optimize_notes = _optimize(request, planned, dims, exported)
    config = BuildConfig(
        schema=SCHEMA,
        model=str(model) if exported is None else exported.located.word,
        target=str(planned.target),
        precision=word,
        export=None if exported is None else exported.section,
        optimize=section,
        quantize=quantize,
        compile=_compile(request, planned),
        session=_session(request, argument.section, planned),
    )
    return MadeConfig(config, planned, (*notes, *dim_notes, *optimize_notes, *range_notes), exported)


def _argument(request: ConfigRequest, exported: Exported | None) -> ModelArgument:
    if exported is not None:
        return ModelArgument(exported.path, SessionSection())
    return model_argument(request.model, trust=request.trust.typing(request.ep_options))


def _exported(request: ConfigRequest, planned: Planned, exporting: Exporting | None) -> Exported | None:
    """The export of a Hugging Face model; None for ONNX, which takes none of the options of an export."""
    ref = model_ref.parse(request.model)
    if not ref.is_exported:
        if request.export != ExportOptions():
            raise RequestError(f"`{ref}` is ONNX already and is not exported", hint="drop the options of the export")
        return None
    if planned.target.device == "npu" and (request.opset or 0) > NPU_OPSET:
        raise RequestError(
            f"opset {request.opset} has operators that {planned.target} is not known to take",
            hint=f"export with `--opset {NPU_OPSET}` or less",
        )
    chosen = replace(request.export, opset=request.opset)
    located = exports.locate(ref, code=chosen.trust_remote_code)
    section = export.resolve(located.folder, chosen, chosen.part or WHOLE)
    return exports.export(located, section, exporting or Exporting(), trust_remote_code=chosen.trust_remote_code)


def _session(request: ConfigRequest, built: SessionSection, planned: Planned) -> SessionSection:
    """How the result is opened: as a build folder says that the model comes from, and as the user says."""
    return replace(
        built,
        threads=built.threads if request.threads is None else request.threads,
        ep_options=options.for_session(
            planned.target, options.checked(planned.target, {**built.ep_options, **request.ep_options})
        ),
    )


def _optimize(
    request: ConfigRequest, planned: Planned, dims: dict[str, int], exported: Exported | None
) -> tuple[OptimizeSection | None, tuple[str, ...]]:
    if request.optimize:
        section = optimize.resolve(
            level=request.level,
            enable=request.enable,
            disable=request.disable,
            target=planned.target,
            opset=request.opset if exported is None else None,
        )
        return replace(section, fixed_dims=dims), ()
    opset = request.opset if exported is None else None
    for option, given in (("--level", request.level), ("--enable", request.enable), ("--opset", opset)):
        if given:
            raise RequestError(f"`{option}` and `--no-optimize` exclude each other")
    return (OptimizeSection(fixed_dims=dims), ("no pass runs; dimensions are fixed",)) if dims else (None, ())


def _fixed_dims(
    request: ConfigRequest, planned: Planned, model: Path, worker: Worker
) -> tuple[dict[str, int], list[str]]:
    """Sizes for open dimensions: what the user gave, and where the device needs fixed shapes what is known of others.

    A size that nobody knows is refused: an artifact for another size than the model is used with is of no use.
    """
    if planned.target.device != "npu":
        return given_sizes(read_signature(model).inputs, request.dims) if request.dims else {}, []
    known = sizes.find(model, request.dims, worker=worker).require()
    notes = [
        f"dimension {name} is fixed at {size.size} for {planned.target} ({size.reason}); "
        f"set it with `--dim {quoted(name)}=N`"
        for name, size in known.sizes.items()
        if size.source != "given"
    ]
    return known.dims, notes


def _quantize(
    request: ConfigRequest,
    planned: Planned,
    word: str,
    model: Path,
    exported: Exported | None,
    dims: Mapping[str, int],
    worker: Worker,
) -> QuantizeSection | None:
    section = precision.quantize_section(planned.target, word)
    data = request.data or request.sample_data
    if section is None or section.mode != "static":
        return section
    if data is None:
        raise RequestError(
            f"precision `{word}` needs calibration data",
            hint="name real samples with `--data`, or leave the model unquantized with `--no-quant`; "
            "`--calibration random` makes some up, at the cost of accuracy",
        )
    if exported is not None and data.source == RANDOM:
        ranges = {**export.value_ranges(exported.section, dims), **data.ranges}
        data = replace(data, ranges=ranges, dims=export.sample_sizes(exported.section))
    data = sizes.random_data(data, model, given=request.dims, worker=worker)
    return replace(section, calibration=described(data, model, worker))


def _with_range(
    section: QuantizeSection | None, planned: Planned, worker: Worker
) -> tuple[QuantizeSection | None, tuple[str, ...]]:
    return (None, ()) if section is None else weight_range.resolve(section, planned.target, worker)


def described(data: DataSection, model: Path, worker: Worker) -> DataSection:
    """The data with its digest, and its path such that it means the same from any folder."""
    data = data.absolute()
    args = {"model": str(model), "data": to_json(data)}
    return replace(data, digest=worker.call("data.describe", args, what="reading the data")["digest"])


def _require_compiler(planned: Planned) -> None:
    if planned.absent is not None:
        raise planned.absent
    if not catalog.BY_NAME[planned.target.ep].can_compile:
        able = ", ".join(f"`{info.name}`" for info in catalog.TABLE if info.can_compile)
        raise RequestError(f"execution provider `{planned.target.ep}` cannot compile models", hint=f"these can: {able}")


def _compile(request: ConfigRequest, planned: Planned) -> CompileSection | None:
    if not request.compile:
        return None
    _require_compiler(planned)
    return CompileSection(
        compiler=request.compiler,
        embed=request.embed,
        provider_options=options.checked(planned.target, request.ep_options),
    )


def load(path: str, trust: Trust = NOTHING) -> BuildConfig:
    """The config in a file; options that name libraries or files are refused unless they are trusted."""
    file = Path(path)
    if not file.is_file():
        raise RequestError(f"config file not found: `{path}`", hint="`winml config -o FILE` writes one")
    try:
        value = read_json(file)  # in any UTF: a shell on Windows may redirect in another than ours
    except ValueError as error:
        raise RequestError(f"`{path}` is not JSON: {error}") from error
    try:
        return config_from_json(value, trust.gate(path))
    except RequestError as error:
        raise RequestError(f"`{path}`: {error.message}", hint=error.hint) from error


def given(
    config: BuildConfig,
    worker: Worker,
    exporting: Exporting | None = None,
    *,
    trust_remote_code: bool = False,
) -> MadeConfig:
    """A config that was read, held to what one made here holds: known words and options, data that has its digest."""
    planned = targets.plan(config.target, None, None)
    if config.model is None:
        raise RequestError("the config names no model", hint="name one with `-m FILE`")
    if config.precision not in precision.PRECISIONS:
        hint = did_you_mean(config.precision, precision.PRECISIONS)
        raise RequestError(f"`precision` cannot be `{config.precision}`", hint=hint)
    if config.compile is not None:
        _require_compiler(planned)
    exported = _given_export(config, exporting, trust_remote_code)
    model = model_path(config.model) if exported is None else exported.path
    session = replace(config.session, ep_options=options.checked(planned.target, config.session.ep_options))
    quantize = None if config.quantize is None else _calibrated(config.quantize, model, worker)
    quantize, range_notes = _with_range(quantize, planned, worker)
    notes = (*(() if planned.absent is None else (absent_note(planned.absent),)), *range_notes)
    word = str(model) if exported is None else exported.located.word
    return MadeConfig(replace(config, model=word, session=session, quantize=quantize), planned, notes, exported)


def _given_export(config: BuildConfig, exporting: Exporting | None, trust_remote_code: bool) -> Exported | None:
    """The export that a config asks for; its model and its section have to agree on whether there is one."""
    ref = model_ref.parse(config.model or "")
    if ref.is_exported != (config.export is not None):
        if config.export is None:
            raise RequestError(f"`{ref}` has to be exported, and the config has no `export` section")
        raise RequestError(f"`export` must be null: `{ref}` is an ONNX model, which is not exported")
    if config.export is None:
        return None
    located = exports.locate(ref, code=trust_remote_code)
    export.refuse_remote_code(located.folder, trust_remote_code=trust_remote_code)
    return exports.export(located, config.export, exporting or Exporting(), trust_remote_code=trust_remote_code)


def _calibrated(section: QuantizeSection, model: Path, worker: Worker) -> QuantizeSection:
    """The section with the digest of its data, without which results of other data would have the same key."""
    if section.mode != "static":
        return section
    if section.calibration is None:
        raise RequestError("`quantize.calibration` is missing: static quantization needs data")
    if section.calibration.digest is None:
        return replace(section, calibration=described(section.calibration, model, worker))
    return replace(section, calibration=section.calibration.absolute())


def make_config(request: ConfigRequest) -> ConfigResult:
    """The config that a build of a request would run by."""
    with Worker(preload=PRELOAD) as worker:
        made = make(request, worker)
    return ConfigResult(config=made.config, notes=made.notes)
