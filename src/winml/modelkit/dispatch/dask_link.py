"""What the modules that use Dask share: importing it, its security, the list of nodes."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.values import read
from winml.modelkit.dispatch.cluster import Cluster, Node

if TYPE_CHECKING:
    from distributed import Client, Security

CONNECT_S = 10.0
ANNOUNCED = "winml"
"""The key under which a node describes itself; other workers of a Dask cluster do not have it."""


def require() -> None:
    """Raise when Dask is not installed; its own logging is disabled, because our errors report the same."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise UnavailableError(
            "clusters need the package `distributed`, which is not installed",
            hint='install it with `pip install "winml-modelkit[dask]"`; on Windows on Arm with Python 3.12 or later',
        ) from error
    for name in ("distributed", "distributed.client", "tornado", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def security(cluster: Cluster) -> Security | None:
    """Dask's security options: every peer needs a certificate of the authority, and everything is encrypted."""
    from distributed import Security

    if cluster.tls is None:
        return None
    for name in (cluster.tls.ca, cluster.tls.cert, cluster.tls.key):
        if not Path(name).is_file():
            raise RequestError(f"file not found: `{name}`", hint=near_path(name))
    own = {
        f"tls_{role}_{what}": value
        for role in ("client", "worker", "scheduler")
        for what, value in (("cert", cluster.tls.cert), ("key", cluster.tls.key))
    }
    made = Security(require_encryption=True, tls_ca_file=cluster.tls.ca, **own)
    try:
        made.get_listen_args("scheduler")
    except OSError as error:
        raise RequestError(f"the certificates cannot be used: {error}") from error
    return made


def open_client(cluster: Cluster) -> Client:
    """A connection to the scheduler; raises when none accepts us."""
    from distributed import Client

    shown = security(cluster)
    try:
        # A client that cannot connect still takes twenty seconds to close: check the connection first.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(_greet(cluster, shown))
        return Client(cluster.url, security=shown, timeout=CONNECT_S, set_as_default=False)
    except Exception as error:  # Dask raises anything for a server that is not a scheduler
        raise UnavailableError(
            f"no scheduler answers at {cluster}: {_reason(error)}",
            hint=f"`winml node --scheduler --cluster {cluster}` starts one; with TLS, all need certificates of one "
            "authority",
        ) from error


async def _greet(cluster: Cluster, shown: Security | None) -> None:
    """Connect to the scheduler and disconnect."""
    from distributed.comm import connect

    known = {} if shown is None else shown.get_connection_args("client")
    # Dask itself waits indefinitely for a server that accepts the connection and does not answer.
    async with asyncio.timeout(CONNECT_S + 1):
        comm = await connect(cluster.url, timeout=CONNECT_S, **known)
    await comm.close()


def _reason(error: BaseException) -> str:
    if type(error) is TimeoutError:
        return f"no response for {CONNECT_S:g} s"
    if not isinstance(error, OSError | ValueError):
        return "another program listens there"
    # The first cause says most, unless it is that Dask gave up an attempt, which says nothing.
    found, below = str(error) or type(error).__name__, error.__cause__ or error.__context__
    while below is not None:
        found = str(below) if isinstance(below, OSError) and str(below) else found
        below = below.__cause__ or below.__context__
    return found


def nodes(client: Client) -> dict[str, Node]:
    """The nodes of a cluster by their Dask address; raises when the scheduler cannot be queried."""
    workers: dict[str, dict[str, Any]] | None = client.scheduler_info(n_workers=-1).get("workers")
    if workers is None:  # Dask's answer while there is no connection
        raise UnavailableError("the connection to the scheduler was lost while its nodes were listed")
    return {
        address: read(Node, value[ANNOUNCED], address, error=UnavailableError)
        for address, value in workers.items()
        if ANNOUNCED in value
    }
