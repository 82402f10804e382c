"""`winml feed`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import HELP, examples, json_option, output_option, stack
from winml.modelkit.cli.spellings import FirstArgument, take_one


@click.group(
    "feed",
    help="Publish folders and fetch them again: `folder:PATH`, `oci://HOST/REPOSITORY`, `azure:ORG/PROJECT/FEED`.",
    epilog=examples(
        "winml feed push resnet_npu --feed folder:artifacts",
        "winml feed list --feed oci://registry.example.com/models",
        "winml feed pull -m microsoft/resnet-50 --file 'qnn_npu/model.onnx*' -o out --feed folder:artifacts",
        "winml feed verify -m microsoft/resnet-50 --feed folder:artifacts",
    ),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


feed_option = click.option(
    "--feed", "address", required=True, envvar="WINML_FEED", metavar="FEED", help="The feed; a plain path is a folder."
)
wanted_options = stack(
    click.option(
        "-m", "--model", metavar="MODEL", multiple=True, callback=take_one, help="The model, as it was published."
    ),
    click.option("--task", metavar="TASK", help="Its task, when it was published with one."),
    click.option("--package-name", metavar="NAME", help="The package (default: one per model and task)."),
    click.option("--version", metavar="VERSION", help="One version, in full."),
    click.option(
        "--run-stamp", metavar="STAMP", help="The run that published it, such as 20260609 (push: the date in UTC)."
    ),
    click.option("--target", metavar="EP[/DEVICE]", help="The target it was built for."),
)


model_argument = click.argument("first_argument", cls=FirstArgument, metavar="[MODEL]", option="-m", to="model")


@command.command(
    "push",
    help="Publish a build folder, or any folder, as one version. Model and target are those of the build unless given.",
    epilog=examples("winml feed push resnet_npu -m microsoft/resnet-50 --run-stamp 20260609 --feed folder:artifacts"),
    context_settings=HELP,
)
@click.argument("folder")
@feed_option
@wanted_options
@click.option(
    "--install-extension",
    is_flag=True,
    help="Let `az` download and install its extension azure-devops if it is missing.",
)
@json_option
def push(folder: str, address: str, install_extension: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.progress import FeedProgress
    from winml.modelkit.feed import feed_command
    from winml.modelkit.render.feed import push_text

    with FeedProgress() as progress:
        wanted = feed_command.Wanted(**given)
        result = feed_command.push(folder, address, wanted, progress.on_event, install_extension=install_extension)
    console.show_result(push_text, result, as_json=as_json)
    if not as_json:
        console.say(
            "next",
            f"winml feed pull --package-name {console.quote(result.package)} "
            f"--version {console.quote(result.version)} "
            f"--feed {console.quote(address)} -o DIR",
        )


@command.command(
    "list",
    help="List packages, or the versions of one.",
    epilog=examples("winml feed list --feed folder:artifacts", "winml feed list -m digits --feed folder:artifacts"),
    context_settings=HELP,
)
@model_argument
@feed_option
@wanted_options
@json_option
def listing(address: str, as_json: bool, **given: Any) -> None:
    from winml.modelkit.feed import feed_command
    from winml.modelkit.render.feed import packages_text, versions_text

    result = feed_command.list_feed(address, feed_command.Wanted(**given))
    if isinstance(result, feed_command.PackageList):
        console.show_result(packages_text, result, as_json=as_json)
    else:
        console.show_result(versions_text, result, as_json=as_json)


@command.command(
    "pull",
    help="Download a model, one of its targets or some of its files into a folder; an interrupted pull resumes when "
    "started again. Several targets are placed side by side as EP_DEVICE/.",
    epilog=examples(
        "winml feed pull -m digits -o digits --feed folder:artifacts",
        "winml feed pull -m digits --target qnn/npu -o digits_npu --feed folder:artifacts",
        "winml feed pull -m digits --file 'qnn_npu/model.onnx*' -o digits --feed folder:artifacts",
    ),
    context_settings=HELP,
)
@model_argument
@feed_option
@wanted_options
@click.option("--file", "pattern", metavar="PATTERN", help="Only matching files; `*` stays in a folder, `**` does not.")
@output_option("DIR", "Folder for the files.", required=True)
@click.option("--overwrite", is_flag=True, help="Replace files that have different content.")
@json_option
def pull(address: str, pattern: str | None, output: str, overwrite: bool, as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.next_command import after_pull
    from winml.modelkit.cli.progress import FeedProgress
    from winml.modelkit.feed import feed_command
    from winml.modelkit.render.feed import pull_text

    wanted = feed_command.Wanted(**given)
    with FeedProgress() as progress:
        result = feed_command.pull(
            address, wanted, output, pattern=pattern, overwrite=overwrite, on_event=progress.on_event
        )
    console.show_result(pull_text, result, as_json=as_json)
    if not as_json:
        for pulled in result.versions:
            console.say("wrote", pulled.folder)
        if (following := after_pull(result)) is not None:
            console.say("next", following)


@command.command(
    "verify",
    help="Read and hash every file of a model in the feed, or of all models; exit 5 when one is missing or damaged.",
    epilog=examples("winml feed verify -m digits --feed folder:artifacts", "winml feed verify --feed folder:artifacts"),
    context_settings=HELP,
)
@model_argument
@feed_option
@wanted_options
@json_option
def verify(address: str, as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.progress import FeedProgress
    from winml.modelkit.feed import feed_command
    from winml.modelkit.render.feed import verify_all_text, verify_text

    with FeedProgress() as progress:
        result = feed_command.verify(address, feed_command.Wanted(**given), progress.on_event)
    if isinstance(result, feed_command.VerifyAllResult):
        console.show_result(verify_all_text, result, as_json=as_json)
    else:
        console.show_result(verify_text, result, as_json=as_json)
