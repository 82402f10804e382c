"""`winml config`: from a few options to a complete config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path

from winml.modelkit.building import exported as exports
from winml.modelkit.building import weight_range
from winml.modelkit.building.export import families, genai
from winml.modelkit.building.export import resolve as export
from winml.modelkit.building.export.derivation import InputDerivation
from winml.modelkit.building.export.families import DECODER, WHOLE
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.building.export.resolve import ExportOptions
from winml.modelkit.building.export.table import NPU_OPSET
from winml.modelkit.building.exported import ExportPlan
from winml.modelkit.building.model_argument import model_argument, model_path
from winml.modelkit.building.optimize import resolve as optimize
from winml.modelkit.building.result import ConfigResult
from winml.modelkit.core import model_ref
from winml.modelkit.core.config import (
    RANDOM,
    BuildConfig,
    CompileSection,
    DataSection,
    OptimizeSection,
    QuantizeSection,
    config_from_json,
)
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import EPUnavailableError, RequestError
from winml.modelkit.core.events import OnEvent, ignore
from winml.modelkit.core.generation import is_decoder_folder
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.suggest import did_you_mean, near_path
from winml.modelkit.core.values import to_json
from winml.modelkit.data import sizes
from winml.modelkit.data.answers import DataDescription
from winml.modelkit.ep import catalog, options, precision
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.probing import Planned
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.graph.signature import Signature, read_signature
from winml.modelkit.graph.sizes import match_sizes, open_dims, quote
from winml.modelkit.worker.client import Worker

_IN_PLACE = ("cpu", "cuda", "dml", "webgpu")
"""EPs with `GroupQueryAttention`, which the builder of onnxruntime-genai writes; others get plain operators."""

FUSED = "the exporter fused the graph already; no pass runs (`--level` or `--enable` runs some)"

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
    """What the sample model comes with, for a precision that needs data."""
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
    export: ExportPlan | None = None
    """The export that the build starts with; None when the model is ONNX."""
    unfused: OptimizeSection | None = None
    """The passes that run where an exporter that fuses was asked for and another one did the work."""


@dataclass(frozen=True)
class _ModelSource:
    """The model of a config: an ONNX file, or a Hugging Face model as its export will be."""

    worker: Worker
    path: Path | None = None
    export: ExportPlan | None = None

    @property
    def reference(self) -> str:
        """A reference that finds the same model again."""
        return str(self.path) if self.export is None else self.export.located.reference

    @property
    def generates(self) -> bool:
        """Whether the types of a cache are ours to choose: the graph is exported here, or lies in a decoder folder."""
        return self.export is not None or is_decoder_folder(self._file.parent)

    @property
    def signature(self) -> Signature:
        return read_signature(self._file) if self.export is None else self.export.signature

    @property
    def _file(self) -> Path:
        assert self.path is not None
        return self.path

    def find_sizes(self, given: Mapping[str, int]) -> sizes.KnownSizes:
        """Sizes of all open dimensions; an unknown one is refused."""
        if self.export is not None:
            section, folder = self.export.section, self.export.located.folder
            given = export.complete_sizes(section, given, export.npu_sizes(folder, section))
            return sizes.find_in(self.export.signature, given).require()
        return sizes.find(self._file, given, worker=self.worker).require()

    def size_data(self, data: DataSection, given: Mapping[str, int], fixed: Mapping[str, int]) -> DataSection:
        """Random data with ranges and sizes; other data has its own."""
        if self.export is None:
            return sizes.random_data(data, self._file, given=given, worker=self.worker)
        if data.source == RANDOM:
            section = self.export.section
            ranges = {**export.value_ranges(section, fixed), **data.ranges}
            data = replace(data, ranges=ranges, dims=export.sample_sizes(section))
        return sizes.random_data_in(data, self.export.signature, given)

    def describe_data(self, data: DataSection) -> DataSection:
        """The data with its digest and an absolute path."""
        data = data.absolute()
        if self.export is None:
            args = {"model": str(self._file), "folder": str(self._file.parent), "data": to_json(data)}
        else:
            declared = [{"name": i.name, "dtype": i.dtype, "shape": i.shape} for i in self.export.section.inputs]
            folder = self.export.located.folder.path
            args = {"inputs": to_json(declared), "folder": str(folder), "data": to_json(data)}
        return replace(
            data, digest=self.worker.ask(DataDescription, "data.describe", args, what="reading the data").digest
        )


def describe_data(data: DataSection, model: Path, worker: Worker) -> DataSection:
    """Data for an ONNX file, with its digest and an absolute path."""
    return _ModelSource(worker, model).describe_data(data)


def absent_note(absent: EPUnavailableError) -> str:
    return f"{absent.message}; the build continues without asking it"


def make(
    request: ConfigRequest,
    worker: Worker,
    *,
    weights: bool = True,
    on_event: OnEvent = ignore,
    timeout_s: float | None = None,
) -> MadeConfig:
    """The config for a request; the worker is asked about the model and the data.

    Nothing is exported for it: the config of a Hugging Face model decides its axes and inputs. Without
    `weights` those of a model of the hub are not fetched. `timeout_s` is for deriving inputs that no table has.
    """
    planned = targets.plan(request.target, request.ep, request.device)
    exporting = _plan_export(request, planned, weights, on_event, timeout_s)
    session = SessionSection()
    model = _ModelSource(worker, export=exporting)
    if exporting is None:
        argument = model_argument(request.model, trust=request.trust.with_typed(request.ep_options))
        model, session = _ModelSource(worker, argument.path), argument.section
    notes = [] if planned.absent is None else [absent_note(planned.absent)]
    chosen = precision.resolve(planned.target, request.precision)
    if request.precision.strip().casefold() == precision.AUTO:
        notes.append(f"precision auto is {chosen} on {planned.target}")
    dims, dim_notes = _choose_dims(request, planned, model)
    quantize = _quantize(request, planned, chosen, model, dims)
    quantize, range_notes = _with_range(quantize, planned, worker)
    if request.data is not None and (quantize is None or quantize.calibration is None):
        notes.append(f"the calibration data is not used: precision {chosen} needs none")
    section, optimize_notes = _optimize(request, planned, dims, exporting)
    config = BuildConfig(
        model=model.reference,
        target=str(planned.target),
        precision=chosen,
        export=None if exporting is None else exporting.section,
        optimize=section,
        quantize=quantize,
        compile=_compile(request, planned),
        session=_session(request, session, planned),
    )
    unfused = optimize.resolve(disable=request.disable, target=planned.target) if FUSED in optimize_notes else None
    return MadeConfig(config, planned, (*notes, *dim_notes, *optimize_notes, *range_notes), exporting, unfused)


def _plan_export(
    request: ConfigRequest, planned: Planned, weights: bool, on_event: OnEvent, timeout_s: float | None
) -> ExportPlan | None:
    """The export of a Hugging Face model; None for ONNX, which takes none of the options of an export."""
    ref = model_ref.parse(request.model)
    if not ref.is_exported:
        if request.export != ExportOptions():
            raise RequestError(f"`{ref}` is ONNX already and is not exported", hint="remove the export options")
        return None
    if planned.target.device == "npu" and (request.opset or 0) > NPU_OPSET:
        raise RequestError(
            f"opset {request.opset} has operators that {planned.target} is not known to support",
            hint=f"export with `--opset {NPU_OPSET}` or less",
        )
    chosen = replace(request.export, opset=request.opset)
    located = exports.locate(ref, weights=weights, code=chosen.trust_remote_code, on_event=on_event)
    derived = exports.find_derivation(located, chosen, on_event=on_event, timeout_s=timeout_s)
    part = chosen.part or (DECODER if is_one_decoder(request, located.folder, derived, planned) else WHOLE)
    traced = part == DECODER and chosen.exporter is None and planned.target.ep not in _IN_PLACE
    if traced:
        chosen = replace(chosen, exporter="transformers")
    section = export.resolve(located.folder, chosen, part, derived)
    if traced:  # not by the user's choice, so that another exporter may follow
        section = replace(section, fall_back=chosen.dynamic_axes is None)
    return ExportPlan(located, section, chosen.trust_remote_code)


def is_one_decoder(
    request: ConfigRequest, folder: ModelFolder, derived: InputDerivation | None, planned: Planned | None = None
) -> bool:
    """Whether a model is built as one graph with a cache; a device with fixed shapes needs one for every length."""
    chosen = request.export
    task = export.task_of(folder, chosen.task)
    can_be = families.has_decoder(folder.family, task) if derived is None else derived.has_decoder
    if chosen.part is not None or not can_be:
        return False
    return (planned or targets.plan(request.target, request.ep, request.device)).target.device != "npu"


def fit_export(made: MadeConfig, model: Path, exporter: str) -> MadeConfig:
    """The config without sizes of axes that the exported model turned out not to have, and with passes if it is traced.

    An exporter drops an input that nothing depends on, and with it axes that no other input has; an export that could
    not leave an axis open has it at one size.
    """
    if made.unfused is not None and exporter != genai.EXPORTER:
        notes = tuple(note for note in made.notes if note != FUSED)
        made = replace(made, config=replace(made.config, optimize=made.unfused), notes=notes)
    section = made.config.optimize
    if made.export is None or section is None or not section.fixed_dims:
        return made
    found = read_signature(model).inputs
    removed = set(made.export.section.sizes) - set(open_dims(found))
    shapes = {entry.name: entry.shape for entry in made.export.section.inputs}
    for value in found:
        for axis, size in zip(shapes.get(value.name, ()), value.shape or (), strict=False):
            wanted = section.fixed_dims.get(str(axis), size)
            if axis in removed and isinstance(size, int) and size != wanted:
                raise RequestError(
                    f"axis `{axis}` could not be left open: the export fixed it at {size}, and {wanted} is wanted",
                    hint=f"fix it in the export: `--shape {axis}={wanted}`",
                )
    dims = {name: size for name, size in section.fixed_dims.items() if name not in removed}
    return replace(made, config=replace(made.config, optimize=replace(section, fixed_dims=dims)))


def _session(request: ConfigRequest, built: SessionSection, planned: Planned) -> SessionSection:
    """How the result is opened: with the options of the build folder that the model comes from, then of the user."""
    return replace(
        built,
        threads=built.threads if request.threads is None else request.threads,
        ep_options=options.for_session(
            planned.target, options.check_options(planned.target, {**built.ep_options, **request.ep_options})
        ),
    )


def _optimize(
    request: ConfigRequest, planned: Planned, dims: dict[str, int], exporting: ExportPlan | None
) -> tuple[OptimizeSection | None, tuple[str, ...]]:
    fused = exporting is not None and exporting.section.exporter == genai.EXPORTER
    if request.optimize and not (fused and request.level is None and not request.enable and not dims):
        section = optimize.resolve(
            level=request.level,
            enable=request.enable,
            disable=request.disable,
            target=planned.target,
            opset=request.opset if exporting is None else None,
        )
        return replace(section, fixed_dims=dims), ()
    opset = request.opset if exporting is None else None
    if request.optimize:
        return None, (FUSED,)
    for option, given in (("--level", request.level), ("--enable", request.enable), ("--opset", opset)):
        if given:
            raise RequestError(f"`{option}` and `--no-optimize` cannot be combined")
    return (OptimizeSection(fixed_dims=dims), ("no pass runs; dimensions are fixed",)) if dims else (None, ())


def _choose_dims(request: ConfigRequest, planned: Planned, model: _ModelSource) -> tuple[dict[str, int], list[str]]:
    """Sizes for open dimensions: those the user gave and, where the device needs fixed shapes, the known ones.

    An unknown size is refused: an artifact for another size than the model is used with is useless.
    """
    if planned.target.device != "npu":
        return match_sizes(model.signature.inputs, request.dims) if request.dims else {}, []
    known = model.find_sizes(request.dims)
    notes = [
        f"dimension {name} is fixed at {size.size} for {planned.target} ({size.reason}); "
        f"set it with `--dim {quote(name)}=N`"
        for name, size in known.sizes.items()
        if size.source != "given"
    ]
    return known.dims, notes


def _quantize(
    request: ConfigRequest, planned: Planned, chosen: str, model: _ModelSource, dims: Mapping[str, int]
) -> QuantizeSection | None:
    section = precision.quantize_section(planned.target, chosen)
    if section is not None and section.mode == "fp16" and model.generates:
        section = precision.fit_cache(section, [entry.name for entry in model.signature.inputs])
    data = request.data or request.sample_data
    if section is None or section.mode != "static":
        return section
    if data is None:
        raise RequestError(
            f"precision `{chosen}` needs calibration data",
            hint="name real samples with `--calibration FILE`, or leave the model unquantized with `--no-quant`; "
            "`--calibration random` uses random inputs, at the cost of accuracy",
        )
    return replace(section, calibration=model.describe_data(model.size_data(data, request.dims, dims)))


def _with_range(
    section: QuantizeSection | None, planned: Planned, worker: Worker
) -> tuple[QuantizeSection | None, tuple[str, ...]]:
    return (None, ()) if section is None else weight_range.resolve(section, planned.target, worker)


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
        provider_options=options.check_options(planned.target, request.ep_options),
    )


def load(path: str, trust: Trust = NOTHING) -> BuildConfig:
    """The config in a file; options that name libraries or files are refused unless they are trusted."""
    file = Path(path)
    if not file.is_file():
        raise RequestError(
            f"config file not found: `{path}`", hint=near_path(path, "`winml config -o FILE` writes one")
        )
    try:
        value = read_json(file)  # in any UTF: a shell on Windows may redirect in another than ours
    except ValueError as error:
        raise RequestError(f"`{path}` is not JSON: {error}") from error
    try:
        return config_from_json(value, trust.gate(path))
    except RequestError as error:
        raise RequestError(f"`{path}`: {error.message}", hint=error.hint) from error


def complete(config: BuildConfig, worker: Worker, *, trust_remote_code: bool = False) -> MadeConfig:
    """A config that was read, checked and completed like one made here: known names and options, digests of data."""
    planned = targets.plan(config.target, None, None)
    if config.model is None:
        raise RequestError("the config names no model", hint="name one with `-m FILE`")
    if config.precision not in precision.PRECISIONS:
        hint = did_you_mean(config.precision, precision.PRECISIONS)
        raise RequestError(f"`precision` cannot be `{config.precision}`", hint=hint)
    if config.compile is not None:
        _require_compiler(planned)
    exporting = _plan_of(config, trust_remote_code=trust_remote_code)
    model = (
        _ModelSource(worker, model_path(config.model)) if exporting is None else _ModelSource(worker, export=exporting)
    )
    session = replace(config.session, ep_options=options.check_options(planned.target, config.session.ep_options))
    quantize = None if config.quantize is None else _complete_calibration(config.quantize, model)
    quantize, range_notes = _with_range(quantize, planned, worker)
    notes = (*(() if planned.absent is None else (absent_note(planned.absent),)), *range_notes)
    return MadeConfig(
        replace(config, model=model.reference, session=session, quantize=quantize), planned, notes, exporting
    )


def _plan_of(config: BuildConfig, *, trust_remote_code: bool) -> ExportPlan | None:
    """The export that a config asks for; its model and its section have to agree on whether there is one."""
    ref = model_ref.parse(config.model or "")
    if ref.is_exported != (config.export is not None):
        if config.export is None:
            raise RequestError(f"`{ref}` must be exported but the config has no `export` section")
        raise RequestError(f"`export` must be null: `{ref}` is an ONNX model, which is not exported")
    if config.export is None:
        return None
    located = exports.locate(ref, code=trust_remote_code)
    export.refuse_remote_code(located.folder, trust_remote_code=trust_remote_code)
    return ExportPlan(located, config.export, trust_remote_code)


def _complete_calibration(section: QuantizeSection, model: _ModelSource) -> QuantizeSection:
    """The section with the digest of its data, without which results of other data would have the same key."""
    if section.mode != "static":
        return section
    if section.calibration is None:
        raise RequestError("`quantize.calibration` is missing: static quantization needs data")
    if section.calibration.digest is None:
        return replace(section, calibration=model.describe_data(section.calibration))
    return replace(section, calibration=section.calibration.absolute())


def make_config(request: ConfigRequest, on_event: OnEvent = ignore) -> ConfigResult:
    """The config that a build of a request would run by."""
    with Worker(preload=PRELOAD) as worker:
        made = make(request, worker, weights=False, on_event=on_event)
    return ConfigResult(config=made.config, notes=made.notes)
