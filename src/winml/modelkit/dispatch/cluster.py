"""A cluster as its users see it: its address, its nodes, and what each machine has."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Annotated

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.values import AtLeast
from winml.modelkit.dispatch.base import Job

PREFIX = "dask://"
MEASURING = "measuring"
"""The resource for measuring jobs: only a node that runs one job at a time has it, so nothing runs beside them."""
_ADDRESS = re.compile(r"dask://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")


@dataclass(frozen=True)
class TLS:
    """Files that decide who may join: the authority that signs all certificates, and our own certificate."""

    ca: str
    cert: str
    key: str


@dataclass(frozen=True)
class Cluster:
    """The address of the scheduler of a cluster, and its TLS files."""

    host: str
    port: int
    tls: TLS | None = None

    def check_encrypted(self, *, without_tls: bool) -> None:
        """Raise for a cluster that other machines can reach without certificates, unless that was requested.

        Anyone who can connect to a scheduler, a node or a client of Dask can run programs there.
        """
        if not self.is_loopback and self.tls is None and not without_tls:
            raise RequestError(
                f"{self} can be reached by other machines, and anyone who reaches it can run programs on every node",
                hint="give certificates with `--tls-ca`, `--tls-cert` and `--tls-key`; `--no-tls` disables TLS, in a "
                "network where everyone may run programs on these machines",
            )

    @classmethod
    def parse(cls, text: str, tls: TLS | None = None) -> Cluster:
        """The cluster behind `dask://HOST:PORT`."""
        found = _ADDRESS.fullmatch(text.strip())
        if found is None or not 0 < int(found[2]) < 1 << 16:
            raise RequestError(
                f"invalid cluster address: `{text}`",
                hint="write `dask://HOST:PORT`, for example `dask://127.0.0.1:8786`",
            )
        return cls(found[1].strip("[]"), int(found[2]), tls)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it; a name other than `localhost` may resolve to anything."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.casefold() == "localhost"

    @property
    def url(self) -> str:
        """The address as Dask writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tcp' if self.tls is None else 'tls'}://{host}:{self.port}"

    def __str__(self) -> str:
        return PREFIX + self.url.partition("://")[2]


@dataclass(frozen=True)
class Node:
    """A machine of a cluster: how many jobs it runs in parallel, and what they can use there."""

    name: str
    machine: str
    """The computer; two nodes may be on one."""
    winml: str
    slots: Annotated[int, AtLeast(1)]
    has: Mapping[str, Annotated[int, AtLeast(1)]]
    simulated: tuple[str, ...]
    """Those of `has` whose device is emulated."""
    environment: Mapping[str, str | int | None]

    @property
    def offers(self) -> dict[str, int]:
        """Everything that a job can use here."""
        return {**self.has, **({MEASURING: 1} if self.slots == 1 else {})}

    def can_run(self, job: Job) -> bool:
        return all(count <= self.offers.get(name, 0) for name, count in job.needs.items())

    def __str__(self) -> str:
        listed = ", ".join(f"{name} (simulated)" if name in self.simulated else name for name in sorted(self.has))
        jobs = "1 job at a time" if self.slots == 1 else f"up to {self.slots} jobs in parallel"
        return f"{self.name}: {jobs}, has {listed or 'no targets'}"


def slot(version: str) -> str:
    """The resource that every job needs: a slot on a node with the same winml version, so it never runs on another."""
    return f"winml {version}"


def check(job: Job, nodes: Iterable[Node]) -> None:
    """Raise when no node can ever provide what a job needs; the error names the available nodes."""
    there = list(nodes)
    if any(node.can_run(job) for node in there):
        return
    wanted = " and ".join(f"{count} of `{name}`" for name, count in job.needs.items()) or "a node"
    raise UnavailableError(
        f"job `{job.id}` needs {wanted}, and no node has that; {describe_nodes(there)}",
        hint="a node runs measurements when it runs one job at a time (`winml node --jobs 1`)"
        if MEASURING in job.needs
        else "`winml node --cluster dask://HOST:PORT --target EP/DEVICE` starts one that has it",
    )


def check_versions(nodes: Iterable[Node], version: str, cluster: Cluster) -> None:
    """Raise when a node has another winml version: it would not build the same as this one."""
    others = sorted(f"{node.name} ({node.winml})" for node in nodes if node.winml != version)
    if others:
        raise UnavailableError(
            f"this is winml {version}, and {cluster} has nodes of other versions: {', '.join(others)}",
            hint="install the same version everywhere, or stop those nodes",
        )


def describe_nodes(nodes: Iterable[Node]) -> str:
    listed = "; ".join(str(node) for node in sorted(nodes, key=lambda node: node.name))
    return f"nodes: {listed}" if listed else "there are no nodes"


def find_shared_machines(nodes: Iterable[Node]) -> list[str]:
    """One sentence per machine with several nodes: they disturb each other's measurements."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(node.machine, []).append(node.name)
    return [
        f"nodes {' and '.join(sorted(names))} are on one machine; measurements there may be disturbed"
        for names in found.values()
        if len(names) > 1
    ]
