from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import analysis_zoo
import model_zoo
from winml.modelkit.building.analysis.prepare import COPY, prepare
from winml.modelkit.building.analysis.result import PreparedModel
from winml.modelkit.core.errors import RequestError


def _prepare(path: Path, **changes: Any) -> PreparedModel:
    return prepare({"path": str(path), "dims": {}, "targets": [("cpu", "cpu"), ("qnn", "npu")], **changes}, None)


@pytest.fixture(autouse=True)
def _run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_model_with_unique_names_is_asked_as_it_is(tmp_path: Path) -> None:
    path = model_zoo.saved(analysis_zoo.qdq_conv("uint8", "int8"), tmp_path / "m.onnx")
    assert _prepare(path).asked == str(path)
    assert not (tmp_path / COPY).exists()


def test_nodes_without_unique_names_get_them_in_a_copy(tmp_path: Path) -> None:
    model = model_zoo.conv_net()
    model.graph.node[0].name = model.graph.node[1].name = "Relu_3"
    path = model_zoo.saved(model, tmp_path / "m.onnx")
    before = path.read_bytes()
    prepared = _prepare(path)
    names = [name for name, _ in prepared.nodes]
    assert all(names)
    assert len(set(names)) == len(names) == 8
    assert names[0] == "Relu_3"
    copy = onnx.load(prepared.asked)
    assert [node.name for node in copy.graph.node] == names
    assert [node.op_type for node in copy.graph.node] == [node.op_type for node in model.graph.node]
    assert path.read_bytes() == before


def test_dynamic_axes_have_sizes_and_those_without_a_symbol_get_one(tmp_path: Path) -> None:
    model = model_zoo.relu()
    model.graph.node[0].name = "relu"
    model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    prepared = _prepare(model_zoo.saved(model, tmp_path / "m.onnx"), dims={"batch": 3, "x[1]": 5})
    assert prepared.axes == {"batch": 3, "x[1]": 5}
    dims = onnx.load(prepared.asked).graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param for dim in dims] == ["batch", "x[1]"]


def test_a_dimension_the_model_has_not_got_is_refused(tmp_path: Path) -> None:
    path = model_zoo.saved(model_zoo.relu(), tmp_path / "m.onnx")
    with pytest.raises(RequestError, match="no symbolic dimension `bach`") as caught:
        _prepare(path, dims={"bach": 2})
    assert "batch" in str(caught.value.hint)


def test_hazards_are_given_per_target(tmp_path: Path) -> None:
    prepared = _prepare(model_zoo.saved(model_zoo.relu(), tmp_path / "m.onnx"))
    assert prepared.hazards["cpu/cpu"] == ()
    assert [h.id for h in prepared.hazards["qnn/npu"]] == ["dynamic-shapes"]
