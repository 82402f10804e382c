"""Options of commands that use a cluster."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli.options import stack
from winml.modelkit.dispatch.cluster import TLS, Cluster

_TLS = ("tls_ca", "tls_cert", "tls_key")
_DEFAULT = click.core.ParameterSource.DEFAULT

tls_options = stack(
    click.option("--tls-ca", metavar="FILE", help="CA that signed the certificates of all members."),
    click.option("--tls-cert", metavar="FILE", help="Certificate of this machine."),
    click.option("--tls-key", metavar="FILE", help="Key of that certificate."),
    click.option(
        "--no-tls",
        is_flag=True,
        help="Do not use TLS: any host that reaches the cluster can run programs on its machines.",
    ),
)

cluster_options = stack(
    click.option("--cluster", metavar="dask://HOST:PORT", help="Run on the nodes of a cluster (`winml node`)."),
    click.option(
        "--staging", metavar="FEED", help="Feed to transfer files through; they are deleted from it at the end."
    ),
    tls_options,
)


def cluster_of(given: dict[str, Any]) -> Cluster | None:
    """The cluster from the options; all three certificate options are given or none."""
    files = [given[name] for name in _TLS]
    if any(files) and not all(files):
        raise click.UsageError("`--tls-ca`, `--tls-cert` and `--tls-key` must be given together")
    if given["cluster"] is None:
        if any(files) or given.get("staging") or given["no_tls"]:
            raise click.UsageError("`--staging`, `--tls-...` and `--no-tls` need `--cluster`")
        return None
    cluster = Cluster.parse(given["cluster"], TLS(*files) if all(files) else None)
    cluster.check_encrypted(without_tls=given["no_tls"])
    return cluster


def collect_options(*exclude: str) -> tuple[str, ...]:
    """The options of the running command as given, to run the same command on another machine."""
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if option.name in exclude or value is None or context.get_parameter_source(option.name or "") is _DEFAULT:
            continue
        if isinstance(option, click.Option) and option.is_flag:
            words.append(option.opts[-1])
            continue
        values = value if isinstance(value, tuple) else (value,)
        words += [word for one in values for word in (option.opts[-1], str(one))]
    return tuple(words)
