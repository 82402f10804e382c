"""From options to the passes that run."""

from __future__ import annotations

import pytest

from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.building.optimize.table import BY_NAME, PASSES
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target

NPU = Target("qnn", "npu")


def test_without_options_it_is_the_basic_level() -> None:
    assert resolve().passes == tuple(row.name for row in PASSES if row.level == "basic")


def test_levels_grow() -> None:
    none, basic, extended, everything = (
        set(resolve(level=level).passes) for level in ("none", "basic", "extended", "all")
    )
    assert none == set()
    assert basic < extended < everything
    assert "conv_activation_fusion" in extended - basic
    assert "nchwc_transformer" in everything - extended


def test_enabled_passes_run_in_the_order_of_the_table() -> None:
    asked = resolve(level="none", enable=("skip-layer-norm-fusion", "conv_bn_fusion", "layer_norm_fusion"))
    assert asked.passes == ("conv_bn_fusion", "layer_norm_fusion", "skip_layer_norm_fusion")


def test_a_disabled_pass_does_not_run() -> None:
    assert "conv_bn_fusion" not in resolve(disable=("conv-bn-fusion",)).passes


def test_a_pass_cannot_be_both() -> None:
    with pytest.raises(RequestError, match="`conv_bn_fusion` is both enabled and disabled"):
        resolve(enable=("conv_bn_fusion",), disable=("conv-bn-fusion",))


def test_an_unknown_level_names_the_known_ones() -> None:
    with pytest.raises(RequestError, match="unknown level `basics`") as caught:
        resolve(level="basics")
    assert "did you mean `basic`?" in str(caught.value.hint)


def test_an_opset_below_what_the_runtime_reads_is_refused() -> None:
    with pytest.raises(RequestError, match="opset must be at least 7 but got 6"):
        resolve(opset=6)


def test_an_npu_gets_its_rewrites_at_every_level_but_none() -> None:
    assert {"unfuse_conv", "gather_nd_to_gather"} <= set(resolve(target=NPU).passes)
    assert resolve(level="none", target=NPU).passes == ()


@pytest.mark.parametrize("level", ["basic", "extended", "all"])
def test_no_level_makes_what_an_npu_does_not_take(level: str) -> None:
    names = resolve(level=level, target=NPU).passes
    made = {op for name in names for op in BY_NAME[name].produces}
    assert not made & {"com.microsoft:FusedConv", "com.microsoft:SkipLayerNormalization", "com.microsoft.nchwc:Conv"}
    assert "layer_norm_fusion" in names


def test_asking_for_what_an_npu_does_not_take_is_an_error_unless_one_insists() -> None:
    with pytest.raises(RequestError, match="makes `com.microsoft:FusedConv`, which qnn/npu is not known to support"):
        resolve(enable=("conv_activation_fusion",), target=NPU)
    insisted = resolve(enable=("conv_activation_fusion",), target=NPU, allow_unsupported=True)
    assert "conv_activation_fusion" in insisted.passes


def test_of_an_ep_nobody_asked_only_operators_of_onnx_are_made() -> None:
    names = resolve(level="extended", target=Target("vitisai", "npu")).passes
    assert "matmul_add_fusion" in names
    assert "gelu_contrib_fusion" not in names


def test_the_cpu_takes_whatever_the_runtime_makes() -> None:
    assert resolve(level="all", target=Target("cpu", "cpu")).passes == resolve(level="all").passes


def test_targets_that_take_the_same_have_the_same_section() -> None:
    """So that their builds share the stage."""
    assert resolve(level="basic", target=Target("cpu", "cpu")) == resolve(level="basic", target=Target("dml", "gpu"))
