"""`winml ep`."""

from __future__ import annotations

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import HELP, examples, json_option, rebuild_option


@click.group(
    "ep",
    help="Execution providers that need their own onnxruntime: each is installed in a private environment in the cache "
    "and used like any other.",
    epilog=examples("winml ep install openvino", "winml ep list", "winml ep options qnn", "winml ep remove openvino"),
    cls=Group,
    context_settings=HELP,
)
def command() -> None:
    pass


@command.command(
    "install",
    help="Install an execution provider: from Windows ML where the package `windowsml` is installed, otherwise in a "
    "private environment.",
    epilog=examples("winml ep install openvino", "winml ep install openvino --rebuild"),
    context_settings=HELP,
)
@click.argument("ep")
@click.option("--version", metavar="VERSION", help="Version of the package (default: the newest).")
@rebuild_option("Install it again in place of the existing environment.", "--reinstall")
@json_option
def install(ep: str, version: str | None, rebuild: bool, as_json: bool) -> None:
    from winml.modelkit.ep import ep_command
    from winml.modelkit.render.ep import environments_text

    result = ep_command.install(ep, version=version, reinstall=rebuild, on_step=lambda step: console.say("note", step))
    console.show_result(environments_text, result, as_json=as_json)
    if not as_json:
        console.say("next", f"winml perf --sample --ep {ep}")


@command.command(
    "list",
    help="List the private environments.",
    epilog=examples("winml ep list", "winml ep list --json"),
    context_settings=HELP,
)
@json_option
def listing(as_json: bool) -> None:
    from winml.modelkit.ep import ep_command
    from winml.modelkit.render.ep import environments_text

    console.show_result(environments_text, ep_command.list_environments(), as_json=as_json)


@command.command(
    "options",
    help="List the options that `--ep-options` takes, of one execution provider or of all. An option that names a "
    "library or a file, or makes the provider write one, is accepted on the command line only.",
    epilog=examples("winml ep options qnn", "winml ep options --json"),
    context_settings=HELP,
)
@click.argument("ep", required=False)
@json_option
def options(ep: str | None, as_json: bool) -> None:
    from winml.modelkit.ep.options_command import list_options
    from winml.modelkit.render.ep import options_text

    console.show_result(options_text, list_options(ep), as_json=as_json)


@command.command(
    "remove",
    help="Delete the private environment of an execution provider.",
    epilog=examples("winml ep remove openvino"),
    context_settings=HELP,
)
@click.argument("ep")
@json_option
def remove(ep: str, as_json: bool) -> None:
    from winml.modelkit.ep import ep_command
    from winml.modelkit.render.ep import environments_text

    console.show_result(environments_text, ep_command.remove(ep), as_json=as_json)
