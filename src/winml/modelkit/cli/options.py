"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}
"""Context settings of every command."""

F = TypeVar("F", bound=Callable[..., Any])


def stack(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several click decorators as one, in the order they show in the help."""

    def apply(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def join_words(words: Sequence[str], last: str) -> str:
    """Words in a sentence: `a, b or c`."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


json_option = click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout, also on failure.")

target_options = stack(
    click.option("--target", metavar="EP[/DEVICE]", help="Where to run: `cpu`, `qnn/npu`, `openvino/cpu`, `auto`."),
    click.option("--ep", metavar="EP", help="Execution provider; its best device on this machine is used."),
    click.option(
        "-d", "--device", metavar="DEVICE", help="npu, gpu, cpu or auto; its best provider on this machine is used."
    ),
)

trust_option = click.option(
    "--trust-options",
    multiple=True,
    metavar="NAME[,NAME]",
    help="Options that a build folder or config may set although they name libraries or files; each use is reported.",
)

_REVISION = "winml.revision"


def _keep_revision(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[_REVISION] = value


model_options = stack(
    click.option(
        "-m",
        "--model",
        metavar="MODEL",
        help="An ONNX file, a build folder, or a Hugging Face model: its folder, ORG/NAME, or ORG/NAME/FILE.onnx.",
    ),
    click.option(
        "--revision",
        metavar="REV",
        callback=_keep_revision,
        expose_value=False,
        help="Branch, tag or commit of a Hugging Face model; also written ORG/NAME@REV.",
    ),
    click.option("--sample", is_flag=True, help="Use the digits classifier that ships with winml."),
)


size_options = stack(
    click.option(
        "--dim",
        "dims",
        multiple=True,
        metavar="NAME=N",
        help="Size of a dynamic dimension, by name or position: height=224, x[2]=48. Only a batch defaults to 1.",
    ),
    click.option(
        "--shape",
        "shapes",
        multiple=True,
        metavar="INPUT=N[,N…]",
        help="Sizes of a whole input: x=1,3,48,320.",
    ),
)


def _set_max_sample(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Pass the limit to workers through the environment; a document cannot change it."""
    if value is not None:
        import os

        from winml.modelkit.cli.option_values import size_bytes
        from winml.modelkit.core.limits import VARIABLE

        os.environ[VARIABLE] = str(max(1, size_bytes(value)))


max_sample_option = click.option(
    "--max-sample",
    metavar="SIZE",
    callback=_set_max_sample,
    expose_value=False,
    help="Maximum size of the inputs of one run that come from a file (default 512M).",
)

input_options = stack(
    click.option("--batch-size", type=click.IntRange(min=1), help="Size of the model's batch dimension."),
    size_options,
    click.option(
        "--int-range",
        "int_ranges",
        multiple=True,
        metavar="[INPUT=]LOW:HIGH",
        help="Values of integer inputs, both ends included (default 0:1).",
    ),
    click.option("--input-data", metavar="FILE.npz", help="Inputs by name, instead of synthetic ones."),
    max_sample_option,
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of synthetic inputs."),
)


def _check_output(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Raise before any work when the place cannot be written to."""
    if value is not None:
        from pathlib import Path

        from winml.modelkit.store import atomic

        atomic.check_place(Path(value))
    return value


def output_option(metavar: str, text: str, *words: str, required: bool = False) -> Callable[[F], F]:
    """An option for what the command writes, `-o` unless `words` are given; it is checked before the work starts."""
    words = words or ("-o", "--output")
    return click.option(*words, metavar=metavar, required=required, help=text, callback=_check_output)


output_options = stack(
    output_option("FILE", "Also write the JSON result to a file."),
    click.option("--overwrite", is_flag=True, help="Replace an existing output file."),
)


def trust_of(given: dict[str, Any]) -> Any:
    """What `--trust-options` lets documents set; every use is reported."""
    from winml.modelkit.cli import console
    from winml.modelkit.ep.trust import Trust, Used, read_names

    def show(used: Used) -> None:
        console.say("note", str(used))

    return Trust(read_names(given["trust_options"]), on_use=show)


def examples(*lines: str) -> str:
    """The end of a help text: commands that can be pasted, one per line."""
    return "\n".join(lines)


def resolve_model(model: str | None, sample: bool) -> str:
    """The model a command works on: `-m MODEL`, at its revision, or `--sample`."""
    if sample == (model is not None):
        raise click.UsageError("give either `-m MODEL` or `--sample`")
    if model is not None:
        return at_revision(model)
    from winml.modelkit import sample as sample_files

    return str(sample_files.MODEL)


def at_revision(model: str) -> str:
    """The reference to a model at the revision from `--revision`."""
    revision = click.get_current_context().meta.get(_REVISION)
    if revision is None:
        return model
    from winml.modelkit.core.model_ref import parse

    return str(parse(model).at(revision))
