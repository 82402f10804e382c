"""Multiply-accumulate operations, against figures that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from winml.modelkit.core.errors import RequestError
from winml.modelkit.graph import files
from winml.modelkit.graph.macs import MACs, estimate_macs

LIGHT_MODELS = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def counted(macs: int) -> MACs:
    return MACs(macs, unknown_nodes=0, assumed={})


@pytest.mark.parametrize(("name", "giga_macs"), [("resnet50", 4.09), ("vgg19", 19.63), ("densenet121", 2.83)])
def test_known_networks_have_the_published_number(name: str, giga_macs: float) -> None:
    estimate = estimate_macs(files.load(LIGHT_MODELS / f"light_{name}.onnx"))
    assert estimate.macs == pytest.approx(giga_macs * 1e9, rel=0.005)
    assert estimate.unknown_nodes == 0


@pytest.mark.parametrize(
    ("text", "macs"),
    [
        ("g (float[2,3,8,8] x, float[4,3,3,3] w) => (float[2,4,6,6] y) { y = Conv(x, w) }", 2 * 4 * 36 * 27),
        ("g (float[1,8,4,4] x, float[8,1,3,3] w) => (float[1,8,2,2] y) { y = Conv<group = 8>(x, w) }", 8 * 4 * 9),
        ("g (float[1,3,4] x, float[3,5,2] w) => (float[1,5,5] y) { y = ConvTranspose(x, w) }", 3 * 4 * 5 * 2),
        ("g (uint8[1,3,8] x, uint8[4,3,3] w) => (int32[1,4,6] y) { y = ConvInteger(x, w) }", 4 * 6 * 9),
        ("g (float[7,2,3] a, float[3,5] b) => (float[7,2,5] y) { y = MatMul(a, b) }", 7 * 2 * 3 * 5),
        ("g (float[7,1,2,3] a, float[4,3,5] b) => (float[7,4,2,5] y) { y = MatMul(a, b) }", 7 * 4 * 2 * 3 * 5),
        ("g (float[3] a, float[3] b) => (float y) { y = MatMul(a, b) }", 3),
        ("g (uint8[2,3] a, uint8[3,5] b) => (int32[2,5] y) { y = MatMulInteger(a, b) }", 2 * 3 * 5),
        ("g (float[2,3] a, float[3,5] b) => (float[2,5] y) { y = Gemm(a, b) }", 2 * 3 * 5),
        ("g (float[3,2] a, float[5,3] b) => (float[2,5] y) { y = Gemm<transA = 1, transB = 1>(a, b) }", 2 * 3 * 5),
        ("g (float[0,3] a, float[3,5] b) => (float[0,5] y) { y = MatMul(a, b) }", 0),
    ],
)
def test_an_operator_counts_by_its_shapes(parse: Any, text: str, macs: int) -> None:
    assert estimate_macs(parse(text)) == counted(macs)


def test_quantized_operators_count_like_the_floating_ones(parse: Any) -> None:
    model = parse("""g (uint8[1,3,8,8] x, uint8[4,3,3,3] w, uint8[36,5] b, float s, uint8 z) => (uint8[4,5] y) {
        c = QLinearConv(x, s, z, w, s, z, s, z)
        f = Reshape(c, shape)
        y = QLinearMatMul(f, s, z, b, s, z, s, z)
    }""", shape=np.array([4, 36]))  # fmt: skip
    assert estimate_macs(model) == counted(4 * 36 * 27 + 4 * 36 * 5)


def test_weights_behind_dequantize_linear_count(parse: Any) -> None:
    model = parse(
        "g (float[1,3,8,8] x, float s) => (float[1,4,6,6] y) { d = DequantizeLinear(w, s)  y = Conv(x, d) }",
        w=np.ones((4, 3, 3, 3), np.int8),
    )
    assert estimate_macs(model) == counted(4 * 36 * 27)


def test_operators_of_onnx_runtime_count_like_those_they_stand_for(parse: Any) -> None:
    model = parse(
        """g (float[1,3,8,8] x, uint8[7] s) => (float[1,3] y) {
            c = com.microsoft.FusedConv<activation = "Relu", pads = [1, 1, 1, 1]>(x, w)
            d = com.microsoft.FusedConv<activation = "Relu", pads = [1, 1, 1, 1]>(c, v)
            e = com.microsoft.Gelu(d)
            f = Flatten(e)
            h = com.microsoft.QGemm<transB = 1>(f, s, s, q, s, s)
            n = com.microsoft.MatMulNBits<K = 10, N = 32, bits = 4, block_size = 16>(h, packed, scales)
            y = com.microsoft.FusedMatMul<alpha = 0.5>(n, m)
        }""",
        w=np.ones((4, 3, 3, 3), np.float32),
        v=np.ones((4, 4, 3, 3), np.float32),
        q=np.ones((10, 256), np.uint8),
        packed=np.ones((32, 1, 8), np.uint8),
        scales=np.ones(32, np.float32),
        m=np.ones((32, 3), np.float32),
    )
    expected = 64 * 4 * 27 + 64 * 4 * 36 + 2560 + 320 + 96
    assert estimate_macs(model) == counted(expected)


def test_a_model_that_onnx_runtime_optimized_has_as_many(parse: Any, tmp_path: Path) -> None:
    model = parse(
        """g (float[N,3,8,8] x) => (float[N,5] y) {
            c = Conv<pads = [1, 1, 1, 1]>(x, w)  r = Relu(c)  p = GlobalAveragePool(r)  f = Flatten(p)  y = Gemm(f, m)
        }""",
        w=np.ones((4, 3, 3, 3), np.float32),
        m=np.ones((4, 5), np.float32),
    )
    files.save(model, tmp_path / "m.onnx")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    ort.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
    optimized = files.load(tmp_path / "optimized.onnx")
    assert "FusedConv" in [node.op_type for node in optimized.graph.node]
    assert estimate_macs(optimized) == estimate_macs(model) == MACs(64 * 4 * 27 + 20, 0, {"N": 1})


# --- dynamic axes


DYNAMIC = "g (float[batch,?,3] x) => (float[batch,m,5] y) { h = MatMul(x, w)  y = Relu(h) }"


def test_a_batch_is_taken_as_one_and_no_other_axis(parse: Any) -> None:
    model = parse(DYNAMIC, w=np.ones((3, 5), np.float32))
    assert estimate_macs(model) == MACs(None, 1, {"batch": 1})


def test_dynamic_axes_take_the_given_sizes(parse: Any) -> None:
    model = parse(DYNAMIC, w=np.ones((3, 5), np.float32))
    estimate = estimate_macs(model, dims={"batch": 2, "x[1]": 7})
    assert estimate == MACs(2 * 7 * 15, 0, {"batch": 2, "x[1]": 7})


def test_minus_one_is_a_dynamic_axis(parse: Any) -> None:
    model = parse("g (float[1,3] x) => (float[1,5] y) { y = MatMul(x, w) }", w=np.ones((3, 5), np.float32))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert estimate_macs(model).assumed == {"x[0]": 1}


def test_shapes_that_the_file_declares_with_symbols_follow_the_given_sizes(parse: Any) -> None:
    model = parse(
        "g (float[batch,3] x) => (float[batch,5] y) <float[batch,3] h> { h = my.Op(x)  y = MatMul(h, w) }",
        w=np.ones((3, 5), np.float32),
    )
    model.opset_import.add(domain="my", version=1)
    assert estimate_macs(model, dims={"batch": 4}) == MACs(60, unknown_nodes=1, assumed={"batch": 4})


def test_an_axis_that_is_not_there_is_refused_with_those_that_are(parse: Any) -> None:
    model = parse(DYNAMIC, w=np.ones((3, 5), np.float32))
    with pytest.raises(RequestError, match=r"`bacth` is not a dynamic axis .* found: `batch`, `x\[1\]`"):
        estimate_macs(model, dims={"bacth": 2})
    with pytest.raises(RequestError, match="must be at least 1 but got 0"):
        estimate_macs(model, dims={"batch": 0})


# --- unknown is not zero


def test_a_model_without_products_has_zero(parse: Any) -> None:
    assert estimate_macs(parse("g (float[N] x) => (float[N] y) { y = Relu(x) }")) == MACs(0, 0, {"N": 1})


def test_unknown_shapes_are_counted_as_unknown(parse: Any) -> None:
    model = parse("g (float[] x, float[3,5] w) => (float[] y) { y = MatMul(x, w) }")
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert estimate_macs(model) == MACs(None, unknown_nodes=1, assumed={})


def test_known_nodes_count_beside_unknown_ones(parse: Any) -> None:
    model = parse("""g (float[2,3] x, float[3,5] w, float[6] v) => (float[2,5] y, float[] z) {
        y = MatMul(x, w)  i = NonZero(v)  f = Cast<to = 1>(i)  z = MatMul(f, f)
    }""")
    model.graph.output[1].type.tensor_type.ClearField("shape")
    assert estimate_macs(model) == MACs(30, unknown_nodes=1, assumed={})


def test_an_open_size_that_is_no_batch_is_not_taken_as_one(parse: Any) -> None:
    model = parse("g (float[1,3,H,W] x, float[4,3,3,3] w) => (float[1,4,a,b] y) { y = Conv(x, w) }")
    assert estimate_macs(model) == MACs(None, unknown_nodes=1, assumed={})
    assert estimate_macs(model, dims={"H": 8, "W": 8}).macs == 4 * 36 * 27


@pytest.mark.parametrize(
    "call",
    [
        'Einsum<equation = "ij,jk->ik">(x, x)',
        "com.microsoft.MultiHeadAttention<num_heads = 1>(x, x, x)",
        "com.microsoft.FusedMatMul<transB = 1>(x, x)",
        "com.microsoft.nchwc.Conv(x, x)",
        'com.microsoft.EPContext<source = "QNN">(x)',
        "com.example.Anything(x)",
    ],
)
def test_operators_that_may_multiply_in_other_ways_are_unknown(parse: Any, call: str) -> None:
    model = parse(f"g (float[2,2] x) => (float[2,2] y) {{ y = {call} }}")
    for domain in ("com.microsoft.nchwc", "com.example"):
        model.opset_import.add(domain=domain, version=1)
    estimate = estimate_macs(model)
    assert (estimate.macs, estimate.unknown_nodes) == (None, 1)


def test_a_model_that_onnx_refuses_is_counted_by_its_declared_shapes_with_the_reason(parse: Any) -> None:
    model = parse("g (float[2,3] x, float[3,5] w) => (float[2,5] y) { h = absent.Op(x)  y = MatMul(x, w) }")
    estimate = estimate_macs(model)
    assert (estimate.macs, estimate.unknown_nodes) == (30, 1)
    assert "No opset import for domain absent" in (estimate.reason or "")


# --- subgraphs and functions


def test_of_two_branches_the_larger_counts(parse: Any) -> None:
    model = parse("""g (float[2,3] x, bool c, float[3,5] w, float[3,3] v) => (float[2,5] y) {
        y = If(c) <
            then_branch = t () => (float[2,5] a) { h = MatMul(x, v)  a = MatMul(h, w) },
            else_branch = e () => (float[2,5] b) { b = MatMul(x, w) }
        >
    }""")
    assert estimate_macs(model) == counted(18 + 30)


def test_the_body_of_a_loop_runs_an_unknown_number_of_times(parse: Any) -> None:
    model = parse("""g (int64 n, bool c, float[3,3] x) => (float[3,3] y) {
        y = Loop(n, c, x) <body = b (int64 i, bool k, float[3,3] u) => (bool k, float[3,3] v) { v = MatMul(u, x) }>
    }""")
    assert estimate_macs(model) == MACs(None, unknown_nodes=1, assumed={})


def test_a_function_counts_at_every_call(parse: Any) -> None:
    model = parse("""
        <ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[2,3] x, float[3,3] w) => (float[2,3] y) { h = local.product(x, w)  y = local.product(h, w) }
        <domain: "local", opset_import: ["" : 17]> product (a, b) => (c) { c = MatMul(a, b) }
    """)
    assert estimate_macs(model) == counted(36)


def test_functions_that_call_each_other_are_unknown_with_the_reason(parse: Any) -> None:
    model = parse("""
        <ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[2,3] x) => (float[2,3] y) { y = local.f(x) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]> f (a) => (c) { b = local.f(a)  c = MatMul(b, b) }
    """)
    estimate = estimate_macs(model)
    assert (estimate.macs, estimate.unknown_nodes) == (None, 1)
    assert estimate.reason


# --- weights in other files


def reshaping(parse: Any) -> ModelProto:
    return parse(
        "g (float[2,12] x) => (float[a,b] y) { r = Reshape(x, s)  y = MatMul(r, w) }",
        s=np.array([8, 3]),
        w=np.ones((3, 5), np.float32),
    )


def test_weights_need_not_be_loaded(parse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "EXTERNAL_MIN_BYTES", 32)
    files.save(reshaping(parse), tmp_path / "m.onnx", external_data="always")
    (tmp_path / "m.onnx.data").write_bytes(bytes(60))
    assert estimate_macs(files.load(tmp_path / "m.onnx", weights=False)) == counted(8 * 15)


def test_a_shape_in_another_file_is_read_or_its_node_is_unknown(parse: Any) -> None:
    model = reshaping(parse)
    shape: TensorProto = model.graph.initializer[0]
    data = shape.raw_data
    shape.ClearField("raw_data")
    shape.data_location = TensorProto.EXTERNAL
    assert estimate_macs(model) == MACs(None, unknown_nodes=1, assumed={})
    assert estimate_macs(model, read=lambda tensor: data) == counted(8 * 15)


def test_the_model_of_the_caller_stays_as_it_is(parse: Any) -> None:
    model = parse(DYNAMIC, w=np.ones((3, 5), np.float32))
    before = model.SerializeToString(deterministic=True)
    estimate_macs(model, dims={"batch": 4})
    assert model.SerializeToString(deterministic=True) == before
    assert numpy_helper.to_array(model.graph.initializer[0]).all()
