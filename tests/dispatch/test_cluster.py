from __future__ import annotations

import pytest

from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.values import read, to_json
from winml.modelkit.dispatch.base import Job
from winml.modelkit.dispatch.cluster import (
    MEASURING,
    TLS,
    Cluster,
    Node,
    check,
    check_versions,
    describe_nodes,
    find_shared_machines,
)


def node(name: str, slots: int = 1, machine: str = "m", winml: str = "1", **has: int) -> Node:
    return Node(name, machine, winml, slots, has, (), {})


def job(**needs: int) -> Job:
    return Job("j", (), needs)


@pytest.mark.parametrize("text", ["127.0.0.1:8786", "tcp://a:1", "dask://a", "dask://a:0", "dask://a:70000", "dask://"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(RequestError, match="invalid cluster address") as caught:
        Cluster.parse(text)
    assert "dask://HOST:PORT" in (caught.value.hint or "")


def test_an_address_is_read_and_written_the_same_and_tls_shows_in_what_dask_is_told() -> None:
    for text in ("dask://127.0.0.1:8786", "dask://[::1]:8786", "dask://build-1.lan:1"):
        assert str(Cluster.parse(text)) == text
    assert Cluster.parse("dask://h:1").url == "tcp://h:1"
    assert Cluster.parse("dask://h:1", TLS("a", "b", "c")).url == "tls://h:1"


def test_only_loopback_addresses_are_taken_for_closed() -> None:
    closed = [
        host for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "10.0.0.5", "h") if Cluster(host, 1).is_loopback
    ]
    assert closed == ["127.0.0.1", "localhost", "::1"]


def test_a_job_is_refused_when_no_single_node_has_all_it_needs() -> None:
    nodes = [node("a", npu=1), node("b", gpu=2)]
    check(job(npu=1), nodes)
    check(job(gpu=2), nodes)
    check(job(), nodes)
    with pytest.raises(
        UnavailableError, match="needs 1 of `npu` and 1 of `gpu`, and no node has that; nodes: a: 1 job"
    ):
        check(job(npu=1, gpu=1), nodes)
    with pytest.raises(UnavailableError, match="there are no nodes"):
        check(job(), [])


def test_only_a_node_that_runs_one_job_at_a_time_measures() -> None:
    check(job(**{MEASURING: 1}), [node("a", 2), node("b", 1)])
    with pytest.raises(UnavailableError) as caught:
        check(job(**{MEASURING: 1}), [node("a", 2)])
    assert "--jobs 1" in (caught.value.hint or "")


def test_nodes_of_another_version_are_named() -> None:
    cluster = Cluster("h", 1)
    check_versions([node("a")], "1", cluster)
    with pytest.raises(UnavailableError, match=r"nodes of other versions: b \(2\), c \(0\)"):
        check_versions([node("a"), node("c", winml="0"), node("b", winml="2")], "1", cluster)


def test_nodes_on_one_machine_are_told_of() -> None:
    assert find_shared_machines([node("a", machine="x"), node("b", machine="y")]) == []
    found = find_shared_machines([node("b", machine="x"), node("a", machine="x")])
    assert found == ["nodes a and b are on one machine; measurements there may be disturbed"]


def test_a_node_survives_its_announcement_and_says_what_is_simulated() -> None:
    made = Node("a", "m", "1", 2, {"cpu": 1, "qnn/npu": 1}, ("qnn/npu",), {"cores": 8})
    assert read(Node, to_json(made)) == made
    assert describe_nodes([made]) == "nodes: a: up to 2 jobs in parallel, has cpu, qnn/npu (simulated)"


def test_other_machines_are_spoken_to_with_certificates_or_when_that_is_waived() -> None:
    for text in ("dask://10.0.0.5:8786", "dask://build-1.lan:1"):
        with pytest.raises(RequestError, match="can run programs on every node") as caught:
            Cluster.parse(text).check_encrypted(without_tls=False)
        assert "--no-tls" in (caught.value.hint or "")
        Cluster.parse(text).check_encrypted(without_tls=True)
        Cluster.parse(text, TLS("a", "b", "c")).check_encrypted(without_tls=False)
    Cluster.parse("dask://127.0.0.1:1").check_encrypted(without_tls=False)


@pytest.mark.dask
def test_a_node_listens_at_one_address() -> None:
    """For a scheduler on this machine that is the loopback address, whatever other addresses there are."""
    from winml.modelkit.dispatch.dask_node import _own_address

    assert _own_address(Cluster.parse("dask://127.0.0.1:8786")) == "127.0.0.1"
    with pytest.raises(UnavailableError, match="cannot be reached"):
        _own_address(Cluster.parse("dask://no-such-host.invalid:8786"))
