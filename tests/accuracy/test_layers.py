"""Slices, matches and layers of small graphs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from winml.modelkit.accuracy import layers
from winml.modelkit.accuracy.matching import match_values
from winml.modelkit.accuracy.noise import NoiseSum
from winml.modelkit.accuracy.slices import Graph

REFERENCE = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 4] x) => (float[1, 4] y) {
    [first] a = MatMul(x, w1)
    [act] b = Relu(a)
    [second] y = MatMul(b, w2)
}
"""
QUANTIZED = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[1, 4] x) => (float[1, 4] y) {
    xq = QuantizeLinear(x, s, z)
    xd = DequantizeLinear(xq, s, z)
    [first] a = MatMul(xd, w1)
    [act] b = Relu(a)
    bq = QuantizeLinear(b, s, z)
    bd = DequantizeLinear(bq, s, z)
    [second] y = MatMul(bd, w2)
}
"""


def parse(text: str) -> Graph:
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=(4, 4)).astype(np.float32) for name in ("w1", "w2")}
    constants = {**weights, "s": np.array(0.05, np.float32), "z": np.array(128, np.uint8)}
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return Graph(model)


def test_a_slice_ends_at_the_values_it_is_told_to_end_at() -> None:
    graph = parse(QUANTIZED)
    found = graph.cut("y", {"b"})
    assert [graph.nodes[index].op_type for index in found.nodes] == ["QuantizeLinear", "DequantizeLinear", "MatMul"]
    assert found.inputs == ("b",)
    assert graph.seen("b") == "bd"
    assert graph.seen("y") == "y"


def test_what_is_not_quantized_between_two_operators_ends_no_layer() -> None:
    reference, candidate = parse(REFERENCE), parse(QUANTIZED)
    matched = match_values(reference, candidate)
    assert set(matched.values) == {"a", "b", "y"}
    found = layers.find_layers(reference, candidate, matched, ["a", "b", "y"])
    assert [layer.value for layer in found] == ["x", "b", "y"]
    assert [name for name, _ in layers.describe_nodes(reference, found[1].reference)] == ["first", "act"]
    assert found[2].inputs == {"b": "b"}
    # An input is a layer where it is quantized.
    assert (found[0].seen, found[0].reference.nodes, layers.input_pairs(candidate, found[0])) == ("xd", (), {})
    assert layers.output_pair(candidate, found[0]) is not None
    assert layers.output_pair(candidate, found[2]) is None


def test_values_with_other_names_are_matched_by_the_order_of_operators() -> None:
    renamed = parse(QUANTIZED.replace("a =", "other_a =").replace("(a)", "(other_a)").replace(" b = ", " other_b = ")
                    .replace("(b,", "(other_b,"))  # fmt: skip
    matched = match_values(parse(REFERENCE), renamed)
    assert matched.values == {"a": "other_a", "b": "other_b", "y": "y"}
    assert matched.by_structure == {"a", "b"}
    assert matched.unmatched == ()


@pytest.mark.parametrize("names", ["own", "other"])
def test_a_product_that_has_swallowed_its_relu_is_matched_to_the_value_behind_it(names: str) -> None:
    """As onnxruntime's tool writes it: the pair of the product cuts off what the Relu cut off."""
    text = QUANTIZED.replace("    [act] b = Relu(a)\n", "").replace("QuantizeLinear(b,", "QuantizeLinear(a,")
    if names == "other":
        text = text.replace(" a =", " other_a =").replace("(a,", "(other_a,")
    name = "a" if names == "own" else "other_a"
    reference, candidate = parse(REFERENCE), parse(text)
    matched = match_values(reference, candidate)
    assert matched.values == {"b": name, "y": "y"}
    assert matched.by_structure == {"b"}
    assert matched.unmatched == ("a",)
    found = layers.find_layers(reference, candidate, matched, ["b", "y"])
    assert [layer.value for layer in found] == ["x", "b", "y"]
    assert [name for name, _ in layers.describe_nodes(reference, found[1].reference)] == ["first", "act"]
    # Where the reference shows the value to others, it is one of its own.
    shown = parse(REFERENCE.replace("=> (float[1, 4] y)", "=> (float[1, 4] y, float[1, 4] a)"))
    assert "a" in match_values(shown, candidate).values


