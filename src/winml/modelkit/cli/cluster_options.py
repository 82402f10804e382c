"""Options of commands that work on a cluster."""

from __future__ import annotations

from typing import Any

import click

from winml.modelkit.cli.options import stacked
from winml.modelkit.dispatch.cluster import TLS, Cluster

_TLS = ("tls_ca", "tls_cert", "tls_key")

tls_options = stacked(
    click.option("--tls-ca", metavar="FILE", help="Authority that signed the certificates of all who may join."),
    click.option("--tls-cert", metavar="FILE", help="Certificate of this machine."),
    click.option("--tls-key", metavar="FILE", help="Key of that certificate."),
)

cluster_options = stacked(
    click.option("--cluster", metavar="dask://HOST:PORT", help="Run on the nodes of a cluster (`winml node`)."),
    click.option(
        "--staging", metavar="FEED", help="Feed through which files travel; deleted there at the end (default: --feed)."
    ),
    tls_options,
)


def chosen_cluster(given: dict[str, Any]) -> Cluster | None:
    """The cluster that was named; certificates are given all three or not at all."""
    files = [given[name] for name in _TLS]
    if any(files) and not all(files):
        raise click.UsageError("`--tls-ca`, `--tls-cert` and `--tls-key` belong together")
    if given["cluster"] is None:
        if any(files) or given.get("staging"):
            raise click.UsageError("`--staging` and `--tls-...` are about a cluster and need `--cluster`")
        return None
    return Cluster.parse(given["cluster"], TLS(*files) if all(files) else None)
