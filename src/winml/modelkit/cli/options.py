"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from winml.modelkit.cli.spellings import FirstArgument, earlier, take_one

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


json_option = stack(
    click.option("--json", "as_json", is_flag=True, help="Write one JSON object to stdout, also on failure."),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        help="No progress, notes and next commands; warnings and errors stay.",
    ),
)
"""What every command takes. `run.invoke` reads `--quiet`, because notes about options come while they are read."""

_ep_options = stack(
    click.option("--ep", metavar="EP", help="Execution provider; its best device on this machine is used."),
    click.option(
        "-d", "--device", metavar="DEVICE", help="npu, gpu, cpu or auto; its best provider on this machine is used."
    ),
)

target_options = stack(
    click.option(
        "--target",
        metavar="EP[/DEVICE]",
        multiple=True,
        callback=take_one,
        help="Where to run: `cpu`, `qnn/npu`, `openvino/cpu`, `auto`.",
    ),
    _ep_options,
)


def target_list_options(text: str) -> Callable[[F], F]:
    """Options for several targets without `--ep` and `--device`; `targets_of` reads them."""
    return stack(
        click.option("--target", "targets", multiple=True, metavar="EP[/DEVICE]", help=text),
        click.option("--targets", "target_list", metavar="TARGET,...", help="The same as a list: cpu,qnn/npu."),
    )


def targets_options(text: str) -> Callable[[F], F]:
    """Options for several targets; `targets_of` reads them."""
    return stack(target_list_options(text), _ep_options)


def targets_of(given: dict[str, Any]) -> tuple[str, ...]:
    """The targets from `--target`, which may be repeated, or from the list `--targets`; none when neither is given."""
    from winml.modelkit.ep.targets import parse_target

    words: tuple[str, ...] = given["targets"]
    if given["target_list"] is not None:
        if words:
            raise click.UsageError("`--targets` cannot be combined with `--target`")
        words = tuple(word.strip() for word in given["target_list"].split(",") if word.strip())
        if not words:
            raise click.UsageError("`--targets` names no target")
    asked = [parse_target(word).key for word in words]
    twice = next((word for number, word in enumerate(words) if asked[number] in asked[:number]), None)
    if twice is not None:
        raise click.UsageError(f"target `{twice}` is given twice")
    if words and (given.get("ep") is not None or given.get("device") is not None):
        raise click.UsageError("`--target` and `--targets` cannot be combined with `--ep` or `--device`")
    return words


trust_option = click.option(
    "--trust-options",
    multiple=True,
    metavar="NAME,...",
    help="Options that a build folder or config may set although they name libraries or files; each use is reported.",
)

ep_options_option = click.option(
    "--ep-options", multiple=True, metavar="K=V", help="Option of the execution provider; unknown ones are errors."
)

threads_option = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads inside an operator (default: the runtime's choice).",
)


def rebuild_option(text: str, *earlier_names: str) -> Callable[[F], F]:
    """The one option for doing again what the cache has."""
    return stack(
        click.option("--rebuild", is_flag=True, help=text),
        *(earlier(name, is_flag=True, to="rebuild", now="--rebuild") for name in earlier_names),
    )


def verify_option(text: str, *earlier_names: str) -> Callable[[F], F]:
    """The one option for not comparing outputs with those of the source."""
    return stack(
        click.option("--no-verify", is_flag=True, help=text),
        *(earlier(name, is_flag=True, to="no_verify", now="--no-verify") for name in earlier_names),
    )


priority_option = stack(
    click.option("--normal-priority", is_flag=True, help="Do not raise the process priority while measuring."),
    earlier("--no-priority", is_flag=True, to="normal_priority", now="--normal-priority"),
)

knowledge_option = click.option(
    "--knowledge",
    metavar="DIR",
    help="Your own findings and outcomes, read after the shipped ones (default: `$WINML_KNOWLEDGE` or the platform's "
    "data folder).",
)


