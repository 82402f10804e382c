"""What a class says it takes, against what is written down about families that are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from winml.modelkit.building.export.describe import describe
from winml.modelkit.building.export.folder import ModelFolder
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.values import to_json
from winml.modelkit.worker.client import Worker

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf")]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as process:
        yield process


def test_what_a_class_takes_is_what_is_written_down_about_its_family(worker: Worker, hf_folders: Path) -> None:
    for name in ("bert", "vit", "wav2vec2"):
        known = describe(ModelFolder(hf_folders / name)).inputs or ()
        asked = worker.call("stages.forward", {"folder": str(hf_folders / name)})
        for entry in known:
            assert {"name": entry.name, **asked["inputs"][entry.name]} == to_json(entry)
        assert asked["to_fill"] == []


@pytest.mark.parametrize("name", ["NewForEverything", "Trainer", "pipeline"])
def test_what_is_no_model_of_the_library_cannot_be_asked(worker: Worker, tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "new", "architectures": [name]}))
    with pytest.raises(RequestError, match=f"no model `{name}`"):
        worker.call("stages.forward", {"folder": str(tmp_path)})


def test_an_input_of_a_name_that_says_nothing_is_to_be_filled_in(worker: Worker, tmp_path: Path) -> None:
    config = {"model_type": "time_series_transformer", "architectures": ["TimeSeriesTransformerModel"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    asked = worker.call("stages.forward", {"folder": str(tmp_path)})
    assert "past_values" in asked["to_fill"]
    assert asked["inputs"]["past_values"]["shape"] == ["batch"]
