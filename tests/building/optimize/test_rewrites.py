"""Own rewrites: where they act, and where they must not."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

import pass_zoo
from pass_zoo import GELU_WEIGHTS, TANH_GELU_WEIGHTS, graph, i64, scalar
from winml.modelkit.building.optimize.apply import Runner
from winml.modelkit.building.optimize.rewrites.low_rank_transpose import lower_rank
from winml.modelkit.building.optimize.table import BY_NAME
from winml.modelkit.building.optimize.workspace import Workspace


def _ops(name: str, model: onnx.ModelProto, workspace: Workspace, runner: Runner) -> dict[str, int] | None:
    made = runner.apply(BY_NAME[name], workspace.open(model))
    return None if made is None else made.ops


@pytest.mark.parametrize(
    ("sizes", "order", "expected"),
    [
        ((1, 1, 6, 2, 2, 4), (0, 1, 3, 2, 4, 5), ([6, 2, 8], [1, 0, 2])),
        ((2, 3, 4), (0, 1, 2), ([24], [0])),
        ((2, 3, 4), (2, 0, 1), ([6, 4], [1, 0])),
        ((2, 1, 3), (1, 2, 0), ([2, 3], [1, 0])),
        ((1, 1), (1, 0), ([1], [0])),
        ((2, 3, 4, 5), (3, 2, 1, 0), ([2, 3, 4, 5], [3, 2, 1, 0])),
    ],
)
def test_a_transpose_needs_only_so_many_dimensions(
    sizes: tuple[int, ...], order: tuple[int, ...], expected: tuple[list[int], list[int]]
) -> None:
    assert lower_rank(sizes, order) == expected
    data = np.arange(np.prod(sizes)).reshape(sizes)
    np.testing.assert_array_equal(
        data.reshape(expected[0]).transpose(expected[1]).ravel(), data.transpose(order).ravel()
    )


def test_a_gemm_that_is_unfolded_is_left_alone(workspace: Workspace, runner: Runner) -> None:
    model = graph(
        """(float[12,4] x) => (float[1,6,16] y) { m = Gemm(x, w)
          a = Reshape(m, high)  t = Transpose<perm = [0,1,3,2,4,5]>(a)  y = Reshape(t, low) }""",
        w=(4, 8), high=i64(1, 1, 6, 2, 2, 4), low=i64(1, 6, 16),
    )  # fmt: skip
    assert _ops("highdimRTR_lowdimRTR", model, workspace, runner) is None


def test_a_transpose_that_somebody_else_reads_is_left_alone(workspace: Workspace, runner: Runner) -> None:
    model = graph(
        """(float[12,8] x) => (float[6,16] y, float[1,1,2,6,2,4] z) {
          a = Reshape(x, high)  t = Transpose<perm = [0,1,3,2,4,5]>(a)  y = Reshape(t, low)  z = Relu(t) }""",
        high=i64(1, 1, 6, 2, 2, 4), low=i64(6, 16),
    )  # fmt: skip
    assert _ops("highdimRTR_lowdimRTR", model, workspace, runner) is None


@pytest.mark.parametrize(
    "text",
    [
        "i = Mul(x, inverse)  e = Erf(i)  a = Add(one, e)  h = Mul(half, x)  y = Mul(a, h)",
        "i = Div(x, sqrt2)  e = Erf(i)  a = Add(e, one)  m = Mul(x, a)  y = Div(m, two)",
        "i = Div(x, sqrt2)  e = Erf(i)  a = Add(e, one)  h = Mul(a, half)  y = Mul(h, x)",
    ],
)
def test_gelu_is_found_however_it_is_written(text: str, workspace: Workspace, runner: Runner) -> None:
    model = graph(
        f"(float[2,4] x) => (float[2,4] y) {{ {text} }}",
        opset=20, **GELU_WEIGHTS, inverse=scalar(np.sqrt(0.5)), two=scalar(2),
    )  # fmt: skip
    assert _ops("gelu_singlegelu", model, workspace, runner) == {"Gelu": 1}


def test_gelu_by_tanh_with_x_outside_of_the_bracket(workspace: Workspace, runner: Runner) -> None:
    text = """b = Mul(x, cubic)  c = Mul(x, b)  d = Add(one, c)  r = Mul(x, root)  e = Mul(r, d)  t = Tanh(e)
      o = Add(t, one)  h = Mul(x, half)  y = Mul(h, o)"""
    model = graph(f"(float[2,4] x) => (float[2,4] y) {{ {text} }}", opset=20, **TANH_GELU_WEIGHTS)
    assert _ops("gelu_singlegelu", model, workspace, runner) == {"Gelu": 1}


@pytest.mark.parametrize("half", [0.4, 1.0])
def test_what_is_no_gelu_is_left_alone(half: float, workspace: Workspace, runner: Runner) -> None:
    weights = {**GELU_WEIGHTS, "half": scalar(half)}
    model = graph(f"(float[2,4] x) => (float[2,4] y) {{ {pass_zoo.gelu('x', 'y')} }}", opset=20, **weights)
    assert _ops("gelu_singlegelu", model, workspace, runner) is None


@pytest.mark.parametrize(("start", "end"), [(1, 7), (0, 4), (7, 3)])
def test_a_slice_that_cuts_an_input_stays(start: int, end: int, workspace: Workspace, runner: Runner) -> None:
    model = graph(
        "(float[2,3] a, float[2,4] b) => (float[2,n] y) { t = Concat<axis = 1>(a, b)  y = Slice(t, s, e, axis) }",
        s=i64(start), e=i64(end), axis=i64(1),
    )  # fmt: skip
    assert _ops("concat_slice_elimination", model, workspace, runner) is None


def test_negative_positions_of_a_mask_count_from_the_end(workspace: Workspace, runner: Runner) -> None:
    indices = np.array([[[-1, -4], [0, 3]]], np.int64)
    model = graph("(float[2,4,5] x) => (float[1,2,5] y) { y = GatherND(x, indices) }", indices=indices)
    made = runner.apply(BY_NAME["gather_nd_to_gather"], workspace.open(model))
    assert made is not None
    tensors = {t.name: onnx.numpy_helper.to_array(t) for t in made.model.graph.initializer}
    assert tensors["y_indices"].tolist() == [[4, 3]]
    assert tensors["y_rows"].tolist() == [8, 5]


@pytest.mark.parametrize("attribute", [("batch_dims", 1), None])
def test_a_gather_by_batches_or_by_computed_indices_stays(
    attribute: tuple[str, int] | None, workspace: Workspace, runner: Runner
) -> None:
    if attribute is None:
        model = graph("(float[2,4] x, int64[3,2] i) => (float[3] y) { y = GatherND(x, i) }")
    else:
        model = graph("(float[2,4] x) => (float[2] y) { y = GatherND(x, i) }", i=np.array([[1], [2]], np.int64))
        model.graph.node[0].attribute.append(helper.make_attribute(*attribute))
    assert _ops("gather_nd_to_gather", model, workspace, runner) is None


@pytest.mark.parametrize(
    ("attributes", "output"),
    [
        ("kernel_shape = [2,2], strides = [1,1]", "[1,4,1,2]"),
        ("kernel_shape = [2,3], pads = [0,0,1,0]", "[1,4,2,1]"),
        ("kernel_shape = [3,3], ceil_mode = 1, pads = [1,0,0,0]", "[1,4,1,1]"),
        ("kernel_shape = [1,2], dilations = [1,2]", "[1,4,2,1]"),
    ],
)
def test_a_pool_with_several_windows_or_padding_stays(
    attributes: str, output: str, workspace: Workspace, runner: Runner
) -> None:
    model = graph(f"(float[1,4,2,3] x) => (float{output} y) {{ y = AveragePool<{attributes}>(x) }}")
    assert _ops("average_pool_to_global", model, workspace, runner) is None


def test_a_window_of_just_the_input_is_a_global_pool(workspace: Workspace, runner: Runner) -> None:
    model = graph("(float[1,4,2,3] x) => (float[1,4,1,1] y) { y = AveragePool<kernel_shape = [2,3]>(x) }")
    assert _ops("average_pool_to_global", model, workspace, runner) == {"GlobalAveragePool": 1}


def test_an_activation_nobody_knows_stays_fused(workspace: Workspace, runner: Runner) -> None:
    model = graph(
        """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
          y = com.microsoft.FusedConv<activation = "Softsign", pads = [1,1,1,1]>(x, w, b) }""",
        **pass_zoo.CONV_WEIGHTS, microsoft=True,
    )  # fmt: skip
    assert _ops("unfuse_conv", model, workspace, runner) is None


def test_a_fused_conv_inside_a_branch_is_unfused(workspace: Workspace, runner: Runner) -> None:
    model = graph(
        """(bool c, float[1,3,8,8] x) => (float[1,4,8,8] y) {
          y = If(c) <then_branch = t () => (float[1,4,8,8] a) {
                a = com.microsoft.FusedConv<activation = "Relu", pads = [1,1,1,1]>(x, w, b) },
              else_branch = e () => (float[1,4,8,8] d) { d = Conv<pads = [1,1,1,1]>(x, w, b) }> }""",
        **pass_zoo.CONV_WEIGHTS, microsoft=True,
    )  # fmt: skip
    assert _ops("unfuse_conv", model, workspace, runner) == {"Conv": 2, "If": 1, "Relu": 1}


@pytest.mark.parametrize(("opset", "op"), [(17, "com.microsoft:Gelu"), (20, "Gelu")])
def test_bias_gelu_becomes_the_gelu_that_the_opset_has(
    opset: int, op: str, workspace: Workspace, runner: Runner
) -> None:
    model = graph(
        "(float[2,4] x) => (float[2,4] y) { y = com.microsoft.BiasGelu(x, b) }", b=(4,), microsoft=True, opset=opset
    )
    assert _ops("unfuse_bias_gelu", model, workspace, runner) == {"Add": 1, op: 1}


def test_two_open_dimensions_keep_their_matmul(workspace: Workspace, runner: Runner) -> None:
    model = graph(
        "(float[n,m,4] x) => (float[n,m,5] y) { a = MatMul(x, w)  y = Add(b, a) }", w=(4, 5), b=(5,)
    )  # fmt: skip
    assert _ops("matmuladd_reshapegemm", model, workspace, runner) is None
