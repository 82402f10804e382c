"""Clusters, with real schedulers and nodes on this machine: each has a cache and folders of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from program import failed, valid, winml

from cluster_zoo import ClusterHere
from winml.modelkit import __version__
from winml.modelkit.feed.table import open_feed

pytestmark = [pytest.mark.dask, pytest.mark.xdist_group("cluster")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterHere]:
    """One node with an NPU that takes two jobs at once, and one for builds and measurements; it needs the QNN EP."""
    made = ClusterHere(tmp_path_factory.mktemp("cluster"))
    try:
        made.join("npu-box", "--target", "qnn/npu", "--jobs", "2")
        made.join("build-box", "--target", "cpu")
        yield made
    finally:
        made.close()


class User:
    """Whoever gives work: on the same machine, with a cache and folders of its own."""

    def __init__(self, cluster: ClusterHere, folder: Path) -> None:
        self.feed = folder / "feed"
        self.out = folder / "out"
        self._cluster = cluster
        self._env = {**os.environ, "WINML_CACHE": str(folder / "cache")}

    def words(self, *words: str | Path) -> list[str]:
        where = ("--cluster", self._cluster.cluster, "--feed", f"folder:{self.feed}", "--run-stamp", "a1")
        return [str(word) for word in ("matrix", "run", *words, *where, "--no-analyze", "-o", self.out, "--json")]

    def run(self, *words: str | Path, code: int = 0) -> dict[str, Any]:
        result = winml(*self.words(*words), env=self._env)
        assert result.returncode == code, result.stderr
        return valid(result.stdout)

    def started(self, *words: str | Path) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "winml.modelkit", *self.words(*words)]
        return subprocess.Popen(argv, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def records(self, kind: str) -> list[dict[str, Any]]:
        journal = self.out / "journal.jsonl"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [line["record"] for line in map(json.loads, lines) if line["record"]["record"] == kind]

    def staged(self) -> list[str]:
        with closing(open_feed(f"folder:{self.feed}")) as feed:
            return [item.version for item in feed.versions("winml-staging") or ()]


@pytest.fixture
def user(cluster: ClusterHere, tmp_path: Path) -> User:
    return User(cluster, tmp_path)


def jobs_in(log: str) -> list[tuple[str, str]]:
    """What happened to jobs on a node, in order: (cell, `running` or how it ended)."""
    return re.findall(r"note: (\S+): (running|ok|failed|lost|timeout)", log)


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.qnn
def test_cells_that_need_a_device_run_only_where_it_is_and_one_at_a_time(
    cluster: ClusterHere, user: User, zoo: Path
) -> None:
    models = ("-m", zoo / "relu.onnx", "-m", zoo / "conv.onnx")
    value = user.run(*models, "--targets", "qnn/npu,cpu", "--compile", "--calibration", "random")
    where = {(row["hf_id"], row["combo"]): row["node"] for row in value["cells"]}
    assert where["relu", "qnn_npu"] == where["conv", "qnn_npu"] == "npu-box"
    assert {row["files_by"] for row in value["cells"]} == {"feed"}
    assert {row["upload_status"] for row in value["cells"]} == {"uploaded"}
    assert value["nodes"]["npu-box"]["onnxruntime"]
    assert json.loads((user.out / "environment.json").read_text())["nodes"] == value["nodes"]
    on_npu = [what for cell, what in jobs_in(cluster.nodes["npu-box"].text) if "-qnn-npu-" in cell]
    assert on_npu == ["running", "ok", "running", "ok"]  # it runs two jobs at once, and its device one
    assert any("are on one machine" in note for note in value["notes"])
    assert user.staged() == []


@pytest.mark.qnn
def test_a_build_that_fails_is_not_tried_elsewhere_and_what_no_node_has_is_refused(
    cluster: ClusterHere, user: User, zoo: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"not a model")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "data").symlink_to(zoo)
    words = (
        "-m",
        tmp_path / "broken.onnx",
        "-m",
        tmp_path / "linked",
        "-m",
        zoo / "relu.onnx",
        "--targets",
        "cpu,vitisai/npu",
        "--compile",
    )
    value = user.run(*words, code=6)
    errors = {(row["hf_id"], row["combo"]): row["error"] for row in value["cells"]}
    assert errors["relu", "mlas_cpu"] is None
    assert "broken.onnx" in errors["broken", "mlas_cpu"]
    assert "is a link to a folder" in errors["linked", "mlas_cpu"]
    assert "needs 1 of `vitisai/npu`, and no node has that; nodes: build-box: " in errors["relu", "vitisai_npu"]
    tried = [cell for node in cluster.nodes.values() for cell, what in jobs_in(node.text) if what == "running"]
    assert tried.count("0.0.0-a1-mlas-cpu-broken") == 1
    assert not any("vitisai" in cell for cell in tried)


@pytest.mark.qnn
def test_a_killed_run_node_and_scheduler_lose_nothing_and_every_cell_is_published_once(
    cluster: ClusterHere, user: User, zoo: Path
) -> None:
    names = ("relu", "conv", "split", "fused", "embedding")
    words = [word for name in names for word in ("-m", zoo / f"{name}.onnx")] + ["--targets", "cpu"]
    builder = cluster.nodes["build-box"]
    started = len(jobs_in(builder.text))
    run = user.started(*words)
    until(lambda: len(jobs_in(builder.text)) > started)
    builder.kill()
    until(lambda: len(user.records("upload")) >= 1)
    run.kill()
    run.communicate()
    before = len(user.records("upload"))
    run = user.started(*words, "--resume")
    until(lambda: len(user.records("upload")) > before)
    cluster.scheduler.kill()
    _, stderr = run.communicate()
    assert run.returncode == 3, stderr.decode()
    assert "was lost" in stderr.decode()
    assert "--resume --run-stamp a1" in stderr.decode()
    cluster.scheduler.start()
    builder.start()
    value = user.run(*words, "--resume")
    assert value["progress"]["done"] == 5
    uploads = user.records("upload")
    assert {record["status"] for record in uploads} == {"uploaded"}
    assert Counter(record["version"] for record in uploads) == Counter(row["version"] for row in value["cells"])
    with closing(open_feed(f"folder:{user.feed}")) as feed:
        for row in value["cells"]:
            stored = feed.find(row["package"], row["version"])
            assert stored is not None
            assert stored.content.digest == row["digest"]
            assert feed.verify(stored, lambda event: None).damaged == ()
    assert user.staged() == []


@pytest.mark.qnn
def test_models_are_searched_on_nodes_that_run_nothing_else(cluster: ClusterHere, zoo: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"{zoo / 'relu.onnx'}\n{tmp_path / 'broken.onnx'}\n")
    (tmp_path / "broken.onnx").write_bytes(b"not a model")
    away = ("--cluster", cluster.cluster, "--staging", tmp_path / "feed", "-o", tmp_path / "out", "--json")
    words = ("autoconfig", "--models", tmp_path / "list.txt", "--objective", "size", "--max-discards", "1")
    assert "`measuring` and 1 of `qnn/npu`" in failed(winml(*words, "--target", "qnn/npu", *away), 3)
    assert not (tmp_path / "feed" / "packages").exists()  # nothing is staged for what cannot be
    result = winml(*words, "--target", "cpu", "--resume", *away)
    assert result.returncode == 6, result.stderr
    found, broken = valid_models(result.stdout)
    assert found["node"] == "build-box"
    assert (Path(found["champion"]["folder"]) / "model.onnx").is_file()
    kept = valid((tmp_path / "out" / "relu" / "autoconfig.json").read_text())
    assert (kept["node"], kept["node_environment"]["winml"]) == ("build-box", __version__)
    assert broken["error"]["code"] == "invalid-model"


def valid_models(text: str) -> list[dict[str, Any]]:
    models: list[dict[str, Any]] = valid(text)["models"]
    return models


def test_who_has_no_certificate_is_not_let_in(tmp_path: Path) -> None:
    tls = certificates(tmp_path)
    closed = ClusterHere(tmp_path / "closed", tls)
    try:
        closed.join("guarded", "--target", "cpu")
        address = ("--cluster", closed.cluster)
        listed = valid(winml("node", *address, "--list", "--json", *tls).stdout)
        assert [node["name"] for node in listed["nodes"]] == ["guarded"]
        assert "no scheduler answers" in failed(winml("node", *address, "--list"), 3)
    finally:
        closed.close()


def certificates(folder: Path) -> tuple[str, ...]:
    """Options with an authority, and a certificate that it signed."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")

    def make(*words: str) -> None:
        subprocess.run([str(openssl), *words], cwd=folder, check=True, capture_output=True)

    make("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca")
    make("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "me.key", "-out", "me.csr", "-subj", "/CN=me")
    make("x509", "-req", "-in", "me.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "me.pem")
    pairs = {"--tls-ca": "ca.pem", "--tls-cert": "me.pem", "--tls-key": "me.key"}
    return tuple(word for option, name in pairs.items() for word in (option, str(folder / name)))


def test_requests_that_make_no_sense_are_refused_at_once(tmp_path: Path) -> None:
    run = ("matrix", "run", "--sample", "-o", tmp_path / "out")
    assert "invalid cluster address" in failed(winml(*run, "--cluster", "10.0.0.5:8786", "--feed", tmp_path / "f"), 2)
    assert "needs a feed" in failed(winml(*run, "--cluster", "dask://127.0.0.1:1"), 2)
    assert (
        "`--jobs` cannot be combined with `--cluster`"
        in winml(*run, "--cluster", "dask://127.0.0.1:1", "--jobs", "2").stderr
    )
    assert (
        "cannot be combined with `--scheduler` or `--list`"
        in winml("node", "--cluster", "dask://127.0.0.1:1", "--list", "--jobs", "2").stderr
    )
    assert "anyone who reaches it" in failed(winml("node", "--scheduler", "--cluster", "dask://0.0.0.0:8786"), 2)
    assert not (tmp_path / "out").exists()
