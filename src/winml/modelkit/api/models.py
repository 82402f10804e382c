"""Functions that read, make and change models: inspect, analyze, optimize, quantize, compile, export, config, build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from winml.modelkit.api.arguments import (
    at_least,
    check_output,
    more_than_zero,
    needs,
    one_of,
    options_of,
    path_of,
    require_output,
    sizes_of,
    text_of,
    trust_of,
    words_of,
)
from winml.modelkit.api.call import Call, calling
from winml.modelkit.api.progress import DebugProgress, StageProgress
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import OnEvent

if TYPE_CHECKING:
    from winml.modelkit.accuracy.mend_result import MendResult
    from winml.modelkit.accuracy.sensitivity_result import SensitivityResult
    from winml.modelkit.api.arguments import DataLike, Dims, EPOptions, ModelLike, PathLike, Shapes, Words
    from winml.modelkit.building.analysis.result import AnalyzeResult
    from winml.modelkit.building.build import BuildRequest
    from winml.modelkit.building.compile.result import CompileResult
    from winml.modelkit.building.export.describe import FolderInspection
    from winml.modelkit.building.export.resolve import ExportOptions
    from winml.modelkit.building.export.result import ExportResult
    from winml.modelkit.building.inspect import Inspection
    from winml.modelkit.building.optimize.result import OptimizeResult
    from winml.modelkit.building.quantize.result import QuantizeResult
    from winml.modelkit.building.result import BuildResult
    from winml.modelkit.core.config import BuildConfig


def inspect(
    model: ModelLike, *, dims: Dims | None = None, shapes: Shapes | None = None, timeout: float | None = None
) -> Inspection | FolderInspection:
    """What a model holds: inputs, outputs, operators, size; of a Hugging Face model what its files say."""
    more_than_zero(timeout=timeout)
    with calling() as call:
        from winml.modelkit.building.inspect import inspect as run

        return run(call.model(model), dims=sizes_of(dims, shapes), timeout_s=timeout)


def analyze(
    model: ModelLike,
    *,
    target: Words | None = None,
    all_targets: bool = False,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    fusions: bool = True,
    fail_if_unsupported: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> AnalyzeResult:
    """Which nodes a target supports and why not the others, known hazards, and what the optimizer could fuse.

    `fail_if_unsupported` raises `CheckFailed` when a target does not support all of the model.
    """
    more_than_zero(timeout=timeout)
    with calling(on_event, progress, StageProgress) as call:
        from winml.modelkit.building.analysis.command import AnalyzeRequest, check
        from winml.modelkit.building.analysis.command import analyze as run

        request = AnalyzeRequest(
            model=call.model(model),
            targets=words_of(target),
            all_targets=all_targets,
            dims=sizes_of(dims, shapes),
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            fusions=fusions,
            timeout_s=timeout,
        )
        result = run(request, call.on_event)
        if fail_if_unsupported:
            check(result)
        return result


def optimize(
    model: ModelLike,
    *,
    output: PathLike,
    target: str | None = None,
    level: str | None = None,
    enable: Words = (),
    disable: Words = (),
    opset: int | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    allow_unsupported: bool = False,
    verify: bool = True,
    seed: int = 0,
    rebuild: bool = False,
    overwrite: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> OptimizeResult:
    """Run graph passes on a model, compare its outputs before and after, and write it to `output`."""
    at_least(0, seed=seed)
    more_than_zero(timeout=timeout)
    with calling(on_event, progress, StageProgress) as call:
        from winml.modelkit.building.optimize.command import DEFAULT_TIMEOUT_S, OptimizeRequest
        from winml.modelkit.building.optimize.command import optimize as run

        request = OptimizeRequest(
            model=call.model(model),
            output=require_output(output),
            target=target,
            level=level,
            enable=words_of(enable),
            disable=words_of(disable),
            opset=opset,
            dims=sizes_of(dims, shapes),
            allow_unsupported=allow_unsupported,
            verify=verify,
            seed=seed,
            rebuild=rebuild,
            overwrite=overwrite,
            timeout_s=timeout or DEFAULT_TIMEOUT_S,
        )
        return run(request, call.on_event)


def quantize(
    model: ModelLike,
    *,
    output: PathLike,
    calibration: DataLike | None = None,
    target: str | None = None,
    precision: str | None = None,
    samples: int | None = None,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    section: Mapping[str, Any] | None = None,
    verify: bool = True,
    seed: int = 0,
    rebuild: bool = False,
    overwrite: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> QuantizeResult:
    """Quantize a model in the way the target prefers, compare its outputs, and write it to `output`.

    `section` changes keys of the quantize section, such as `{"per_channel": True, "op_types": ["MatMul"]}`.
    """
    more_than_zero(timeout=timeout)
    needs(calibration, "calibration", samples=samples, columns=columns, processor=processor, length=length)
    with calling(on_event, progress, StageProgress) as call:
        from winml.modelkit.building.quantize.command import QuantizeRequest
        from winml.modelkit.building.quantize.command import quantize as run

        request = QuantizeRequest(
            model=call.model(model),
            output=require_output(output),
            target=target,
            precision=precision,
            changes=_section_changes(section),
            dims=sizes_of(dims, shapes),
            data=call.data(
                calibration,
                samples=samples,
                columns=columns,
                processor=processor,
                length=length,
                seed=seed,
                name="calibration",
            ),
            compare=verify,
            rebuild=rebuild,
            overwrite=overwrite,
            timeout_s=timeout,
        )
        return run(request, call.on_event)


def quantize_within(
    model: ModelLike,
    *,
    output: PathLike,
    data: DataLike,
    max_drop: float | None = None,
    min_agreement: float | None = None,
    task: str | None = None,
    metric: str | None = None,
    judge: Literal["interval", "value"] = "interval",
    calibration: DataLike | None = None,
    target: str | None = None,
    precision: str | None = None,
    samples: int | None = None,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    section: Mapping[str, Any] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> MendResult:
    """Quantize as much of a model as holds a limit on the target; layers that lose most stay in float.

    The limit is `max_drop` of a metric or `min_agreement` of outputs, on `data`. `CheckFailed` is raised when nothing
    holds it; `samples` are those of the calibration, `columns`, `processor` and `length` are for both.
    """
    more_than_zero(timeout=timeout)
    at_least(0, max_drop=max_drop)
    one_of(("interval", "value"), judge=judge)
    needs(calibration, "calibration", samples=samples, columns=columns, processor=processor, length=length)
    with calling(on_event, progress, DebugProgress) as call:
        from winml.modelkit.accuracy.mend import Goal
        from winml.modelkit.accuracy.mend import quantize_within as run
        from winml.modelkit.building.quantize.command import QuantizeRequest

        found = call.data(data, columns=columns, processor=processor, length=length, seed=seed)
        if found is None:
            raise RequestError("there is no data to hold the limit on", hint="give it with `data=`")
        request = QuantizeRequest(
            model=call.model(model),
            output=require_output(output),
            target=target,
            precision=precision,
            changes=_section_changes(section),
            dims=sizes_of(dims, shapes),
            data=call.data(
                calibration,
                samples=samples,
                columns=columns,
                processor=processor,
                length=length,
                seed=seed,
                name="calibration",
            ),
            overwrite=overwrite,
            timeout_s=timeout,
        )
        goal = Goal(data=found, task=task, metric=metric, max_drop=max_drop, min_agreement=min_agreement, by=judge)
        return run(request, goal, call.on_event)


def sensitivity(
    model: ModelLike,
    *,
    calibration: DataLike | None = None,
    data: DataLike | None = None,
    task: str | None = None,
    metric: str | None = None,
    group: Literal["layer", "op-type", "block"] = "layer",
    target: str | None = None,
    precision: str | None = None,
    samples: int | None = None,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    length: int | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    section: Mapping[str, Any] | None = None,
    seed: int = 0,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> SensitivityResult:
    """Measure what quantizing each layer of a model alone does to its outputs, on the target itself.

    Variants run on `data`, or on the calibration data; with `task` or `metric`, `data` is labelled and the drop of the
    metric ranks layers. `samples` are those of the calibration. What was measured before
    comes from the cache.
    """
    more_than_zero(timeout=timeout)
    one_of(("layer", "op-type", "block"), group=group)
    needs(calibration, "calibration", samples=samples)
    needs(data, "data", task=task, metric=metric)
    with calling(on_event, progress, DebugProgress) as call:
        from winml.modelkit.accuracy.sensitivity import SensitivityRequest
        from winml.modelkit.accuracy.sensitivity import sensitivity as run
        from winml.modelkit.building.quantize.command import QuantizeRequest

        request = SensitivityRequest(
            quantize=QuantizeRequest(
                model=call.model(model),
                output="",
                target=target,
                precision=precision,
                changes=_section_changes(section),
                dims=sizes_of(dims, shapes),
                data=call.data(
                    calibration,
                    samples=samples,
                    columns=columns,
                    processor=processor,
                    length=length,
                    seed=seed,
                    name="calibration",
                ),
                timeout_s=timeout,
            ),
            data=call.data(data, columns=columns, processor=processor, length=length, seed=seed),
            task=task,
            metric=metric,
            grouping=group,
        )
        return run(request, call.on_event)


def _section_changes(section: Mapping[str, Any] | None) -> dict[str, Any]:
    """Keys of the quantize section; lists are its tuples, and an unknown key is an error with the nearest one."""
    from winml.modelkit.core.config import QuantizeSection
    from winml.modelkit.core.values import keys

    one_of(keys(QuantizeSection), **{f"section[{name!r}]": name for name in section or {}})
    return {name: tuple(value) if isinstance(value, list) else value for name, value in (section or {}).items()}


def compile(  # noqa: A001 - an attribute of the package, as `re.compile` is one
    models: ModelLike | Sequence[ModelLike],
    *,
    output: PathLike | None = None,
    output_dir: PathLike | None = None,
    target: str | None = None,
    config: PathLike | None = None,
    compiler: str | None = None,
    embed: bool = False,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    qnn_sdk_root: PathLike | None = None,
    verify: bool = True,
    rebuild: bool = False,
    overwrite: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> CompileResult:
    """Compile models for an execution provider into ONNX files with EP contexts; several share one context.

    One model goes to the file `output`, several to the folder `output_dir`. Models that fail raise, with what
    succeeded in `error.result`.
    """
    more_than_zero(timeout=timeout)
    with calling(on_event, progress, StageProgress) as call:
        from winml.modelkit.building.compile.command import (
            DEFAULT_TIMEOUT_S,
            CompileRequest,
            StoredSettings,
            compile_models,
            load_settings,
            raise_for,
        )

        source = None if config is None else path_of(config, "config")
        request = CompileRequest(
            models=call.models(models),
            output=check_output(output),
            output_dir=check_output(output_dir),
            target=target,
            stored=StoredSettings() if source is None else load_settings(source),
            compiler=compiler,
            embed=embed or None,
            config_source=source or "",
            ep_options=options_of(ep_options),
            trust=trust_of(trust_options),
            qnn_sdk_root=text_of(qnn_sdk_root),
            validate=verify,
            reuse=not rebuild,
            overwrite=overwrite,
            timeout_s=timeout or DEFAULT_TIMEOUT_S,
        )
        result = compile_models(request, call.on_event)
        raise_for(result)
        return result


def export(
    model: PathLike,
    *,
    output: PathLike,
    task: str | None = None,
    part: str | None = None,
    opset: int | None = None,
    exporter: str | None = None,
    shapes: Shapes | None = None,
    dynamic_axes: Words | None = None,
    input_specs: Mapping[str, Mapping[str, Any]] | None = None,
    parity: bool = True,
    trust_remote_code: bool = False,
    overwrite: bool = False,
    rebuild: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> ExportResult:
    """Export a Hugging Face model to ONNX in the folder `output`, and compare it with PyTorch."""
    more_than_zero(timeout=timeout)
    with calling(on_event, progress, StageProgress) as call:
        from winml.modelkit.building.export.command import ExportRequest
        from winml.modelkit.building.export.command import export as run

        request = ExportRequest(
            model=path_of(model, "model"),
            output=require_output(output),
            options=_export_options(task, part, exporter, shapes, dynamic_axes, input_specs, parity, trust_remote_code),
            opset=opset,
            overwrite=overwrite,
            rebuild=rebuild,
            timeout_s=timeout,
        )
        return run(request, call.on_event)


def build(
    model: ModelLike,
    *,
    output: PathLike | None = None,
    target: str | None = None,
    precision: str = "auto",
    calibration: DataLike | None = None,
    samples: int | None = None,
    columns: Mapping[str, str] | None = None,
    processor: PathLike | None = None,
    seed: int = 0,
    optimize: bool = True,
    level: str | None = None,
    enable: Words = (),
    disable: Words = (),
    opset: int | None = None,
    dims: Dims | None = None,
    shapes: Shapes | None = None,
    compile: bool = False,  # noqa: A002 - as the option is called
    threads: int | None = None,
    ep_options: EPOptions | None = None,
    trust_options: Words = (),
    task: str | None = None,
    part: str | None = None,
    exporter: str | None = None,
    dynamic_axes: Words | None = None,
    input_specs: Mapping[str, Mapping[str, Any]] | None = None,
    parity: bool = True,
    trust_remote_code: bool = False,
    analyze: bool = True,
    prove: bool = True,
    prove_timeout: float = 300.0,
    fallback_precision: bool = False,
    overwrite: bool = False,
    rebuild: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> BuildResult:
    """Export, optimize, quantize and compile a model for a target, and prove it there; stages come from the cache.

    Without `output` the build folder is kept in the cache: `result.folder` names it. Of a composite model one `part`
    is built.
    """
    at_least(1, threads=threads)
    more_than_zero(timeout=timeout, prove_timeout=prove_timeout)
    needs(calibration, "calibration", samples=samples, columns=columns, processor=processor)
    with calling(on_event, progress, StageProgress) as call:
        from winml.modelkit.building.build import BuildRequest
        from winml.modelkit.building.config import ConfigRequest
        from winml.modelkit.core.model_ref import parse

        source = call.model(model)
        # Shapes of an exported model go to the exporter; those of an ONNX model are sizes like any other.
        exported = parse(source).is_exported
        request = BuildRequest(
            config=ConfigRequest(
                model=source,
                target=target,
                precision=precision,
                data=call.data(
                    calibration, samples=samples, columns=columns, processor=processor, seed=seed, name="calibration"
                ),
                optimize=optimize,
                level=level,
                enable=words_of(enable),
                disable=words_of(disable),
                opset=opset,
                dims=sizes_of(dims, None if exported else shapes),
                compile=compile,
                threads=threads,
                ep_options=options_of(ep_options),
                export=_export_options(
                    task,
                    part,
                    exporter,
                    shapes if exported else None,
                    dynamic_axes,
                    input_specs,
                    parity,
                    trust_remote_code,
                ),
                trust=trust_of(trust_options),
            ),
            output=check_output(output),
            overwrite=overwrite,
            rebuild=rebuild,
            analyze=analyze,
            timeout_s=timeout,
            prove=prove,
            prove_timeout_s=prove_timeout,
            fallback_precision=fallback_precision,
            trust_remote_code=trust_remote_code,
            trust=trust_of(trust_options),
        )
        return _build(request, call)


def build_from_config(
    config: PathLike | BuildConfig,
    *,
    model: ModelLike | None = None,
    output: PathLike | None = None,
    trust_options: Words = (),
    trust_remote_code: bool = False,
    analyze: bool = True,
    prove: bool = True,
    prove_timeout: float = 300.0,
    fallback_precision: bool = False,
    overwrite: bool = False,
    rebuild: bool = False,
    timeout: float | None = None,
    on_event: OnEvent | None = None,
    progress: bool | None = None,
) -> BuildResult:
    """Build what a config says, as the `build_config.json` of a build folder; of another `model` if one is given."""
    more_than_zero(timeout=timeout, prove_timeout=prove_timeout)
    with calling(on_event, progress, StageProgress) as call:
        from winml.modelkit.building.build import BuildRequest
        from winml.modelkit.core.config import BuildConfig

        request = BuildRequest(
            config=config if isinstance(config, BuildConfig) else path_of(config, "config"),
            model=None if model is None else call.model(model),
            output=check_output(output),
            overwrite=overwrite,
            rebuild=rebuild,
            analyze=analyze,
            timeout_s=timeout,
            prove=prove,
            prove_timeout_s=prove_timeout,
            fallback_precision=fallback_precision,
            trust_remote_code=trust_remote_code,
            trust=trust_of(trust_options),
        )
        return _build(request, call)


def _build(request: BuildRequest, call: Call) -> BuildResult:
    from winml.modelkit.building.build import build as run
    from winml.modelkit.building.build_parts import of_part, parts_of
    from winml.modelkit.building.export.families import DECODER, WHOLE

    parts = parts_of(request, call.on_event)
    if parts not in ((WHOLE,), (DECODER,)):
        raise RequestError(
            f"the model has the parts {', '.join(parts)}",
            hint=f"build one with `part={parts[0]!r}`; the command `winml build` builds all of them",
        )
    return run(request if parts == (WHOLE,) else replace(of_part(request, DECODER), or_whole=True), call.on_event)


def _export_options(
    task: str | None,
    part: str | None,
    exporter: str | None,
    shapes: Shapes | None,
    dynamic_axes: Words | None,
    input_specs: Mapping[str, Mapping[str, Any]] | None,
    parity: bool,
    trust_remote_code: bool,
) -> ExportOptions:
    """How a Hugging Face model is exported."""
    from winml.modelkit.building.export.resolve import ExportOptions

    if exporter is not None:
        one_of(("transformers", "legacy", "genai"), exporter=exporter)
    return ExportOptions(
        task=task,
        part=part,
        exporter=exporter,
        shapes={name: tuple(shape) for name, shape in (shapes or {}).items()},
        dynamic_axes=None if dynamic_axes is None else words_of(dynamic_axes),
        input_specs=dict(input_specs or {}),
        verify=parity,
        trust_remote_code=trust_remote_code,
    )
