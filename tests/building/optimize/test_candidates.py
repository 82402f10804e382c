"""Which passes change a model, each run alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import model_zoo
import pass_zoo
from winml.modelkit.building.optimize.candidates import candidates
from winml.modelkit.building.optimize.result import Candidate
from winml.modelkit.building.optimize.table import available
from winml.modelkit.core.errors import RequestError


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _found(path: Path, context: Any, passes: list[str] | None = None) -> dict[str, Candidate]:
    answer = candidates({"model": str(path), "passes": passes}, context)
    return {row.name: row for row in answer.passes}


def test_every_pass_that_can_act_is_tried(tmp_path: Path, events: Any) -> None:
    found = _found(model_zoo.saved(model_zoo.conv_net(), tmp_path / "m.onnx"), events)
    assert list(found) == [row.name for row in available()] == events.passes
    changing = {name: row.ops_delta for name, row in found.items() if row.status == "changes"}
    assert changing["conv_activation_fusion"] == {"Conv": -3, "Relu": -3, "com.microsoft:FusedConv": 3}
    assert found["conv_activation_fusion"].nodes_delta == -3
    assert "conv_bn_fusion" not in changing


def test_a_fusion_counts_only_its_own_work(tmp_path: Path, events: Any) -> None:
    path = model_zoo.saved(pass_zoo.transformer(), tmp_path / "m.onnx")
    found = _found(path, events, ["skip-layer-norm-fusion", "layer_norm_contrib_fusion"])
    assert list(found) == ["layer_norm_contrib_fusion", "skip_layer_norm_fusion"]
    skip = found["skip_layer_norm_fusion"]
    assert list(skip.after) == ["layer_norm_fusion", "layer_norm_contrib_fusion"]
    assert skip.ops_delta == {"Add": -5, "LayerNormalization": -3, "com.microsoft:SkipLayerNormalization": 3}


def test_a_pass_that_waits_for_a_newer_opset_says_so(tmp_path: Path, events: Any) -> None:
    found = _found(model_zoo.saved(pass_zoo.transformer(), tmp_path / "m.onnx"), events, ["gelu_fusion"])
    assert found["gelu_fusion"].note == "needs opset 20; the model has 12"


def test_an_unknown_pass_is_refused(tmp_path: Path, events: Any) -> None:
    with pytest.raises(RequestError, match="unknown pass `nope`"):
        _found(model_zoo.saved(model_zoo.relu(), tmp_path / "m.onnx"), events, ["nope"])
