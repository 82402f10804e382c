"""A config is made from what a model says of itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from winml.modelkit.building.config import PRELOAD, ConfigRequest, make, make_config
from winml.modelkit.building.events import StageStarted
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import WorkerTimeout
from winml.modelkit.core.events import Event
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

BERT = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "vocab_size": 120,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}


@pytest.fixture
def bert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model folder that has no weights."""
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text(json.dumps(BERT))
    return str(tmp_path / "bert")


def test_nothing_is_exported_for_a_config(bert: str) -> None:
    data = DataSection("random", limit=4)
    found = make_config(ConfigRequest(bert, target="cpu", precision="int8", data=data)).config
    assert found.model == bert
    assert found.export is not None
    assert [entry.name for entry in found.export.inputs] == ["input_ids", "attention_mask", "token_type_ids"]
    assert found.quantize is not None
    assert found.quantize.calibration is not None
    assert found.quantize.calibration.dims == {"batch": 1, "sequence": 16}
    assert str(found.quantize.calibration.digest).startswith("sha256:")
    assert list(Cache().stages) == []


def test_sizes_for_an_npu_are_those_that_such_models_are_used_with(bert: str) -> None:
    found = make_config(ConfigRequest(bert, target="vitisai/npu", precision="fp32"))
    assert found.config.optimize is not None
    assert found.config.optimize.fixed_dims == {"batch": 1, "sequence": 64}
    assert any("dimension sequence is fixed at 64" in note for note in found.notes)
    given = make_config(ConfigRequest(bert, target="vitisai/npu", precision="fp32", dims={"sequence": 32}))
    assert given.config.optimize is not None
    assert given.config.optimize.fixed_dims["sequence"] == 32


@pytest.mark.hf
def test_an_architecture_in_no_table_is_announced_before_its_class_is_asked(bert: str) -> None:
    (Path(bert) / "config.json").write_text(
        json.dumps({**BERT, "model_type": "nystromformer", "architectures": ["NystromformerForMaskedLM"]})
    )
    events: list[Event] = []
    with Worker(preload=PRELOAD) as worker, pytest.raises(WorkerTimeout, match="deriving the inputs of the model"):
        make(ConfigRequest(bert, target="cpu", precision="fp32"), worker, on_event=events.append, timeout_s=0.01)
    assert events == [StageStarted("derive", hit=False)]