def test_layers_by_themselves_compute_what_they_compute_in_the_model() -> None:
    import onnxruntime

    reference, candidate = parse(REFERENCE), parse(QUANTIZED)
    matched = match_values(reference, candidate)
    x = np.linspace(-1, 1, 4, dtype=np.float32)[None]
    exposed = layers.expose(reference.model, ["a", "b"])
    session = onnxruntime.InferenceSession(exposed.SerializeToString())
    values = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"x": x}), strict=True)) | {"x": x}
    found = list(enumerate(layers.find_layers(reference, candidate, matched, ["a", "b", "y"])))
    joined = layers.join_candidates(candidate, found, values, {})
    alone = onnxruntime.InferenceSession(joined.SerializeToString())
    feed = {value.name: values[value.name] for value in alone.get_inputs()}
    made = dict(zip([o.name for o in alone.get_outputs()], alone.run(None, feed), strict=True))
    pair = layers.input_pairs(candidate, found[2][1])["b"]
    w2 = numpy_helper.to_array(candidate.model.graph.initializer[1])
    np.testing.assert_allclose(made[layers.output_name(2)], pair.apply(values["b"]) @ w2, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "zero", "given", "seen"),
    [
        (TensorProto.UINT8, 128, [-7.0, 0.024, 0.026, 9.0], [-6.4, 0.0, 0.05, 6.35]),
        (TensorProto.INT8, 0, [-7.0, 0.024, 0.026, 9.0], [-6.4, 0.0, 0.05, 6.35]),
    ],
)
def test_a_pair_does_what_the_operators_do(kind: int, zero: int, given: list[float], seen: list[float]) -> None:
    scale, point = helper.make_tensor("s", 1, [], [0.05]), helper.make_tensor("z", kind, [], [zero])
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])
    pair = layers._read_pair(node, {"s": scale, "z": point})
    assert pair is not None
    np.testing.assert_allclose(pair.apply(np.array(given, np.float32)), seen, atol=1e-6)
    assert pair.clipped(np.array(given, np.float32)) == 2


def test_noise_is_added_up_over_samples() -> None:
    total = NoiseSum()
    total.add(np.array([3.0, 0.0]), np.array([3.0, 0.3]))
    total.add(np.array([0.0, 1.0]), np.array([0.1, 1.0]))
    found = total.result()
    assert found is not None
    assert found.sqnr_db == pytest.approx(20.0)
    assert not found.equal
    assert found.rank == found.sqnr_db


def test_numbers_that_are_none_are_counted_and_rank_first() -> None:
    total = NoiseSum()
    total.add(np.array([1.0, 2.0, np.inf]), np.array([1.0, np.nan, np.inf]))
    found = total.result()
    assert found is not None
    assert found.not_finite == 1
    assert found.rank == -np.inf
    total = NoiseSum()
    total.add(np.array([1.0]), np.array([1.0]))
    same = total.result()
    assert same is not None
    assert same.equal
    assert same.rank == np.inf


def test_where_nothing_is_compared_there_is_no_answer() -> None:
    total = NoiseSum()
    total.add(np.zeros((0, 3)), np.zeros((0, 3)))
    assert total.result() is None


def test_noise_is_added_to_a_value_inside_a_model() -> None:
    import onnxruntime

    reference = parse(REFERENCE)
    model, name = layers.add_noise(reference.model, {"b": TensorProto.FLOAT}), layers.noise_name("b")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = np.ones((1, 4), np.float32)
    plain = session.run(["y"], {"x": x, name: np.zeros((1, 4), np.float32)})[0]
    noisy = session.run(["y"], {"x": x, name: np.ones((1, 4), np.float32)})[0]
    w2 = numpy_helper.to_array(reference.model.graph.initializer[1])
    np.testing.assert_allclose(noisy - plain, np.ones((1, 4)) @ w2, rtol=1e-4)


def test_noise_is_added_to_an_input_of_a_model() -> None:
    import onnxruntime

    reference = parse(REFERENCE)
    model, name = layers.add_noise(reference.model, {"x": TensorProto.FLOAT}), layers.noise_name("x")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = np.linspace(-1, 1, 4, dtype=np.float32)[None]
    noisy = session.run(["y"], {"x": np.zeros_like(x), name: x})[0]
    plain = session.run(["y"], {"x": x, name: np.zeros_like(x)})[0]
    np.testing.assert_array_equal(noisy, plain)


def test_the_noise_of_an_input_reaches_the_bodies_that_read_it() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]> g (bool c, float[1, 4] x) => (float[1, 4] y) {
        y = If (c) <
            then_branch = a () => (float[1, 4] t) { t = Sin(x) },
            else_branch = b () => (float[1, 4] e) { e = Cos(x) }
        >
    }"""
    model = layers.add_noise(onnx.parser.parse_model(text), {"x": TensorProto.FLOAT})
    (node,) = (node for node in model.graph.node if node.op_type == "If")
    assert [body.g.node[0].input[0] for body in node.attribute] == ["winml-layer/plain/x"] * 2
