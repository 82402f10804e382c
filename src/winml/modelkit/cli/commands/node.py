"""`winml node`."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli import console
from winml.modelkit.cli.cluster_options import cluster_of, tls_options
from winml.modelkit.cli.help import Command
from winml.modelkit.cli.options import HELP, examples, json_option
from winml.modelkit.cli.spellings import earlier


@click.command(
    "node",
    help="Join this machine to a cluster: it runs jobs of `winml matrix run --cluster` and `winml autoconfig --models "
    "--cluster` until Ctrl-C. Every device is used by one job at a time. Measurements run only on nodes that run one "
    "job at a time, so that nothing disturbs them. Needs `winml-modelkit[dask]`.",
    epilog=examples(
        "winml node --scheduler --cluster dask://127.0.0.1:8786",
        "winml node --cluster dask://127.0.0.1:8786",
        "winml node --cluster dask://10.0.0.5:8786 --target qnn/npu --tls-ca ca.pem --tls-cert me.pem --tls-key me.key",
        "winml node --cluster dask://127.0.0.1:8786 --list",
    ),
    cls=Command,
    context_settings=HELP,
)
@click.option("--cluster", required=True, metavar="dask://HOST:PORT", help="Address of the scheduler.")
@click.option("--scheduler", is_flag=True, help="Run the scheduler instead of a node.")
@click.option("--list", "listed", is_flag=True, help="List the nodes of the cluster.")
@click.option("--name", metavar="NAME", help="Name of this node (default: the host name).")
@click.option(
    "--target", "targets", multiple=True, metavar="EP[/DEVICE]",
    help="Offer only this target; may be repeated (default: all real ones on this machine; a simulated one must be "
    "named).",
)  # fmt: skip
@earlier("--device", "device", multiple=True, to="targets", now="--target")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Parallel jobs.")
@click.option(
    "--listen", metavar="ADDRESS", help="Address this node listens at (default: the one that reaches the scheduler)."
)
@tls_options
@json_option
def command(as_json: bool, **given: Any) -> None:
    from winml.modelkit.cli.progress import NodeProgress
    from winml.modelkit.dispatch import node_command
    from winml.modelkit.render import node as text

    cluster = cluster_of(given)
    assert cluster is not None
    on_event = NodeProgress().on_event
    _check(given)
    if given["listed"]:
        console.show_result(text.list_text, node_command.list_nodes(cluster), as_json=as_json)
    elif given["scheduler"]:
        console.show_result(text.scheduler_text, node_command.serve(cluster, on_event), as_json=as_json)
    else:
        request = node_command.NodeRequest(cluster, given["name"], given["targets"], given["jobs"], given["listen"])
        console.show_result(text.run_text, node_command.join(request, on_event), as_json=as_json)


def _check(given: dict[str, Any]) -> None:
    """Raise for options that cannot be combined."""
    if given["scheduler"] and given["listed"]:
        raise click.UsageError("`--scheduler` cannot be combined with `--list`")
    about_a_node = (given["name"], given["targets"], given["listen"], given["jobs"] != 1)
    if (given["scheduler"] or given["listed"]) and any(about_a_node):
        raise click.UsageError(
            "`--name`, `--target`, `--listen` and `--jobs` cannot be combined with `--scheduler` or `--list`"
        )
