"""Which changes of a model change its fingerprint, and which do not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser, shape_inference

from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.graph import walk
from winml.modelkit.graph.fingerprint import fingerprint

TEXT = """
    <ir_version: 10, opset_import: ["" : 17, "local" : 1]>
    g (float[N,3] x, bool c) => (float[N,5] y)
    <float[3,5] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15}, int64[2] s = {-1,5}> {
        q = local.product(x, w)
        t = Transpose<perm = [1, 0]>(x)
        i = If(c) <
            then_branch = yes () => (float[N,5] a) { z = Relu(q)  a = Clip(z, z, z) },
            else_branch = no () => (float[N,5] b) { b = MatMul(x, w) }
        >
        y = Reshape(i, s)
    }
    <domain: "local", opset_import: ["" : 17]> product (l, r) => (p) { p = MatMul(l, r) }
"""


@pytest.fixture
def model() -> ModelProto:
    return parser.parse_model(TEXT)


def changed(text: str, old: str, new: str) -> ModelProto:
    assert text.count(old) == 1, old
    return parser.parse_model(text.replace(old, new))


def test_it_is_a_sha256(model: ModelProto) -> None:
    kind, _, digest = fingerprint(model).partition(":")
    assert kind == "sha256"
    assert len(bytes.fromhex(digest)) == 32


def test_it_stays_the_same_from_release_to_release(model: ModelProto) -> None:
    # findings and caches keep it; a change here needs an entry in the changelog
    assert fingerprint(model) == "sha256:070a0660c54f40c2549af859d3d85d367f30b42e0242effab5982a451cd5698d"


# --- what does not count


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("q = local.product(x, w)\n        t = Transpose<perm = [1, 0]>(x)",
         "t = Transpose<perm = [1, 0]>(x)\n        q = local.product(x, w)"),
        ("z = Relu(q)  a = Clip(z, z, z)", "inner = Relu(q)  a = Clip(inner, inner, inner)"),
        ("yes () => (float[N,5] a) { z = Relu(q)  a = Clip", "ja () => (float[7] k) { z = Relu(q)  k = Clip"),
        ("product (l, r) => (p) { p = MatMul(l, r) }", "product (u, v) => (o) { o = MatMul(u, v) }"),
        ("ir_version: 10", "ir_version: 11"),
        ('"" : 17, "local" : 1', '"local" : 1, "ai.onnx" : 17'),
        ("    g (float", "    another_name (float"),
    ],
)  # fmt: skip
def test_names_and_order_do_not_count(model: ModelProto, old: str, new: str) -> None:
    assert fingerprint(changed(TEXT, old, new)) == fingerprint(model)


def test_documentation_metadata_and_producer_do_not_count(model: ModelProto) -> None:
    before = fingerprint(model)
    model.producer_name, model.producer_version, model.doc_string, model.model_version = "a", "b", "c", 4
    model.graph.doc_string = model.graph.node[0].doc_string = model.graph.input[0].doc_string = "text"
    model.metadata_props.add(key="k", value="v")
    model.graph.node[0].name = "called"
    assert fingerprint(model) == before


def test_declared_shapes_inside_the_graph_do_not_count(parse: Any) -> None:
    plain = parse("g (float[2,3] x) => (float[2,3] y) { h = Relu(x)  y = Abs(h) }")
    inferred = shape_inference.infer_shapes(plain)
    assert inferred.graph.value_info
    assert fingerprint(inferred) == fingerprint(plain)


def test_names_of_initializers_do_not_count(parse: Any) -> None:
    weights = np.arange(6, dtype=np.float32)
    one = parse("g (float[6] x) => (float[6] y) { y = Add(x, a) }", a=weights)
    two = parse("g (float[6] x) => (float[6] y) { y = Add(x, b) }", b=weights)
    assert fingerprint(one) == fingerprint(two)


def test_initializers_that_nothing_uses_do_not_count(parse: Any) -> None:
    text = "g (float[6] x) => (float[6] y) { y = Relu(x) }"
    assert fingerprint(parse(text, unused=np.ones(6, np.float32))) == fingerprint(parse(text))


def test_the_order_of_attributes_does_not_count(parse: Any) -> None:
    one = parse("g (float[1,1,9] x, float[1,1,3] w) => (float y) { y = Conv<group = 1, pads = [1, 1]>(x, w) }")
    two = parse("g (float[1,1,9] x, float[1,1,3] w) => (float y) { y = Conv<pads = [1, 1], group = 1>(x, w) }")
    assert fingerprint(one) == fingerprint(two)


def test_empty_names_at_the_end_do_not_count(parse: Any) -> None:
    one = parse("g (float[1] x) => (float[1] y) { y = Clip(x) }")
    two = parse('g (float[1] x) => (float[1] y) { y = Clip(x, "", "") }')
    assert len(two.graph.node[0].input) == 3
    assert fingerprint(one) == fingerprint(two)


def stored_as_raw(data_type: int, values: list[Any]) -> tuple[TensorProto, TensorProto]:
    """One tensor twice: in the typed field and in `raw_data`."""
    return tuple(  # type: ignore[return-value]
        helper.make_tensor("w", data_type, [len(values)], stored, raw=raw)
        for stored, raw in ((values, False), (raw_bytes(data_type, values), True))
    )


def raw_bytes(data_type: int, values: list[Any]) -> bytes:
    tensor = helper.make_tensor("w", data_type, [len(values)], values)
    return numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("FLOAT", [1.5, -2.0, 3.25]),
        ("DOUBLE", [1.5, -2.0]),
        ("FLOAT16", [1.5, -2.0]),
        ("BFLOAT16", [1.5, -2.0]),
        ("INT8", [-1, 127, -128]),
        ("UINT8", [0, 255]),
        ("INT16", [-1, 300]),
        ("UINT16", [65535, 1]),
        ("INT32", [-1, 2**31 - 1]),
        ("INT64", [-1, 2**62]),
        ("UINT32", [2**32 - 1, 0]),
        ("UINT64", [2**64 - 1, 0]),
        ("BOOL", [True, False]),
        ("INT4", [-8, 7, 3]),
        ("UINT4", [15, 0, 9]),
        ("FLOAT8E4M3FN", [1.5, -2.0]),
        ("COMPLEX64", [1 + 2j, 3 - 1j]),
    ],
)
def test_how_a_tensor_is_stored_does_not_count(parse: Any, name: str, values: list[Any]) -> None:
    typed, raw = stored_as_raw(TensorProto.DataType.Value(name), values)
    assert not typed.HasField("raw_data")
    assert raw.HasField("raw_data")
    prints = set()
    for tensor in (typed, raw):
        model = parse("g (float[1] x) => (float[1] y) { y = Cast<to = 1>(w) }")
        model.graph.initializer.append(tensor)
        prints.add(fingerprint(model))
    assert len(prints) == 1


# --- what counts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("perm = [1, 0]", "perm = [0, 1]"),
        ("Relu(q)", "Abs(q)"),
        ("Relu(q)", "Relu(x)"),
        ("{1,2,3,4", "{1,2,3,5"),
        ("w = {1", "w = {1.0000001"),
        ("float[3,5] w", "float[5,3] w"),
        ('"" : 17, "local"', '"" : 18, "local"'),
        ('"local" : 1]', '"local" : 1, "com.microsoft" : 1]'),
        ("float[N,3] x", "float[M,3] x"),
        ("float[N,3] x", "float[2,3] x"),
        ("float[N,3] x", "float16[N,3] x"),
        ("(float[N,5] y)", "(float[N,6] y)"),
        ("p = MatMul(l, r)", "p = MatMul(r, l)"),
        ('opset_import: ["" : 17]> product', 'opset_import: ["" : 18]> product'),
        ("t = Transpose<perm = [1, 0]>(x)", ""),
        ("Clip(z, z, z)", 'Clip(z, "", z)'),
    ],
)
def test_a_change_of_the_model_counts(model: ModelProto, old: str, new: str) -> None:
    assert fingerprint(changed(TEXT, old, new)) != fingerprint(model)


def test_names_of_inputs_and_outputs_count(parse: Any) -> None:
    texts = [
        "g (float[1] x) => (float[1] y) { y = Relu(x) }",
        "g (float[1] z) => (float[1] y) { y = Relu(z) }",
        "g (float[1] x) => (float[1] z) { z = Relu(x) }",
    ]
    assert len({fingerprint(parse(text)) for text in texts}) == 3


def test_an_initializer_that_is_an_input_too_counts_by_name_and_value(parse: Any) -> None:
    one, two = np.ones(1, np.float32), np.zeros(1, np.float32)
    models = [
        parse("g (float[1] x, float[1] w) => (float[1] y) { y = Add(x, w) }"),
        parse("g (float[1] x, float[1] w) => (float[1] y) { y = Add(x, w) }", w=one),
        parse("g (float[1] x, float[1] w) => (float[1] y) { y = Add(x, w) }", w=two),
        parse("g (float[1] x, float[1] v) => (float[1] y) { y = Add(x, v) }", v=one),
    ]
    assert len({fingerprint(model) for model in models}) == 4


def test_the_order_of_outputs_counts(parse: Any) -> None:
    one = parse("g (float[1] x) => (float[1] y, float[1] z) { y = Relu(x)  z = Abs(x) }")
    two = parse("g (float[1] x) => (float[1] y, float[1] z) { z = Relu(x)  y = Abs(x) }")
    assert fingerprint(one) != fingerprint(two)


def test_equal_nodes_do_not_collapse(parse: Any) -> None:
    texts = [
        "g (float[1] x) => (float[1] y) { a = Relu(x)  y = Add(a, a) }",
        "g (float[1] x) => (float[1] y) { a = Relu(x)  b = Relu(x)  y = Add(a, b) }",
        "g (float[1] x) => (float[1] y) { a = Relu(x)  b = Relu(x)  y = Add(a, a) }",
        "g (float[1] x) => (float[1] y) { a = Relu(x)  b = Relu(x)  c = Relu(x)  y = Add(a, b) }",
    ]
    assert len({fingerprint(parse(text)) for text in texts}) == 4


def test_outputs_of_one_node_are_told_apart(parse: Any) -> None:
    one = parse("g (float[4] x) => (float[2] y) { a, b = Split<axis = 0>(x)  y = Sub(a, b) }")
    two = parse("g (float[4] x) => (float[2] y) { a, b = Split<axis = 0>(x)  y = Sub(b, a) }")
    assert fingerprint(one) != fingerprint(two)


def test_parameters_of_nested_bodies_are_told_apart(parse: Any) -> None:
    text = """g (int64 n, bool c, float[1] x) => (float[1] y) {{
        y = Loop(n, c, x) <body = outer (int64 i, bool k, float[1] u) => (bool k, float[1] v) {{
            v = Loop(n, k, u) <body = inner (int64 j, bool l, float[1] s) => (bool l, float[1] t) {{ t = Add(s, {}) }}>
        }}>
    }}"""
    assert fingerprint(parse(text.format("u"))) != fingerprint(parse(text.format("s")))


def test_a_value_captured_by_a_branch_counts_by_what_it_is(parse: Any) -> None:
    text = """g (float[1] x, bool c) => (float[1] y) {{
        p = Relu(x)  q = Abs(x)
        y = If(c) <
            then_branch = t () => (float[1] a) {{ a = Neg({}) }},
            else_branch = e () => (float[1] b) {{ b = Neg(q) }}
        >
    }}"""
    renamed = parse(text.format("p").replace("p = Relu", "other = Relu").replace("Neg(p)", "Neg(other)"))
    assert fingerprint(parse(text.format("p"))) == fingerprint(renamed)
    assert fingerprint(parse(text.format("p"))) != fingerprint(parse(text.format("q")))


def test_the_same_name_in_two_branches_and_after_them_is_no_conflict(parse: Any) -> None:
    model = parse("""g (float[1] x, bool c) => (float[1] y) {
        i = If(c) <then_branch = t () => (float[1] y) { y = Neg(x) }, else_branch = e () => (float[1] y) { y = Abs(x) }>
        y = Relu(i)
    }""")
    assert fingerprint(model).startswith("sha256:")


# --- what has no fingerprint


def test_a_cycle_is_refused(parse: Any) -> None:
    model = parse("g (float[1] x) => (float[1] y) { a = Add(x, b)  b = Relu(a)  y = Abs(b) }")
    with pytest.raises(
        ModelFileError, match="3 nodes are in a cycle or depend on one; the first is Add without a name"
    ):
        fingerprint(model)


def test_a_value_that_nothing_makes_is_refused(parse: Any) -> None:
    with pytest.raises(ModelFileError, match="value `nothing` is used"):
        fingerprint(parse("g (float[1] x) => (float[1] y) { y = Relu(nothing) }"))


def test_an_output_that_nothing_makes_is_refused(parse: Any) -> None:
    with pytest.raises(ModelFileError, match="value `y` is used"):
        fingerprint(parse("g (float[1] x) => (float[1] y) { z = Relu(x) }"))


def test_a_value_made_twice_is_refused(parse: Any) -> None:
    with pytest.raises(ModelFileError, match="value `y` is produced twice, the second time by Abs `second`"):
        fingerprint(parse("g (float[1] x) => (float[1] y) { y = Relu(x)  [second] y = Abs(x) }"))


def test_external_data_must_be_loaded(parse: Any) -> None:
    model = parse("g (float[6] x) => (float[6] y) { y = Add(x, a) }", a=np.ones(6, np.float32))
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    with pytest.raises(ModelFileError, match="tensor `a` is in another file"):
        fingerprint(model)


# --- size


def test_a_chain_of_ten_thousand_nodes_needs_no_recursion() -> None:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(10_000)]
    random.Random(1).shuffle(nodes)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("v0", "v10000")]
    model = helper.make_model(helper.make_graph(nodes, "chain", values[:1], values[1:]))
    assert fingerprint(model).startswith("sha256:")


def test_fifty_megabytes_take_well_under_a_second(parse: Any) -> None:
    model = parse("g (float[1] x) => (float[1] y) { y = Add(x, w) }", w=np.zeros(12_500_000, np.float32))
    start = time.perf_counter()
    fingerprint(model)
    assert time.perf_counter() - start < 1.0


# --- any graph


@st.composite
def graphs(draw: st.DrawFn) -> ModelProto:
    """A graph in which every node differs from all others by its attribute `alpha`."""
    count = draw(st.integers(1, 12))
    initializers = draw(st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4), max_size=3))
    names = ["x", *(f"w{i}" for i in range(len(initializers)))]
    nodes = []
    for i in range(count):
        inputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
        outputs = [f"n{i}_{k}" for k in range(draw(st.integers(1, 2)))]
        operator = draw(st.sampled_from(["Elu", "Celu", "Mix"]))
        nodes.append(helper.make_node(operator, inputs, outputs, alpha=float(i), axis=i % 3))
        names += outputs
    ends = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=2, unique_by=lambda node: node.output[0]))
    tensors = [
        helper.make_tensor(f"w{i}", TensorProto.FLOAT, [len(values)], values) for i, values in enumerate(initializers)
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
            [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, ["N"]) for node in ends],
            tensors,
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )


def copied(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def renamed(model: ModelProto) -> ModelProto:
    """A copy with other names for everything but inputs and outputs."""
    copy = copied(model)
    fixed = {value.name for value in (*copy.graph.input, *copy.graph.output)}
    for tensor in copy.graph.initializer:
        tensor.name = f"other-{tensor.name}"
    for node in walk.nodes(copy):
        node.name = f"name-of-{node.op_type}"
        for names in (node.input, node.output):
            names[:] = [name if name in fixed else f"other-{name}" for name in names]
    return copy


def in_another_order(model: ModelProto, choose: Callable[[list[NodeProto]], NodeProto]) -> ModelProto:
    """A copy with its nodes in another topological order."""
    copy = copied(model)
    waiting, known = list(model.graph.node), {"x", *(tensor.name for tensor in model.graph.initializer)}
    del copy.graph.node[:]
    while waiting:
        node = choose([node for node in waiting if known.issuperset(node.input)])
        waiting.remove(node)
        known.update(node.output)
        copy.graph.node.append(node)
    return copy


@settings(deadline=None, max_examples=60)
@given(model=graphs(), data=st.data())
def test_no_renaming_and_no_topological_order_changes_it(model: ModelProto, data: st.DataObject) -> None:
    order = in_another_order(model, lambda ready: ready[data.draw(st.integers(0, len(ready) - 1))])
    assert fingerprint(renamed(order)) == fingerprint(model)


@settings(deadline=None, max_examples=60)
@given(model=graphs(), data=st.data())
def test_every_change_of_an_attribute_changes_it(model: ModelProto, data: st.DataObject) -> None:
    before = fingerprint(model)
    attribute = data.draw(st.sampled_from(model.graph.node)).attribute[data.draw(st.integers(0, 1))]
    if attribute.name == "alpha":
        attribute.f += 0.5
    else:
        attribute.i += 1
    assert fingerprint(model) != before


@settings(deadline=None, max_examples=60)
@given(model=graphs().filter(lambda model: used_initializers(model)), data=st.data())
def test_every_change_of_a_used_initializer_changes_it(model: ModelProto, data: st.DataObject) -> None:
    before = fingerprint(model)
    values = data.draw(st.sampled_from(used_initializers(model))).float_data
    index = data.draw(st.integers(0, len(values) - 1))
    values[index] = 1.0 if values[index] != 1.0 else 2.0
    assert fingerprint(model) != before


def used_initializers(model: ModelProto) -> list[TensorProto]:
    used = {name for node in model.graph.node for name in node.input}
    return [tensor for tensor in model.graph.initializer if tensor.name in used]


@settings(deadline=None, max_examples=60)
@given(model=graphs(), version=st.integers(1, 30).filter(lambda version: version != 17))
def test_every_change_of_the_opset_changes_it(model: ModelProto, version: int) -> None:
    before = fingerprint(model)
    model.opset_import[0].version = version
    assert fingerprint(model) != before


@settings(deadline=None, max_examples=60)
@given(model=graphs(), data=st.data())
def test_every_change_of_the_wiring_changes_it(model: ModelProto, data: st.DataObject) -> None:
    before = fingerprint(model)
    position = data.draw(st.integers(0, len(model.graph.node) - 1))
    node = model.graph.node[position]
    earlier = ["x", *(name for other in model.graph.node[:position] for name in other.output)]
    index = data.draw(st.integers(0, len(node.input) - 1))
    others = [name for name in earlier if name != node.input[index]]
    if not others:
        node.input.append("x")
    else:
        node.input[index] = data.draw(st.sampled_from(others))
    assert fingerprint(model) != before
