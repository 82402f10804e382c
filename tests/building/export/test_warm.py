"""Exports that share warm workers: the same bytes as alone, whatever was exported or failed before."""

from __future__ import annotations

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import hf_zoo
import winml.modelkit as wk
from winml.modelkit.building.export.command import ExportRequest, export
from winml.modelkit.building.export.warm import CAN_FORK, ExportWorkers
from winml.modelkit.core.errors import ModelFileError, RunFailedError, WorkerCrashed


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    for name, value in hf_zoo.ONE_THREAD.items():
        monkeypatch.setenv(name, value)


def _export(model: Path, output: Path) -> str:
    result = export(ExportRequest(model=str(model), output=str(output), rebuild=True), lambda event: None)
    (part,) = result.parts
    peak = part.metadata.peak_memory_bytes
    assert sys.platform != "linux" or (peak is not None and peak > 100 << 20)
    return part.digest


@pytest.mark.hf
@pytest.mark.xdist_group("hf")
@pytest.mark.slow
def test_an_export_after_others_has_the_bytes_of_one_alone(hf_folders: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(hf_folders / "bert", damaged)
    config = json.loads((damaged / "config.json").read_text("utf-8"))
    (damaged / "config.json").write_text(
        json.dumps({**config, "vocab_size": config["vocab_size"] + 8}), encoding="utf-8"
    )
    alone = _export(hf_folders / "vit", tmp_path / "alone")
    with wk.warm_exports() as pool:
        first = _export(hf_folders / "bert", tmp_path / "first")
        with pytest.raises(ModelFileError, match="do not fit its config"):
            _export(damaged, tmp_path / "none")
        assert _export(hf_folders / "vit", tmp_path / "after") == alone
        assert _export(hf_folders / "bert", tmp_path / "again") == first
        with wk.warm_exports() as inner:
            assert inner is pool
        assert pool.started == (1 if CAN_FORK else 4)


@pytest.mark.skipif(not CAN_FORK, reason="workers are kept on Linux only")
def test_as_many_workers_wait_as_there_may_be() -> None:
    with closing(ExportWorkers(2)) as pool:
        with pool.start() as first, pool.start() as second, pool.start() as third:
            assert pool.started == 3
        assert [worker.alive for worker in (first, second, third)] == [False, True, True]  # the last two came first
        with pool.start() as again:
            assert again in (second, third)
        pool.most = 0
        with again, pool.start() as other:
            assert other in (second, third)
        assert not other.alive
        assert pool.started == 3


def test_closing_ends_a_worker_that_is_at_work_and_starts_no_more() -> None:
    pool = ExportWorkers()
    with ThreadPoolExecutor(1) as threads:
        worker = pool.start()
        waiting = threads.submit(worker.call, "ping")
        pool.close()
        with pytest.raises((WorkerCrashed, RuntimeError)):  # it had asked already, or it asks a closed one
            waiting.result(60)
    assert not worker.alive
    with pytest.raises(RunFailedError, match="no more exports"):
        pool.start()
