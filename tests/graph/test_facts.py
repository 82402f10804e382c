"""What is said about a model, and what is said to be unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from winml.modelkit.core.values import to_json
from winml.modelkit.graph import files
from winml.modelkit.graph.description import ValueFacts
from winml.modelkit.graph.facts import facts

NESTED = """
    <ir_version: 10, opset_import: ["" : 17, "local" : 1, "com.microsoft" : 1],
     producer_name: "tool", producer_version: "1.2">
    g (float[batch,3] x, bool c) => (float[batch,5] y, int64[?] k)
    <float[3,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}, int64[1] s = {3}> {
        q = local.product(x, w)
        i = If(c) <
            then_branch = t () => (float[batch,5] a) { a = com.microsoft.FastGelu(q) },
            else_branch = e () => (float[batch,5] b) { b = MatMul(x, w) }
        >
        y = Relu(i)
        k = Identity(s)
    }
    <domain: "local", opset_import: ["" : 17]> product (l, r) => (p) { h = Relu(l)  p = MatMul(h, r) }
"""


def test_nodes_of_branches_and_functions_count(parse: Any) -> None:
    found = facts(parse(NESTED))
    assert found.nodes == 8
    assert list(found.ops.items()) == [
        ("MatMul", 2),
        ("Relu", 2),
        ("Identity", 1),
        ("If", 1),
        ("com.microsoft:FastGelu", 1),
        ("local:product", 1),
    ]
    assert found.contrib_ops == ("com.microsoft:FastGelu",)


def test_versions_and_producer_are_those_of_the_file(parse: Any) -> None:
    found = facts(parse(NESTED))
    assert (found.ir_version, found.producer_name, found.producer_version) == (10, "tool", "1.2")
    assert found.opsets == {"ai.onnx": 17, "local": 1, "com.microsoft": 1}
    assert found.opset == 17


def test_inputs_and_outputs_have_sizes_symbols_and_unknown_sizes(parse: Any) -> None:
    found = facts(parse(NESTED))
    assert found.inputs == (ValueFacts("x", "float32", ("batch", 3)), ValueFacts("c", "bool", ()))
    assert found.outputs == (ValueFacts("y", "float32", ("batch", 5)), ValueFacts("k", "int64", ("k[0]",)))
    assert found.dynamic_axes == {"batch": ("x[0]", "y[0]"), "k[0]": ("k[0]",)}


def test_an_input_with_an_initializer_is_not_an_input(parse: Any) -> None:
    model = parse("g (float[1] x, float[1] w) => (float[1] y) { y = Add(x, w) }", w=np.ones(1, np.float32))
    assert [value.name for value in facts(model).inputs] == ["x"]


def test_values_that_are_no_tensors_are_named_by_their_type(parse: Any) -> None:
    model = parse("g (seq(float[N]) x, optional(int64) o) => (float[] y) { y = ConcatFromSequence<axis = 0>(x) }")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = facts(model)
    assert found.inputs[0] == ValueFacts("x", "sequence(float32)", None)
    assert found.inputs[1].dtype == "optional(int64)"
    assert found.outputs == (ValueFacts("y", "float32", None),)


# --- share of convolutions


def test_the_share_of_convolutions_is_one_of_nodes(parse: Any) -> None:
    model = parse("""g (float[1,3,8,8] x, float[4,3,3,3] w) => (float[1] y) {
        c = Conv(x, w)  d = com.microsoft.FusedConv(x, w)  e = Add(c, d)  y = Relu(e)
    }""")
    assert facts(model).conv_share == 0.5


def test_without_nodes_the_share_of_convolutions_is_unknown(parse: Any) -> None:
    assert facts(parse("g (float[1] x) => (float[1] x) { }")).conv_share is None


def test_in_a_compiled_model_the_share_of_convolutions_is_unknown(parse: Any) -> None:
    model = parse("""g (float[1] x) => (float[1] y) {
        a = com.microsoft.EPContext<source = "QNN", embed_mode = 1, ep_cache_context = "...">(x)
        y = com.microsoft.EPContext(a)
    }""")
    found = facts(model)
    assert found.compiled
    assert found.compiled_for == ("QNN", "unknown")
    assert found.conv_share is None
    assert (found.macs.macs, found.macs.unknown_nodes) == (None, 2)


# --- weights


def test_parameters_count_once_and_constants_count(parse: Any) -> None:
    model = parse(
        """g (float[3] x) => (float[3] y) {
            k = Constant<value = float[3] {1, 2, 3}>()
            a = Add(x, w)  b = Add(a, w)  c = Add(b, k)  y = Reshape(c, s)
        }""",
        w=np.ones(3, np.float32),
        unused=np.ones(50, np.float32),
        s=np.array([3]),
    )
    assert facts(model).parameters == 6


def test_quantizing_a_model_leaves_the_number_of_its_parameters(parse: Any) -> None:
    float_model = parse(
        "g (float[1,3,8,8] x) => (float[1,4,6,6] y) { y = Conv(x, w, b) }",
        w=np.ones((4, 3, 3, 3), np.float32),
        b=np.ones(4, np.float32),
    )
    pairs = parse(
        """g (float[1,3,8,8] x) => (float[1,4,6,6] y) {
            q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
            v = DequantizeLinear(w, s, z)  a = DequantizeLinear(b, s)  y = Conv(d, v, a)
        }""",
        w=np.ones((4, 3, 3, 3), np.uint8),
        b=np.ones(4, np.int32),
        s=np.ones((), np.float32),
        z=np.zeros((), np.uint8),
    )
    assert facts(float_model).parameters == facts(pairs).parameters == 112


def test_packed_weights_count_by_what_they_hold(parse: Any) -> None:
    model = parse(
        "g (float[1,64] x) => (float[1,32] y) { y = com.microsoft.MatMulNBits<K = 64, N = 32, bits = 4>(x, w, s) }",
        w=np.ones((32, 2, 16), np.uint8),
        s=np.ones(64, np.float32),
    )
    assert facts(model).parameters == 64 * 32


def test_bytes_are_those_of_the_element_types(parse: Any) -> None:
    model = parse(
        "g (float[1] x) => (float[1] y) { y = Add(x, a) }", a=np.ones(10, np.float32), h=np.ones(10, np.float16)
    )
    for name, data_type in (("b", TensorProto.BFLOAT16), ("e", TensorProto.FLOAT8E4M3FN)):
        model.graph.initializer.append(helper.make_tensor(name, data_type, [10], [1.0] * 10))
    model.graph.initializer.append(helper.make_tensor("i", TensorProto.INT4, [5], [1] * 5))
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [2], ["ab", "c"]))
    found = facts(model)
    assert found.float_types == {"fp32": 40, "fp16": 20, "bf16": 20, "float8e4m3fn": 10}
    assert found.initializer_bytes == 40 + 20 + 20 + 10 + 3 + 3


# --- files


def test_without_a_path_the_size_on_disk_is_unknown(perceptron: ModelProto) -> None:
    assert facts(perceptron).file_bytes is None


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("external", [True, False])
def test_the_size_on_disk_has_the_data_file_in_it(
    perceptron: ModelProto, weights: bool, external: bool, tmp_path: Path
) -> None:
    written = files.save(perceptron, tmp_path / "m.onnx", external_data="always" if external else "never")
    found = facts(files.load(tmp_path / "m.onnx", weights=weights), tmp_path / "m.onnx")
    assert found.file_bytes == sum(file.stat().st_size for file in written)
    assert found.external_data is external
    assert found.initializer_bytes == 2 * 36 * 36 * 4


def test_weights_need_not_be_loaded(perceptron: ModelProto, tmp_path: Path) -> None:
    files.save(perceptron, tmp_path / "m.onnx", external_data="always")
    loaded = facts(files.load(tmp_path / "m.onnx"), tmp_path / "m.onnx")
    assert facts(files.load(tmp_path / "m.onnx", weights=False), tmp_path / "m.onnx") == loaded
    assert loaded.macs.macs == 2 * 36 * 36


def test_a_shape_in_the_data_file_is_read_for_the_macs(parse: Any, tmp_path: Path) -> None:
    model = parse(
        "g (float[2,12] x) => (float[a,b] y) { r = Reshape(x, s)  y = MatMul(r, w) }",
        s=np.array([8, 3]),
        w=np.ones((3, 5), np.float32),
    )
    # As other tools write it: ours keep lists of whole numbers in the model file.
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    structure = files.load(tmp_path / "m.onnx", weights=False)
    assert facts(structure).macs.macs is None
    assert facts(structure, tmp_path / "m.onnx").macs.macs == 8 * 15


# --- JSON


def test_the_json_holds_every_fact(parse: Any) -> None:
    found = to_json(facts(parse(NESTED), dims={"batch": 4}))
    assert json.loads(json.dumps(found)) == found
    assert found["inputs"][0] == {"name": "x", "dtype": "float32", "shape": ["batch", 3]}
    assert found["dynamic_axes"]["batch"] == ["x[0]", "y[0]"]
    assert found["macs"] == {"macs": 4 * 15 * 2, "unknown_nodes": 0, "assumed": {"batch": 4}, "reason": None}
    assert found["quantized"]["kind"] == "none"
    assert found["compiled"] is False
    assert found["file_bytes"] is None


def test_the_model_of_the_caller_stays_as_it_is(perceptron: ModelProto) -> None:
    before = perceptron.SerializeToString(deterministic=True)
    facts(perceptron, dims={"N": 3})
    assert perceptron.SerializeToString(deterministic=True) == before
    assert numpy_helper.to_array(perceptron.graph.initializer[0]).shape == (36, 36)
