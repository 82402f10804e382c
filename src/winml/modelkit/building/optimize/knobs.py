"""What a search may choose about optimizing."""

from __future__ import annotations

from winml.modelkit.building.optimize import table
from winml.modelkit.building.optimize.resolve import resolve
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.target import Target

OPSETS = (17, 18, 19, 20, 21, 22, 23)
"""What the converter reaches from most models; one that it does not reach is a failed trial with the reason."""
ALONE = (
    "slice_elimination", "expand_elimination", "unsqueeze_elimination", "gemm_sum_fusion", "gemm_transpose_fusion",
    "conv_bn_fusion", "conv_mul_fusion", "conv_add_fusion", "pad_fusion", "layer_norm_fusion", "gelu_fusion",
    "matmul_add_fusion", "transpose_optimizer",
)  # fmt: skip
"""Passes of level `basic` that may be on without the others of that level; the rest of it only tidies up.

`bias_softmax_fusion` and `matmul_activation_fusion` have no knob: ONNX Runtime does them on CUDA and DirectML alone.
"""
GROUPS = ("basic", "extended", "all")
"""Levels as groups. What a group does not fuse before the model is quantized the runtime fuses afterwards."""


def group(level: str, target: Target) -> tuple[str, ...]:
    """The passes of a level that apply to a target."""
    return resolve(level=level, target=target).passes


def knobs(target: Target) -> tuple[Knob, ...]:
    """Passes in groups and one by one, and the opset."""
    groups = tuple(Level(name, {"optimize.passes": list(group(name, target))}) for name in GROUPS)
    single = tuple(
        Knob(f"optimize.{row.name}", (Level("on", adds={"optimize.passes": (row.name,)}),))
        for row in table.available()
        if row.level != "basic"
    )
    alone = tuple(
        Knob(f"optimize.{name}", (Level("on", adds={"optimize.passes": (name,)}),), prior=-0.5) for name in ALONE
    )
    opsets = tuple(Level(str(opset), {"optimize.opset": opset}) for opset in OPSETS)
    return (Knob("optimize.passes", groups, prior=2.0), Knob("optimize.opset", opsets, prior=-1.0), *single, *alone)


def sort_passes(passes: list[str]) -> list[str]:
    """Passes in the order they run."""
    return [row.name for row in table.PASSES if row.name in passes]


def single_pass(knob: str) -> str | None:
    """The pass that a knob switches on; None for knobs of another kind."""
    name = knob.removeprefix("optimize.")
    return name if name in table.BY_NAME else None
