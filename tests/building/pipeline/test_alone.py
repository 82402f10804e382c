"""A stage alone and the cache of builds; the stage is the real one, in a real worker."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

import model_zoo
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.building.optimize.result import OptimizeReport
from winml.modelkit.building.pipeline.alone import StageAlone
from winml.modelkit.building.pipeline.steps import optimize_step
from winml.modelkit.core.events import ignore
from winml.modelkit.graph import files
from winml.modelkit.graph.fingerprint import fingerprint
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

STEP = optimize_step(resolve(level="none"))


@pytest.fixture
def model(tmp_path: Path, no_logins: None) -> Path:
    return model_zoo.saved(model_zoo.relu(), tmp_path / "relu.onnx")


def _alone(model: Path, worker: Worker) -> StageAlone:
    return StageAlone(model, worker, rebuild=False, timeout_s=None, on_event=ignore)


def test_a_report_of_another_version_is_made_again(model: Path) -> None:
    with Worker() as worker:
        _, first = _alone(model, worker).run(OptimizeReport, STEP)
    entry = next(Cache().root.glob("stages/*.json"))
    value = json.loads(entry.read_text(encoding="utf-8"))
    del value["info"]["report"]["verification"]
    entry.write_text(json.dumps(value), encoding="utf-8")
    with Worker() as worker:
        report, done = _alone(model, worker).run(OptimizeReport, STEP)
        assert (report.verification.status, done.cache) == ("passed", "miss")
        assert done.artifact == first.artifact
        assert _alone(model, Worker()).run(OptimizeReport, STEP)[1].cache == "hit"


def test_external_data_is_named_after_the_output(model: Path, tmp_path: Path) -> None:
    """As the stage would have written it there: two outputs in one folder do not share a data file."""
    net = model_zoo.conv_net(channels=32)
    stored = tmp_path / "stored" / STEP.stage.file
    stored.parent.mkdir()
    files.save(net, stored, external_data="always")
    with Worker() as worker:
        alone = _alone(model, worker)
        _, done = alone.run(OptimizeReport, STEP)
        entry = {path.name: path for path in stored.parent.iterdir()}
        Cache().stages.store(done.key, entry, {"report": done.report, "seconds": 0.0})
        _, found = _alone(model, Worker()).run(OptimizeReport, STEP)
        written = alone.copy(found, tmp_path / "mine.onnx")
    assert [file.path for file in written] == ["mine.onnx", "mine.onnx.data"]
    locations = {
        entry.value
        for tensor in onnx.load(tmp_path / "mine.onnx", load_external_data=False).graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    assert locations == {"mine.onnx.data"}
    assert fingerprint(files.load(tmp_path / "mine.onnx")) == fingerprint(net)
