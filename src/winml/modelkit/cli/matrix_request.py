"""From the options of `winml matrix` to its requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from winml.modelkit.build_matrix import models
from winml.modelkit.build_matrix.cells import BuildOptions, make_build_options
from winml.modelkit.build_matrix.command import PlanRequest, RunRequest
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.cli import console
from winml.modelkit.cli.build_options import calibration_data
from winml.modelkit.cli.cluster_options import cluster_of
from winml.modelkit.cli.option_values import size_bytes
from winml.modelkit.cli.options import targets_of
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.plain_text import command_line
from winml.modelkit.core.suggest import near_path
from winml.modelkit.ep.trust import read_names

SAMPLE = "digits"


def plan_request(given: dict[str, Any]) -> PlanRequest:
    """What is to be built."""
    return PlanRequest(
        models=_models(given),
        targets=targets_of(given),
        ep=given["ep"],
        device=given["device"],
        run_stamp=given["run_stamp"],
        package_name=given["package_name"],
        compile=given["compiled"],
        options=_build_options(given),
    )


def run_request(given: dict[str, Any]) -> RunRequest:
    """What is to be built, and how."""
    if given["trust_journal"] and not given["resume"]:
        raise click.UsageError("`--trust-journal` needs `--resume`")
    cluster = cluster_of(given)
    if cluster is not None and given["jobs"] != 1:
        raise click.UsageError("`--jobs` cannot be combined with `--cluster`: each node has its own limit")
    return RunRequest(
        plan=plan_request(given),
        output=given["output"],
        command=_command(sys.argv[1:]),
        feed=given["feed"],
        resume=given["resume"],
        trust_journal=given["trust_journal"],
        keep_local=given["keep_local"],
        skip_existing=given["upload_skip_existing"],
        jobs=given["jobs"],
        max_disk=None if given["max_disk"] is None else size_bytes(given["max_disk"]),
        cluster=cluster,
        staging=given["staging"],
    )


def _models(given: dict[str, Any]) -> tuple[MatrixModel, ...]:
    ways = {"--models": given["model_list"], "-m": given["models"], "--sample": given["sample"]}
    named = [option for option, value in ways.items() if value]
    if len(named) > 1:
        raise click.UsageError(f"`{named[0]}` cannot be combined with `{named[1]}`")
    if not named:
        raise click.UsageError("name models with `-m MODEL`, with `--models FILE`, or use `--sample`")
    if given["sample"]:
        from winml.modelkit import sample

        return (MatrixModel(str(sample.MODEL), SAMPLE, task=given["task"], data=str(sample.CALIBRATION)),)
    if given["models"]:
        found = [models.make_model(word, Path.cwd(), task=given["task"]) for word in given["models"]]
    else:
        found = _read_list(given["model_list"])
    return models.check_models(models.of_priority(found, given["priority"]))


def _read_list(path: str) -> list[MatrixModel]:
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise RequestError(f"list of models not found: `{path}`", hint=near_path(path)) from error
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise RequestError(f"`{path}` is not a list of models: {error}") from error
    return models.parse_list(text, file.absolute().parent, source=path, on_note=lambda note: console.say("note", note))


def _build_options(given: dict[str, Any]) -> BuildOptions:
    return make_build_options(
        calibration_data(False, given),
        samples=given["samples"],
        seed=given["seed"],
        analyze=not given["no_analyze"],
        trusted=read_names(given["trust_options"]),
        timeout_s=given["timeout"],
    )


def _command(args: list[str]) -> str:
    """The command as given, without the options of a resumed run."""
    kept: list[str] = []
    skip = False
    for word in args:
        if skip or word in ("--resume", "--continue", "--json") or word.startswith("--run-stamp="):
            skip = False
            continue
        skip = word == "--run-stamp"
        if not skip:
            kept.append(word)
    return command_line(["winml", *kept])
