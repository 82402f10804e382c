"""What the file of a compiled model shows."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto, TensorProto, helper

from winml.modelkit.graph.context import context_facts


def _node(name: str, **attributes: object) -> object:
    return helper.make_node("EPContext", ["x"], [name], name=name, domain="com.microsoft", **attributes)


def _model(*nodes: object) -> ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    out = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, [1])  # type: ignore[attr-defined]
    graph = helper.make_graph(list(nodes), "g", [value], [out])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    )
    helper.set_model_props(model, {"ep_compatibility_info.QNNExecutionProvider": "v2:6", "other": "1"})
    model.ir_version = 10
    return model


def test_nodes_binaries_and_what_is_left_for_the_cpu_are_counted(tmp_path: Path) -> None:
    relu = helper.make_node("Relu", ["x"], ["r"])
    first = _node("a", embed_mode=0, ep_cache_context="m.bin", main_context=1)
    second = _node("b", embed_mode=0, main_context=0)
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(relu, first, second).SerializeToString())
    (tmp_path / "m.bin").write_bytes(b"1234")
    found = context_facts(path)
    assert (found.nodes, found.binaries, found.missing) == (2, {"m.bin": 1}, ())
    assert found.other_ops == {"Relu": 1}
    assert found.compatibility == {"QNNExecutionProvider": "v2:6"}
    assert found.embedded_bytes == 0


def test_a_binary_that_is_not_there_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(_node("a", embed_mode=0, ep_cache_context="gone.bin")).SerializeToString())
    assert context_facts(path).missing == ("gone.bin",)


def test_data_inside_the_node_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(_node("a", embed_mode=1, ep_cache_context=b"12345678")).SerializeToString())
    found = context_facts(path)
    assert (found.binaries, found.embedded_bytes) == ({}, 8)
