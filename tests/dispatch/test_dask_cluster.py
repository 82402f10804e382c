"""What a cluster promises beyond what every executor does (tests/contracts/test_executors.py)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from cluster_zoo import ClusterHere, gone
from winml.modelkit import __version__
from winml.modelkit.core.errors import UnavailableError
from winml.modelkit.dispatch import dask_node
from winml.modelkit.dispatch.base import PYTHON, Job, Result
from winml.modelkit.dispatch.cluster import Node
from winml.modelkit.dispatch.dask_cluster import DaskCluster

pytestmark = [pytest.mark.dask, pytest.mark.xdist_group("cluster")]


def waited(executor: DaskCluster) -> Result:
    deadline = time.monotonic() + 120
    while True:
        result = executor.wait(5)
        if result is not None:
            return result
        assert time.monotonic() < deadline


def test_a_result_says_where_it_was_made_and_the_python_is_that_of_the_node(two_jobs_and_an_npu: ClusterHere) -> None:
    with DaskCluster(two_jobs_and_an_npu.cluster) as executor:
        executor.submit(Job("a", (PYTHON, "-c", "import sys; print(sys.executable)")))
        result = waited(executor)
    assert (result.node, dict(result.environment)) == ("npu-box", {"cores": 2})
    assert result.output.strip() == sys.executable


def test_a_node_of_another_version_is_not_let_in_and_neither_is_a_name_that_is_taken(
    two_jobs_and_an_npu: ClusterHere,
) -> None:
    here = two_jobs_and_an_npu
    for name, winml, reason in (
        ("new", "99.0", "this is winml 99.0"),
        ("npu-box", __version__, "has a node `npu-box`"),
    ):
        with pytest.raises(AssertionError, match=reason):
            here.join_with(name, 1, {}, winml=winml)


def test_a_name_that_is_taken_in_the_very_moment_is_refused_by_the_scheduler(
    two_jobs_and_an_npu: ClusterHere, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(dask_node, "_look_around", lambda cluster, node: None)
    monkeypatch.setattr(dask_node, "_here", None)
    with pytest.raises(UnavailableError, match="refused node `npu-box`.*name taken"):
        dask_node.join(
            two_jobs_and_an_npu.cluster,
            Node("npu-box", "here", __version__, 1, {}, (), {}),
            tmp_path / "notes",
            lambda event: None,
        )


def test_a_job_whose_node_stays_away_is_lost_and_the_others_go_on(
    two_jobs_and_an_npu: ClusterHere, tmp_path: Path
) -> None:
    here = two_jobs_and_an_npu
    passing = here.join_with("passing", 1, {"tpu": 1})
    started = tmp_path / "started"
    code = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with DaskCluster(here.cluster, patience_s=0.5) as executor:
        executor.submit(Job("needs tpu", (PYTHON, "-c", code), {"tpu": 1}))
        while not started.exists() or not started.read_text():
            assert executor.wait(0.1) is None
        passing.kill()
        lost = waited(executor)
        assert (lost.job, lost.status) == ("needs tpu", "lost")
        assert "no node with `tpu` was available for 0.5 s; nodes: npu-box" in lost.log
        assert executor.gone == ["passing"]
        executor.submit(Job("other", (PYTHON, "-c", "")))
        assert waited(executor).status == "ok"
        with pytest.raises(UnavailableError, match="no node has that"):
            executor.check(Job("again", (), {"tpu": 1}))
    passing.start()  # a node ends what one that was killed has left running
    assert gone(int(started.read_text()))
    assert not list((here.folder / "passing" / "work").glob("winml-job-*"))  # and its files
    assert passing.stop() == 0  # the cluster is that of other tests too
    assert "Traceback" not in passing.text
