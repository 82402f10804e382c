"""`winml compile`: models into EP contexts, several of them into one that they share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building.compile import proof as compile_proof
from winml.modelkit.building.compile import table
from winml.modelkit.building.compile.base import Compiler, CompileTools
from winml.modelkit.building.compile.composite import CompositeSource, part_folders
from winml.modelkit.building.compile.delivery import check_free, deliver, output_names
from winml.modelkit.building.compile.qairt import VARIABLE
from winml.modelkit.building.compile.refusals import ep_refusal, sharing_refusal
from winml.modelkit.building.compile.report import compare_sizes
from winml.modelkit.building.compile.result import (
    CompiledAlone,
    CompiledModel,
    CompileResult,
    CompilerList,
    CompilerRow,
    FailedModel,
    Sharing,
    Validation,
)
from winml.modelkit.building.compile.stage import CompileInput, CompileOutcome, CompileStage, Made, Settings
from winml.modelkit.building.model_argument import model_path
from winml.modelkit.building.proof import prove as build_proof
from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.building.result import failure_of
from winml.modelkit.core.config import SCHEMA, CompileSection, check_compile, read_config
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import (
    EPUnavailableError,
    PartlyDone,
    RequestError,
    RunFailedError,
    UnavailableError,
)
from winml.modelkit.core.events import OnEvent, TargetChosen, ignore
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.location import expand
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.ep import catalog, options
from winml.modelkit.ep import probing as targets
from winml.modelkit.ep.discovery import Installed, Rejected, candidates, distribution_version, this_host
from winml.modelkit.ep.probing import Planned
from winml.modelkit.ep.targets import TargetRequest, unavailable
from winml.modelkit.ep.targets import request as target_request
from winml.modelkit.ep.trust import NOTHING, Trust
from winml.modelkit.session.notes import simulator_notes
from winml.modelkit.store import atomic
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

DEFAULT_TIMEOUT_S = 1800.0
MIN_SAVED_PCT = 5.0
"""Sharing that saves less is mentioned: it costs a process that holds all models."""


@dataclass(frozen=True, kw_only=True)
class StoredSettings:
    """What a build config contributes; the command line overrides it."""

    target: str | None = None
    """None where the config names none: the target is then chosen by what is installed."""
    section: CompileSection = CompileSection()


@dataclass(frozen=True)
class CompileRequest:
    """Everything the user decided; None where they left it open."""

    models: tuple[str, ...] = ()
    output: str | None = None
    """The file a single model becomes."""
    output_dir: str | None = None
    target: str | None = None
    ep: str | None = None
    device: str | None = None
    stored: StoredSettings = StoredSettings()
    config_source: str = "config"
    """Where it comes from, for errors."""
    trust: Trust = NOTHING
    compiler: str | None = None
    embed: bool | None = None
    ep_options: Mapping[str, str] = field(default_factory=dict)
    qnn_sdk_root: str | None = None
    validate: bool = True
    reuse: bool = True
    overwrite: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S


@dataclass(frozen=True)
class _Place:
    """The folder results go to, and what each model is called there."""

    folder: Path
    names: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def load_settings(path: str) -> StoredSettings:
    """What a build config file with a compile section contributes."""
    try:
        value = read_json(Path(path))
    except FileNotFoundError as error:
        raise RequestError(f"config not found: `{path}`", hint=near_path(path)) from error
    except (OSError, ValueError) as error:
        raise RequestError(f"`{path}` is not a config: {error}") from error
    try:
        settings = read_settings(value)
    except RequestError as error:
        raise RequestError(f"`{path}`: {error.message}", hint=error.hint) from error
    if value.get("compile") is None:
        raise RequestError(f"`{path}` has no `compile` section", hint="`--ep-options` and `--compiler` need no config")
    return settings


def read_settings(value: Any) -> StoredSettings:
    """What a build config contributes; `schema` may be missing in one that is not a whole build."""
    config = read_config({"schema": SCHEMA, **value} if isinstance(value, dict) else value)
    return StoredSettings(
        target=config.target if "target" in value else None, section=config.compile or CompileSection()
    )


def _read_section(request: CompileRequest) -> CompileSection:
    """The compile section of the config, without what the command line overrides."""
    section = request.stored.section
    section = replace(
        section, provider_options=request.trust.with_typed(request.ep_options).without_typed(section.provider_options)
    )
    try:
        check_compile(section, request.trust.gate(request.config_source))
    except RequestError as error:
        raise RequestError(f"`{request.config_source}`: {error.message}", hint=error.hint) from error
    return section


def _section(request: CompileRequest) -> CompileSection:
    """The compile section: the command line overrides the config."""
    stored = _read_section(request)
    return replace(
        stored,
        compiler=table.find(request.compiler or stored.compiler).name,
        embed=stored.embed if request.embed is None else request.embed,
        provider_options={**stored.provider_options, **request.ep_options},
    )


def _request_target(request: CompileRequest) -> TargetRequest:
    named = request.target is not None or request.ep is not None or request.device is not None
    return target_request(request.target if named else request.stored.target, request.ep, request.device)


def sdk_tools(root: str | None = None) -> CompileTools:
    """Where the SDK is, from the command line or from the environment."""
    root = root or os.environ.get(VARIABLE)
    return CompileTools(expand(root) if root else None)


def _place(request: CompileRequest) -> _Place:
    """Where the compiled models go, by the rules: one model may name its file, several need a folder."""
    several = len(request.models) > 1
    if several and request.output is not None:
        raise RequestError(
            "`-o` names one file but there are several models", hint="use `--output-dir`; each keeps its name"
        )
    if (request.output is None) == (request.output_dir is None):
        ways = "`--output-dir DIR`" if several else "`-o FILE` or `--output-dir DIR`"
        raise RequestError(f"the output must be given exactly once: {ways}")
    if request.output is not None:
        file = Path(request.output)
        if file.suffix != ".onnx":
            raise RequestError(f"output `{file}` must end in .onnx", hint="`--output-dir` takes a folder")
        if not file.absolute().parent.is_dir():
            raise RequestError(f"output folder not found: `{file.parent}`", hint=near_path(file.parent))
        return _Place(file.absolute().parent, (file.name,))
    assert request.output_dir is not None
    folder = Path(request.output_dir)
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"output folder `{folder}` is a file", hint="name a folder")
    names, warnings = output_names([Path(model).absolute() for model in request.models])
    return _Place(folder.absolute(), tuple(names), tuple(warnings))


def _resolve_target(asked: TargetRequest, compiler: Compiler) -> Planned:
    """The target, whose EP a compiler that brings its own tools can do without."""
    if asked.ep is not None and (refused := ep_refusal(asked.ep)) is not None:
        raise refused
    try:
        found = targets.resolve_request(asked)
    except EPUnavailableError as error:
        if compiler.needs_ep or asked.ep is None:
            raise
        return Planned(Target(asked.ep.name, asked.device or asked.ep.devices[0]), None, error)
    refused = ep_refusal(catalog.BY_NAME[found.target.ep])
    if refused is not None:
        raise refused
    return Planned(found.target, found, None)


def _libraries(installed: Installed | None, compiler: Compiler, tools: CompileTools) -> dict[str, str] | None:
    """Versions of what a compiled model depends on; None when one of them is unknown."""
    versions: dict[str, str | None] = {}
    if installed is not None:
        private = installed.environment
        versions[installed.package.distribution] = (
            private.version if private else distribution_version(installed.package)
        )
        if private is None:
            versions["onnxruntime"] = distribution_version(catalog.BY_NAME["cpu"].packages[0])
    if not compiler.needs_ep:
        versions[compiler.name] = compiler.version(tools)
    known = {name: version for name, version in versions.items() if version is not None}
    return known if len(known) == len(versions) else None


def compile_settings(
    section: CompileSection, target: Target, installed: Installed | None, tools: CompileTools
) -> Settings:
    """How models are compiled for a target with what is installed; raises when the compiler is not available."""
    compiler = table.find(section.compiler)
    missing = compiler.missing(catalog.BY_NAME[target.ep], tools)
    if missing is not None:
        raise UnavailableError(f"compiler `{compiler.name}` is not available: {missing.reason}", hint=missing.hint)
    return Settings(
        target=target,
        section=replace(section, provider_options=options.check_options(target, section.provider_options)),
        libraries=_libraries(installed, compiler, tools),
        python=None if installed is None else installed.python,
        distribution=None if installed is None else installed.package.distribution,
        tools=tools,
        validate=installed is not None,
    )


def compile_models(request: CompileRequest, on_event: OnEvent = ignore) -> CompileResult:
    """Compile and deliver what succeeded; see `raise_for`."""
    if not request.models:
        raise RequestError("name a model", hint="`-m FILE`, once per model")
    composite = CompositeSource.find(request.models)
    request = replace(request, models=tuple(model for name in request.models for model in part_folders(name)))
    place = _place(request)
    described = () if composite is None else composite.file_names
    check_free(place.folder, (*place.names, *described), overwrite=request.overwrite)
    paths = [model_path(model, on_event) for model in request.models]
    section, asked, tools = _section(request), _request_target(request), sdk_tools(request.qnn_sdk_root)
    compiler = table.find(section.compiler)
    if len(paths) > 1 and (refused := sharing_refusal(section, shares=compiler.shares)) is not None:
        raise refused
    planned = _resolve_target(asked, compiler)
    target, installed = planned.target, None if planned.here is None else planned.here.installed
    settings = replace(
        compile_settings(section, target, installed, tools), reuse=request.reuse, timeout_s=request.timeout_s
    )
    settings = replace(settings, validate=request.validate and settings.validate)
    on_event(TargetChosen(target))
    models = [CompileInput(path, name) for path, name in zip(paths, place.names, strict=True)]
    cache = Cache()
    outcome = _run(settings, planned, cache, on_event, models)
    _deliver(cache, outcome, place.folder, overwrite=request.overwrite)
    rows = [_row(name, model, outcome, request) for name, model in zip(request.models, models, strict=True)]
    if composite is not None:
        composite.describe(rows, target, place.folder)
    return _result(settings, place, rows, outcome)


def _run(
    settings: Settings, planned: Planned, cache: Cache, on_event: OnEvent, models: list[CompileInput]
) -> CompileOutcome:
    """Compile, and prove every model where its target is installed and proofs are not switched off."""
    if not settings.validate:
        return CompileStage(settings, cache=cache, on_event=on_event).run(models)
    seconds = min(build_proof.SECONDS, settings.timeout_s or build_proof.SECONDS)
    with Worker() as worker:
        prover = compile_proof.Prover(planned, settings, cache, worker, seconds)
        return CompileStage(settings, cache=cache, on_event=on_event, prove=prover).run(models)


def _deliver(cache: Cache, outcome: CompileOutcome, folder: Path, *, overwrite: bool) -> None:
    if not outcome.files:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise atomic.write_error(error, folder) from error
    wrappers = {model.output for model in outcome.made}
    deliver(cache.objects, outcome.files, wrappers=wrappers, folder=folder, overwrite=overwrite)


def _row(
    name: str, model: CompileInput, outcome: CompileOutcome, request: CompileRequest
) -> CompiledModel | FailedModel:
    """The result of one model."""
    error = outcome.errors.get(model)
    if error is not None:
        return FailedModel(
            model=name,
            error=ErrorObject.of(error),
            log=tuple(error.details.get("log", ())),
            validation=read(Validation | None, error.details.get("validation")),  # type: ignore[arg-type]
            proof=failure_of(error).proof,
        )
    made = outcome.made[model]
    compiled = made.report.compiled
    skipped = "`--no-verify`" if not request.validate else "the execution provider is not installed on this machine"
    validation = made.report.validation or Validation("not-validated", skipped)
    cpu_ops = dict(sorted(compiled.facts.cpu_ops.items(), key=lambda item: (-item[1], item[0])))
    return CompiledModel(
        model=name,
        output=model.output,
        cached=made.cached,
        compiled=replace(compiled, facts=replace(compiled.facts, cpu_ops=cpu_ops)),
        cpu_nodes=sum(cpu_ops.values()),
        validation=validation,
        proof=_proof(outcome, model, validation),
        alone=_alone(outcome.alone.get(model)),
    )


def _proof(outcome: CompileOutcome, model: CompileInput, validation: Validation) -> Proof:
    """What is known of a model on its target; the reason of its validation where nothing is."""
    proof = outcome.proofs.get(model)
    if proof is None:
        return build_proof.unproven(str(validation.reason))
    return compile_proof.of_shared(proof, validation) if model in outcome.alone else proof


def _alone(made: Made | None) -> CompiledAlone | None:
    """The same model compiled on its own, for one that shares a context."""
    if made is None:
        return None
    compiled = made.report.compiled
    return CompiledAlone(
        binaries=compiled.facts.binaries,
        seconds=compiled.cost.seconds,
        peak_bytes=compiled.cost.peak_bytes,
        validation=made.report.validation,
        cached=made.cached,
    )


def _result(
    settings: Settings, place: _Place, rows: Sequence[CompiledModel | FailedModel], outcome: CompileOutcome
) -> CompileResult:
    section, target = settings.section, settings.target
    complete, added = options.complete(target, section.provider_options)
    sharing = None
    if outcome.alone:
        together = [outcome.made[model].report.compiled for model in outcome.alone]
        sharing = compare_sizes(together, [made.report.compiled for made in outcome.alone.values()])
    chosen = simulator_notes(added) if target.simulated else []
    warnings = (*place.warnings, *chosen, *_row_warnings(rows), *_sharing_warnings(rows, sharing))
    return CompileResult(
        target=target,
        compiler=table.find(section.compiler).name,
        embed=section.embed,
        provider_options=complete,
        added_options=added,
        libraries=settings.libraries or {},
        folder=str(place.folder),
        models=tuple(rows),
        sharing=sharing,
        warnings=warnings,
    )


def _row_warnings(rows: Sequence[CompiledModel | FailedModel]) -> list[str]:
    found = []
    for row in rows:
        if isinstance(row, FailedModel):
            continue
        warnings = [*row.compiled.warnings]
        if row.cpu_nodes:
            ops = ", ".join(f"{op} x{n}" for op, n in row.compiled.facts.cpu_ops.items())
            warnings.append(f"{row.cpu_nodes} nodes stay on the CPU: {ops}")
        if row.proof.limit is not None:
            warnings += build_proof.warnings(row.proof)
        # The reason is the same where the compiled form does not open.
        compared = row.validation.status == "passed" or row.proof.compiled is not None
        if row.proof.limit is None or not compared:
            warnings.append(f"not validated: {row.validation.reason}")
        found += [f"{row.output}: {warning}" for warning in warnings]
    return found


def _sharing_warnings(rows: Sequence[CompiledModel | FailedModel], sharing: Sharing | None) -> list[str]:
    compiled = [row.output for row in rows if isinstance(row, CompiledModel)]
    if len(rows) > 1 and len(compiled) == 1:
        return [f"{compiled[0]}: compiled alone: no other model is left to share a context with"]
    if sharing is not None and not sharing.shared:
        return ["a shared context was requested but the models do not refer to one binary"]
    if sharing is not None and sharing.saved_pct < MIN_SAVED_PCT:
        return [f"sharing saves {sharing.saved_pct:.1f} %: the models have few weights in common"]
    return []


def raise_for(result: CompileResult) -> None:
    """Raise when a model failed: its own error when there is only one model, partly done, or done with nothing."""
    failed = [row for row in result.models if isinstance(row, FailedModel)]
    if not failed:
        return
    first = failed[0].error
    names = "; ".join(f"{row.model}: {row.error.message}" for row in failed)
    if len(result.models) == 1:
        error = first.exception(result)
    elif len(failed) < len(result.models):
        message = f"{len(failed)} of {len(result.models)} models were not compiled: {names}"
        error = PartlyDone(message, hint=first.hint, result=result)
    else:
        # When all failed for the same kind of reason, that is the reason.
        codes = {row.error.code for row in failed}
        code = first.code if len(codes) == 1 else RunFailedError.code
        message = f"none of {len(failed)} models was compiled: {names}"
        error = replace(first, code=code, message=message).exception(result)
    error.details["log"] = list(failed[0].log)
    raise error


def list_compilers(request: CompileRequest) -> CompilerList:
    """Which compilers can be used for the selected EP on this machine, and why the others cannot."""
    asked, tools = _request_target(request), sdk_tools(request.qnn_sdk_root)
    info = asked.ep if asked.ep is not None else catalog.BY_NAME[targets.resolve_request(asked).target.ep]
    found = candidates(info, this_host())
    problem = ep_refusal(info) or (unavailable(info, found) if isinstance(found, Rejected) else None)
    rows = []
    for compiler in table.COMPILERS.values():
        missing = compiler.missing(info, tools)
        reason, hint = (missing.reason, missing.hint) if missing else (None, None)
        if problem is not None and reason is None and (compiler.needs_ep or not info.can_compile):
            reason, hint = problem.message, problem.hint
        row = CompilerRow(
            compiler=compiler.name,
            summary=compiler.summary,
            available=reason is None,
            reason=reason,
            hint=hint,
            shares=compiler.shares,
            default=compiler.name == CompileSection().compiler,
        )
        rows.append(row)
    return CompilerList(ep=info.name, compilers=tuple(rows))


def compile_multiple_onnx(
    model_paths: Sequence[str | os.PathLike[str]],
    output_path: str | os.PathLike[str],
    config: Mapping[str, Any],
    *,
    validate: bool = True,
    overwrite: bool = False,
    trust: Trust = NOTHING,
) -> dict[str, Any]:
    """Compile models as `config` says: a build config with `target` and, unless the defaults do, `compile`.

    The answer is the JSON object of `winml compile`.

    `trust` names options that `config` may hold though they name libraries or files (`ep.trust`).

    `output_path` is a folder, or for a single model a file that ends in .onnx. The result has an entry per model; a
    model that failed is there with its error, and the others are delivered. Only a wrong request raises.
    """
    paths = tuple(os.fspath(path) for path in model_paths)
    output = os.fspath(output_path)
    is_file = len(paths) == 1 and Path(output).suffix == ".onnx" and not Path(output).is_dir()
    request = CompileRequest(
        models=paths,
        output=output if is_file else None,
        output_dir=None if is_file else output,
        stored=read_settings(dict(config)),
        validate=validate,
        overwrite=overwrite,
        trust=trust,
    )
    result: dict[str, Any] = to_json(compile_models(request))
    return result
