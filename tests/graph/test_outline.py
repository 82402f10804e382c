from __future__ import annotations

import contextlib
from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import model_zoo
from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.graph.outline import context_file_names, has_matrix_of_type, outline


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


def _context(*names: str, embed_mode: int = 0) -> onnx.ModelProto:
    """A model with one EPContext node that names files."""
    node = onnx.helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", embed_mode=embed_mode)
    node.attribute.extend(onnx.helper.make_attribute("ep_cache_context", name) for name in names)
    values = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in "xy"]
    return onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:]))


def test_names_the_files_of_compiled_parts(tmp_path: Path, zoo: Path) -> None:
    assert context_file_names(zoo / "conv.onnx") == ()
    (tmp_path / "m.onnx").write_bytes(_context("a.bin", "../b.bin").SerializeToString())
    assert context_file_names(tmp_path / "m.onnx") == ("a.bin", "../b.bin")


def test_data_inside_the_model_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(_context("\x00binary", embed_mode=1).SerializeToString())
    assert context_file_names(tmp_path / "m.onnx") == ()


def test_compiled_parts_in_subgraphs_and_functions_are_found(tmp_path: Path) -> None:
    inner = _context("sub.bin")
    node = onnx.helper.make_node("If", ["x"], ["y"], then_branch=inner.graph, else_branch=inner.graph)
    values = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in "xy"]
    opset = [onnx.helper.make_opsetid("", 20)]
    function = onnx.helper.make_function("d", "f", ["x"], ["y"], list(_context("function.bin").graph.node), opset)
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:]), functions=[function])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert set(context_file_names(tmp_path / "m.onnx")) == {"sub.bin", "function.bin"}


def _holder(kind: int, dims: tuple[int, ...]) -> onnx.GraphProto:
    """A graph with one weight."""
    weight = onnx.helper.make_tensor("w", kind, dims, b"\x01" * (4 if kind == onnx.TensorProto.INT8 else 16), raw=True)
    node = onnx.helper.make_node("Identity", ["w"], ["y"])
    return onnx.helper.make_graph([node], "g", [], [onnx.helper.make_tensor_value_info("y", kind, dims)], [weight])


@pytest.mark.parametrize(
    ("kind", "dims", "found"),
    [
        (onnx.TensorProto.INT8, (2, 2), True),
        (onnx.TensorProto.INT8, (4,), False),
        (onnx.TensorProto.FLOAT, (2, 2), False),
    ],
)
@pytest.mark.parametrize("place", ["graph", "subgraph", "function"])
def test_matrices_of_a_type_are_found_wherever_they_are(
    tmp_path: Path, place: str, kind: int, dims: tuple[int, ...], found: bool
) -> None:
    graph = _holder(kind, dims)
    branch = onnx.helper.make_node("If", ["x"], ["y"], then_branch=graph, else_branch=graph)
    values = [onnx.helper.make_tensor_value_info("x", 9, [1]), onnx.helper.make_tensor_value_info("y", kind, dims)]
    opset = [onnx.helper.make_opsetid("", 20)]
    functions = []
    if place == "subgraph":
        graph = onnx.helper.make_graph([branch], "g", values[:1], values[1:])
    elif place == "function":
        functions = [onnx.helper.make_function("d", "f", ["x"], ["y"], [branch], opset)]
        graph = onnx.helper.make_graph(
            [onnx.helper.make_node("f", ["x"], ["y"], domain="d")], "g", values[:1], values[1:]
        )
    model = onnx.helper.make_model(graph, functions=functions)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert has_matrix_of_type(tmp_path / "m.onnx", onnx.TensorProto.INT8) is found
