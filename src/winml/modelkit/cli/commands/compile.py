"""`winml compile`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import (
    HELP,
    examples,
    json_option,
    models_options,
    output_option,
    rebuild_option,
    resolve_models,
    target_options,
    timeout_option,
    trust_of,
    trust_option,
    verify_option,
)


@click.command(
    "compile",
    help="Compile models for an execution provider into ONNX files with EP contexts. Several models share one context: "
    "weights they have in common are stored once. Each result is compared with its source.",
    epilog=examples(
        "winml compile -m model.onnx --target qnn/npu -o model_ctx.onnx",
        "winml compile -m prefill.onnx -m decode.onnx --target qnn/npu --output-dir compiled",
        "winml compile -m model.onnx --target qnn/npu --ep-options soc_model=60 --embed --output-dir compiled",
        "winml compile --list --target qnn/npu",
    ),
    cls=Command,
    context_settings=HELP,
)
@models_options("An ONNX file; may be repeated.")
@output_option("FILE", "Output file for a single model.")
@output_option("DIR", "Folder for NAME_ctx.onnx; required for several models.", "--output-dir")
@target_options
@click.option("-c", "--config", "config_file", metavar="FILE", help="Build config whose compile section is used.")
@click.option("--compiler", metavar="NAME", help="ort (default), ort_jit or qairt; `--list` shows which are available.")
@click.option("--embed", is_flag=True, help="Put the compiled data into the ONNX file (one model).")
@click.option(
    "--ep-options", multiple=True, metavar="K=V", help="Option of the execution provider; overrides --config."
)
@trust_option
@click.option("--qnn-sdk-root", metavar="DIR", help="Folder of the QAIRT SDK (default: $QNN_SDK_ROOT).")
@verify_option("Do not compare the result with its source.", "--no-validate")
@rebuild_option("Compile again and ignore the cache.", "--no-cache")
@timeout_option("Time limit per model in seconds (default 1800).")
@click.option("--overwrite", is_flag=True, help="Replace existing files.")
@click.option(
    "--list", "listing", is_flag=True, help="Show the compilers for the target, and why some are not available."
)
@json_option
def command(listing: bool, sample: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.building.compile.command import compile_models, list_compilers, raise_for
    from winml.modelkit.cli.next_command import short_path
    from winml.modelkit.cli.stage_progress import CompileProgress
    from winml.modelkit.render.compile import compile_text, compilers_text

    request = _request(sample, given)
    if listing:
        console.show_result(compilers_text, list_compilers(request), as_json=as_json)
        return
    with CompileProgress() as progress:
        result = compile_models(request, progress.on_event)
    if not as_json:
        console.show(compile_text, result)
    for warning in result.warnings:
        console.say("warning", warning)
    raise_for(result)
    if as_json:
        console.data_json(result)
        return
    folder = Path(short_path(result.folder))
    for row in result.models:
        if row.status == "compiled":
            console.say("wrote", str(folder / row.output))
    runs = [row.output for row in result.models if row.status == "compiled" and row.validation.status == "passed"]
    if runs:
        path = console.quote(str(folder / runs[0]))
        console.say("next", f"winml perf -m {path} --target {result.target}")


def _request(sample: bool, given: dict[str, Any]) -> Any:
    from winml.modelkit.building.compile.command import DEFAULT_TIMEOUT_S, CompileRequest, StoredSettings, load_settings
    from winml.modelkit.ep.options import parse_pairs

    return CompileRequest(
        models=resolve_models(given["models"], sample),
        output=given["output"],
        output_dir=given["output_dir"],
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        stored=StoredSettings() if given["config_file"] is None else load_settings(given["config_file"]),
        compiler=given["compiler"],
        embed=given["embed"] or None,
        config_source=given["config_file"] or "",
        ep_options=parse_pairs(given["ep_options"]),
        trust=trust_of(given),
        qnn_sdk_root=given["qnn_sdk_root"],
        validate=not given["no_verify"],
        reuse=not given["rebuild"],
        overwrite=given["overwrite"],
        timeout_s=given["timeout"] or DEFAULT_TIMEOUT_S,
    )
