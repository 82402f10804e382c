"""Servers at the address of a cluster that are no scheduler."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.dispatch import dask_link
from winml.modelkit.dispatch.cluster import TLS, Cluster

pytestmark = pytest.mark.dask


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def address(server: socket.socket, tls: TLS | None = None) -> Cluster:
    return Cluster("127.0.0.1", server.getsockname()[1], tls)


def test_who_takes_the_connection_and_says_nothing_is_not_waited_for_without_end(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_link, "CONNECT_S", 0.5)
    with pytest.raises(UnavailableError, match="no response for 0.5 s"):
        dask_link.open_client(address(listening))


def test_a_server_of_another_kind_is_not_a_bug(listening: socket.socket) -> None:
    def answer() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.recv(1 << 16)

    thread = threading.Thread(target=answer)
    thread.start()
    with pytest.raises(UnavailableError, match="no scheduler answers at dask://127.0.0.1"):
        dask_link.open_client(address(listening))
    thread.join()


def test_a_certificate_that_is_not_there_is_named(listening: socket.socket) -> None:
    with pytest.raises(RequestError, match="file not found: `nowhere.pem`"):
        dask_link.open_client(address(listening, TLS("nowhere.pem", "me.pem", "me.key")))


def test_the_reason_is_the_first_cause_that_says_something() -> None:
    refused, gave_up = ConnectionRefusedError(111, "Connection refused"), asyncio.CancelledError()
    refused.__context__ = gave_up
    told = OSError("Timed out trying to connect")
    told.__cause__ = refused
    assert dask_link._reason(told) == "[Errno 111] Connection refused"
    only = OSError("Timed out trying to connect")
    only.__context__ = gave_up
    assert dask_link._reason(only) == "Timed out trying to connect"
