"""The table of passes is complete, and light to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pass_zoo
from winml.modelkit.building.optimize.table import BY_NAME, PASSES, TARGET_PASSES, TRANSFORMERS, available, find
from winml.modelkit.core.errors import RequestError, UnavailableError

DETECTOR = (
    "gelu_fusion", "gelu_singlegelu", "fast_gelu_fusion", "quick_gelu_fusion", "bias_gelu_fusion",
    "layer_norm_fusion", "simplified_layer_norm_fusion", "fuse_rmsnorm", "skip_layer_norm_fusion",
    "attention_fusion", "bias_softmax_fusion", "matmul_add_fusion", "matmuladd_reshapegemm",
    "matmul_activation_fusion", "matmul_transpose_fusion", "matmul_scale_fusion", "conv_bn_fusion",
    "conv_add_fusion", "conv_mul_fusion", "conv_activation_fusion", "conv_add_activation_fusion", "pad_fusion",
    "gemm_activation_fusion", "gemm_sum_fusion", "gemm_transpose_fusion", "slice_elimination", "expand_elimination",
    "unsqueeze_elimination", "concat_slice_elimination", "transpose_optimizer", "highdimRTR_lowdimRTR",
)  # fmt: skip
SEARCHED = (
    "conv_bn_fusion", "conv_add_fusion", "conv_activation_fusion", "gelu_fusion", "layer_norm_fusion",
    "skip_layer_norm_fusion", "matmul_add_fusion", "matmul_transpose_fusion", "attention_fusion",
    "bias_softmax_fusion", "transpose_optimizer", "nchwc_transformer", "highdimRTR_lowdimRTR",
)  # fmt: skip


def test_has_every_flag_of_the_seeds() -> None:
    assert (len(DETECTOR), len(SEARCHED)) == (31, 13)
    assert {*DETECTOR, *SEARCHED, "nhwc_transformer"} <= set(BY_NAME)


def test_names_are_unique_and_every_row_says_what_becomes_what() -> None:
    assert len(BY_NAME) == len(PASSES)
    for row in PASSES:
        assert row.what, row.name
        assert "\n" not in row.what


def test_every_transformer_can_be_disabled() -> None:
    assert {part for row in PASSES if row.kind == "ort" for part in row.parts} <= set(TRANSFORMERS)


def test_a_pass_stands_after_those_it_needs() -> None:
    order = [row.name for row in PASSES]
    for row in PASSES:
        for needed in row.needs:
            assert order.index(needed) < order.index(row.name), row.name


def test_every_pass_that_can_act_has_a_graph_it_acts_on() -> None:
    assert {row.name for row in available()} == set(pass_zoo.FIRES)


def test_passes_of_targets_exist() -> None:
    assert {name for names in TARGET_PASSES.values() for name in names} <= set(BY_NAME)


def test_basic_makes_no_operator_outside_of_onnx() -> None:
    for row in PASSES:
        if row.level == "basic":
            assert not [op for op in row.produces if ":" in op], row.name


def test_kebab_case_names_the_same_pass() -> None:
    assert find("conv-bn-fusion") is find("conv_bn_fusion")


@pytest.mark.parametrize("name", ["conv_bn", "ConvBNFusion", "conv bn fusion", ""])
def test_anything_else_is_an_error(name: str) -> None:
    with pytest.raises(RequestError, match=f"unknown pass `{name}`"):
        find(name)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(RequestError) as caught:
        find("conv_bm_fusion")
    assert "did you mean `conv_bn_fusion`?" in str(caught.value.hint)


@pytest.mark.parametrize("row", [row for row in PASSES if row.unavailable], ids=lambda row: row.name)
def test_a_pass_that_cannot_act_is_refused_with_its_reason(row: object) -> None:
    with pytest.raises(UnavailableError, match="is unavailable: ONNX Runtime does this only"):
        find(row.name)  # type: ignore[attr-defined]


def test_resolving_imports_nothing_heavy() -> None:
    code = "import sys; import winml.modelkit.building.optimize.resolve; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
    assert not {"numpy", "onnx", "onnxruntime", "onnx_ir", "onnxscript"} & set(loaded.split())
