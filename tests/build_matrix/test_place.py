"""Exports that the cells of a run share."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import hf_zoo
from winml.modelkit.build_matrix.models import MatrixModel
from winml.modelkit.build_matrix.place import SharedExports
from winml.modelkit.building.export.warm import CAN_FORK, ExportWorkers
from winml.modelkit.dispatch.base import Job
from winml.modelkit.store.cache import Cache


def test_a_model_that_cannot_be_exported_is_left_to_its_cell(tmp_path: Path) -> None:
    models = {name: MatrixModel(str(tmp_path / name), name) for name in ("empty", "absent")}
    (tmp_path / "empty").mkdir()
    with closing(ExportWorkers()) as workers:
        exports = SharedExports(models, workers, 1, Cache(tmp_path / "cache"))
        for name in models:
            exports(Job(name, ()))
        assert workers.started == 0


def test_one_model_alone_is_exported_by_its_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nothing is shared")

    monkeypatch.setattr("winml.modelkit.build_matrix.place.export_parts", refuse)
    with closing(ExportWorkers()) as workers:
        cells = dict.fromkeys(("cell-1", "cell-2"), MatrixModel(str(tmp_path), "only"))
        SharedExports(cells, workers, 1, Cache(tmp_path / "cache"))(Job("cell-1", ()))


@pytest.mark.hf
@pytest.mark.xdist_group("hf")
@pytest.mark.slow
@pytest.mark.skipif(not CAN_FORK, reason="workers are kept on Linux only")
def test_models_of_a_run_are_exported_once_by_one_worker(
    hf_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in hf_zoo.ONE_THREAD.items():
        monkeypatch.setenv(name, value)
    bert, vit = (MatrixModel(str(hf_folders / name), name) for name in ("bert", "vit"))
    cache = Cache(tmp_path / "cache")
    with closing(ExportWorkers()) as workers:
        exports = SharedExports({"bert-cpu": bert, "bert-npu": bert, "vit-cpu": vit}, workers, 1, cache)
        for job in ("bert-cpu", "bert-npu", "vit-cpu"):
            exports(Job(job, ()))
        assert workers.started == 1
        assert workers.most == 0  # none waits when all are exported
    assert len(list(cache.builds.iterdir())) == 2
