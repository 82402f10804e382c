from __future__ import annotations

import contextlib
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import model_zoo
from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.graph.outline import outline


@pytest.mark.parametrize("name", ["relu", "conv", "fused", "split", "encoder", "embedding"])
def test_reads_the_same_nodes_as_onnx(zoo: Path, name: str) -> None:
    model = onnx.load(zoo / f"{name}.onnx")
    found = outline(zoo / f"{name}.onnx")
    assert [(n.name, n.op_type, n.domain, n.inputs, n.outputs) for n in found.nodes] == [
        (n.name, n.op_type, n.domain, tuple(n.input), tuple(n.output)) for n in model.graph.node
    ]
    assert found.weights == {w.name for w in model.graph.initializer}
    assert not found.compiled


def test_nodes_without_a_name_of_their_own_are_called_by_type_and_index(tmp_path: Path) -> None:
    model = model_zoo.conv_net()
    model.graph.node[1].name = model.graph.node[3].name = "twice"
    labels = [n.label for n in outline(model_zoo.saved(model, tmp_path / "m.onnx")).nodes]
    assert labels[:4] == ["Conv_0", "twice_1", "Conv_2", "twice_3"]


def test_nodes_of_subgraphs_come_after_the_node_that_holds_them_and_have_no_index(zoo: Path) -> None:
    found = outline(zoo / "hang.onnx").nodes
    assert [(n.op_type, n.index) for n in found] == [("Loop", 0), ("Identity", None), ("Sin", None)]


@pytest.mark.parametrize("content", [b"", b"\xff" * 40, b"\x3a\x50abc"])
def test_bytes_that_are_no_model_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="cannot be read"):
        outline(path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, 10**6))
def test_a_cut_file_never_ends_in_anything_but_our_error(tmp_path: Path, cut: int) -> None:
    data = model_zoo.conv_net().SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(data[: cut % len(data)])
    with contextlib.suppress(ModelFileError):
        assert len(outline(path).nodes) <= 8


def test_sizes_of_weights_are_read_without_their_content(zoo: Path) -> None:
    model = onnx.load(zoo / "conv.onnx")
    found = outline(zoo / "conv.onnx")
    assert dict(found.shapes) == {t.name: tuple(t.dims) for t in model.graph.initializer}
    assert found.weight_bytes == sum(len(t.raw_data) for t in model.graph.initializer)
    constant = model_zoo.text_model("g () => (float[2,1] y) { y = Constant <value = float[2,1] {1, 2}> () }")
    assert dict(outline(model_zoo.saved(constant, zoo / "constant.onnx")).shapes) == {"y": (2, 1)}