def timeout_option(text: str, default: float | None = None) -> Callable[[F], F]:
    """A time limit in seconds."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=default,
        show_default=default is not None,
        metavar="S",
        help=text,
    )


def seed_option(text: str) -> Callable[[F], F]:
    return click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help=text)


_REVISION = "winml.revision"


def _keep_revision(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[_REVISION] = value


sample_option = click.option("--sample", is_flag=True, help="Use the digits classifier that ships with winml.")

own_model_options = stack(
    click.argument("first_argument", cls=FirstArgument, metavar="[MODEL]", option="-m", to="model"),
    click.option(
        "-m",
        "--model",
        metavar="MODEL",
        multiple=True,
        callback=take_one,
        help="An ONNX file, a build folder, or a Hugging Face model: its folder, ORG/NAME, or ORG/NAME/FILE.onnx.",
    ),
    click.option(
        "--revision",
        metavar="REV",
        callback=_keep_revision,
        expose_value=False,
        help="Branch, tag or commit of a Hugging Face model; also written ORG/NAME@REV.",
    ),
)
"""For a command that has no use for the sample."""
model_options = stack(own_model_options, sample_option)


def models_options(text: str) -> Callable[[F], F]:
    """Options of a command that takes several models."""
    return stack(
        click.argument("first_arguments", cls=FirstArgument, nargs=-1, metavar="[MODEL]...", option="-m", to="models"),
        click.option("-m", "--model", "models", multiple=True, metavar="MODEL", help=text),
        sample_option,
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
        metavar="NAME=N[,N…]",
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
    click.option(
        "--batch-size",
        type=click.IntRange(min=1),
        metavar="N",
        help="Size of the model's batch dimension, or sequences that are generated at once.",
    ),
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
    seed_option("Seed of synthetic inputs."),
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


def refuse_options(context: click.Context, beside: str, *, besides: tuple[str, ...]) -> None:
    """Raise for the first option that was given, except `besides`: it would have no effect beside `beside`."""
    for parameter in context.command.params:
        name = parameter.name or ""
        if name not in (*besides, "quiet") and context.get_parameter_source(name) is _COMMAND_LINE:
            raise click.UsageError(f"`{parameter.opts[-1]}` cannot be combined with `{beside}`")


_COMMAND_LINE = click.core.ParameterSource.COMMANDLINE


def trust_of(given: dict[str, Any]) -> Any:
    """What `--trust-options` lets documents set; every use is reported."""
    from winml.modelkit.cli import console
    from winml.modelkit.ep.trust import Trust, Used, read_names

    def show(used: Used) -> None:
        console.say("note", str(used))

    return Trust(read_names(given["trust_options"]), on_use=show)


answer_options = stack(
    click.option("--task", metavar="TASK", help="Task of the model (default: from its config.json)."),
    click.option("--processor", metavar="DIR", help="Folder with tokenizer, image processor and config.json."),
    click.option(
        "--length",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tokens per text, for a model with dynamic length.",
    ),
    click.option("--output-name", metavar="NAME", help="Output to judge (default: logits, or the first)."),
    click.option(
        "--top",
        type=click.IntRange(min=1, max=1000),
        default=5,
        show_default=True,
        metavar="N",
        help="Labels or words to show, the likeliest first.",
    ),
    click.option(
        "--task-option",
        "task_options",
        multiple=True,
        metavar="NAME=VALUE",
        help="Setting of the task: threshold (of boxes), chat, stop (of generated text).",
    ),
    click.option(
        "--new-tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help="Tokens to generate for a prompt, at most (default: 64, or half of a shorter context).",
    ),
    click.option(
        "--runtime",
        type=click.Choice(["genai", "onnxruntime"]),
        help="Program that runs a folder that generates text (default: what the build names, else onnxruntime-genai "
        "where it is installed and has the EP, else winml's own loop).",
    ),
)
"""What `run` and `serve` take to answer with a model; `model_request` reads them."""


def model_request(model: str, given: dict[str, Any], trust: Any, *, task: str | None = None) -> Any:
    """The model to answer with; `task` is the one it has where the user names none."""
    from winml.modelkit.cli.option_values import sizes
    from winml.modelkit.ep.options import parse_pairs
    from winml.modelkit.serving.run_command import ModelRequest

    return ModelRequest(
        model=model,
        task=given["task"] or task,
        target=given["target"],
        ep=given["ep"],
        device=given["device"],
        processor=given["processor"],
        length=given["length"],
        output=given["output_name"],
        task_options=parse_pairs(given["task_options"], option="--task-option", example="threshold=0.4"),
        top=given["top"],
        runtime=given["runtime"],
        new_tokens=given["new_tokens"],
        dims=sizes(given),
        threads=given["threads"],
        ep_options=parse_pairs(given["ep_options"]),
        strict_ep=given["strict_ep"],
        trust=trust,
    )


def examples(*lines: str) -> str:
    """The end of a help text: commands that can be pasted, one per line."""
    return "\n".join(lines)


def resolve_model(model: str | None, sample: bool) -> str:
    """The model a command works on: `-m MODEL`, at its revision, or `--sample`."""
    if sample and model is not None:
        raise click.UsageError(f"`--sample` cannot be combined with `-m {model}`")
    if model is not None:
        return at_revision(model)
    if not sample:
        raise click.UsageError("name a model with `-m MODEL`, or use `--sample`")
    return _sample_model()


def resolve_models(models: tuple[str, ...], sample: bool) -> tuple[str, ...]:
    """The models a command works on: those of `-m MODEL`, or `--sample`; none when neither is given."""
    if sample and models:
        raise click.UsageError(f"`--sample` cannot be combined with `-m {models[0]}`")
    return (_sample_model(),) if sample else models


def _sample_model() -> str:
    from winml.modelkit import sample

    return str(sample.MODEL)


def at_revision(model: str) -> str:
    """The reference to a model at the revision from `--revision`."""
    revision = click.get_current_context().meta.get(_REVISION)
    if revision is None:
        return model
    from winml.modelkit.core.model_ref import parse

    return str(parse(model).at(revision))
