"""`winml package`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.help import Group
from winml.modelkit.cli.options import HELP, examples, json_option, output_option


class PackageGroup(Group):
    """A first word that is no sub-command and names something that exists is a build folder, for `create`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not args[0].startswith("-") and Path(args[0]).exists():
            args = ["create", *args]
        return super().parse_args(ctx, args)


@click.group(
    "package",
    help="Make a folder or an archive that an application can use: the artifacts of one model that passed the gates, "
    "in the order in which they are tried, with a model card, sample programs and digests.",
    epilog=examples(
        "winml package create digits_npu digits_cpu --evidence eval_npu.json --evidence eval_cpu.json --max-drop 0.01 "
        "--accept-unknown latency -o digits",
        "winml package verify digits --public-key release.pub",
    ),
    cls=PackageGroup,
    context_settings=HELP,
)
def command() -> None:
    pass


@command.command(
    "create",
    help="Judge BUILD folders of one model by their proofs and by evidence, and write a package of those that passed. "
    "An answer that is not known does not pass.",
    epilog=examples(
        "winml package create digits_cpu --evidence eval_cpu.json --max-drop 0.01 -o digits",
        "winml package create digits_npu digits_cpu --evidence qnn/npu=device_perf.json --evidence eval_npu.json "
        "--evidence eval_cpu.json --min-metric 0.9 --key release.key -o digits.zip",
    ),
    context_settings=HELP,
)
@click.argument("builds", nargs=-1, required=True, metavar="BUILD...")
@output_option("DIR|FILE.zip", "The package to write.", required=True)
@click.option(
    "--evidence",
    multiple=True,
    metavar="[TARGET=]FILE",
    help="A file that eval, compare or perf wrote; TARGET= for one that was measured on another machine.",
)
@click.option("--max-drop", type=float, metavar="X", help="How much worse than its reference an artifact may be.")
@click.option("--min-metric", type=float, metavar="X", help="The least value of the metric.")
@click.option("--metric", metavar="NAME", help="The metric that the limits are for (default: that of the evaluation).")
@click.option("--max-bytes", type=click.IntRange(min=1), metavar="N", help="The largest artifact, in bytes.")
@click.option(
    "--accept-unknown",
    multiple=True,
    type=click.Choice(["latency"]),
    help="Let this gate pass where its answer is not known; the manifest says so.",
)
@click.option("--leave-out-failed", is_flag=True, help="Package the others when a build does not pass.")
@click.option("--license", "licenses", multiple=True, metavar="FILE", help="A licence file to include.")
@click.option("--name", metavar="NAME", help="The name of the package (default: that of the model).")
@click.option(
    "--key",
    metavar="FILE",
    help="Sign with this key of minisign; its password is in `WINML_KEY_PASSWORD`, if it has one.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing package.")
@json_option
def create(as_json: bool, **given: Any) -> None:
    from winml.modelkit.core.errors import CheckFailed
    from winml.modelkit.packaging.command import PackageAttempt, PackageRequest
    from winml.modelkit.packaging.command import create as create_package
    from winml.modelkit.packaging.gates import Limits
    from winml.modelkit.render.package import judged_text, package_text

    limits = Limits(**{name: given.pop(name) for name in ("max_drop", "min_metric", "metric", "max_bytes")})
    request = PackageRequest(limits=limits, key_password=os.environ.get("WINML_KEY_PASSWORD"), **given)
    try:
        result = create_package(request)
    except CheckFailed as error:
        if isinstance(error.result, PackageAttempt) and not as_json:
            console.show(judged_text, error.result.builds, written=False)
        raise
    console.show_result(package_text, result, as_json=as_json)
    if not as_json:
        console.say("wrote", result.path)
        console.say("next", f"winml package verify {console.quote(result.path)}")


@command.command(
    "verify",
    help="Check every file of a package against its manifest, and its signature; exit 5 when something is not right.",
    epilog=examples("winml package verify digits --public-key release.pub"),
    context_settings=HELP,
)
@click.argument("package")
@click.option("--public-key", metavar="KEY", help="The public key it must be signed with: a file, or the key itself.")
@json_option
def verify(package: str, public_key: str | None, as_json: bool) -> None:
    from winml.modelkit.packaging.command import verify as verify_package
    from winml.modelkit.render.package import verification_text

    console.show_result(verification_text, verify_package(package, public_key), as_json=as_json)


@command.command(
    "create-key",
    help="Make a key that signs packages: FILE, which stays secret, and FILE.pub for those who verify.",
    epilog=examples("winml package create-key -o release.key"),
    context_settings=HELP,
)
@output_option("FILE", "The secret key to write.", required=True)
@json_option
def create_key(output: str, as_json: bool) -> None:
    from winml.modelkit.packaging.command import create_key as make
    from winml.modelkit.render.package import key_text

    console.show_result(key_text, make(output), as_json=as_json)


@command.command(
    "copy-loader",
    help="Write the module that opens packages, for applications: it needs onnxruntime and numpy, not winml.",
    epilog=examples("winml package copy-loader -o winml_package.py"),
    context_settings=HELP,
)
@output_option("FILE", "The file to write.", required=True)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@json_option
def copy_loader(output: str, overwrite: bool, as_json: bool) -> None:
    from winml.modelkit.packaging.command import copy_loader as copy
    from winml.modelkit.render.package import loader_text

    console.show_result(loader_text, copy(output, overwrite=overwrite), as_json=as_json)
