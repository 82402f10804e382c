"""Options of commands that work on a cluster."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli.options import stack
from winml.modelkit.dispatch.cluster import TLS, Cluster

_TLS = ("tls_ca", "tls_cert", "tls_key")
_DEFAULT = click.core.ParameterSource.DEFAULT

tls_options = stack(
    click.option("--tls-ca", metavar="FILE", help="Authority that signed the certificates of all who may join."),
    click.option("--tls-cert", metavar="FILE", help="Certificate of this machine."),
    click.option("--tls-key", metavar="FILE", help="Key of that certificate."),
    click.option(
        "--no-tls",
        is_flag=True,
        help="Go without certificates: whoever reaches the cluster may run programs on its machines.",
    ),
)

cluster_options = stack(
    click.option("--cluster", metavar="dask://HOST:PORT", help="Run on the nodes of a cluster (`winml node`)."),
    click.option("--staging", metavar="FEED", help="Feed through which files travel; they go from it at the end."),
    tls_options,
)


def cluster_of(given: dict[str, Any]) -> Cluster | None:
    """The cluster that was named; certificates are given all three or not at all."""
    files = [given[name] for name in _TLS]
    if any(files) and not all(files):
        raise click.UsageError("`--tls-ca`, `--tls-cert` and `--tls-key` belong together")
    if given["cluster"] is None:
        if any(files) or given.get("staging") or given["no_tls"]:
            raise click.UsageError("`--staging`, `--tls-...` and `--no-tls` are about a cluster and need `--cluster`")
        return None
    cluster = Cluster.parse(given["cluster"], TLS(*files) if all(files) else None)
    cluster.check_encrypted(without_tls=given["no_tls"])
    return cluster


def collect_options(*leave: str) -> tuple[str, ...]:
    """The options of the running command as they were given, for the same command on another machine."""
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if option.name in leave or value is None or context.get_parameter_source(option.name or "") is _DEFAULT:
            continue
        if isinstance(option, click.Option) and option.is_flag:
            words.append(option.opts[-1])
            continue
        words += [word for one in (value if option.multiple else (value,)) for word in (option.opts[-1], str(one))]
    return tuple(words)
