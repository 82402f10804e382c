"""What optimizers make of nodes, as data: which operators take in which others, and how to recognise them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from winml.modelkit.core.dataclass import dataclass

EDGES = ("QuantizeLinear", "DequantizeLinear")
LAYOUT = ("Transpose", *EDGES)
"""What the runtime names the nodes it inserts where layouts or precisions meet."""

_ACTIVATIONS = {"Relu": 1, "LeakyRelu": 1, "Sigmoid": 1, "Tanh": 1, "Clip": 1, "HardSigmoid": 1}
_NORM = {"ReduceMean": 2, "Sub": 2, "Pow": 1, "Add": 2, "Sqrt": 1, "Div": 1, "Mul": 2, "Cast": 2}
_GELU = {"Div": 1, "Erf": 1, "Add": 1, "Mul": 5, "Tanh": 1, "Pow": 1, "Sigmoid": 1}
_ATTENTION = {
    "MatMul": 5, "Add": 6, "Reshape": 6, "Transpose": 6, "Mul": 2, "Div": 1, "Softmax": 1, "Slice": 6, "Split": 1,
    "Concat": 4, "Where": 1, "Unsqueeze": 3, "Squeeze": 3, "Shape": 6, "Gather": 6, "Gemm": 4,
}  # fmt: skip

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Swallows:
    """How many nodes of which type an operator may take in: among those before it, and among those after it."""

    before: Counts = field(default_factory=dict)
    after: Counts = field(default_factory=dict)


ANY = Swallows(
    before={"QuantizeLinear": 2, "DequantizeLinear": 8, "Identity": 2, "Cast": 1},
    after={"QuantizeLinear": 4, "DequantizeLinear": 4, "Identity": 2, "Dropout": 2, "Cast": 1},
)
_CONV = Swallows({"Pad": 1, "Conv": 1}, {"BatchNormalization": 1, "Add": 1, "Mul": 1, **_ACTIVATIONS})
_GEMM = Swallows({"Transpose": 2, "MatMul": 1}, {"Add": 1, **_ACTIVATIONS})
_WHOLE_GELU = Swallows(_GELU, _GELU)
_WHOLE_NORM = Swallows(_NORM, _NORM)
_WHOLE_ATTENTION = Swallows(_ATTENTION, _ATTENTION)
_INTEGER = Swallows({"DynamicQuantizeLinear": 1}, {"Cast": 1, "Mul": 2, "Add": 1})
SWALLOWS: dict[str, Swallows] = {
    "Conv": _CONV,
    "FusedConv": _CONV,
    "NhwcFusedConv": _CONV,
    "QLinearConv": _CONV,
    "Gemm": _GEMM,
    "FusedGemm": _GEMM,
    "QGemm": _GEMM,
    "MatMul": Swallows(after={"BatchNormalization": 1}),
    "FusedMatMul": Swallows({"Transpose": 2}, {"Mul": 1, "Div": 1}),
    "Gelu": _WHOLE_GELU,
    "BiasGelu": Swallows({**_GELU, "Add": 1}, _GELU),
    "FastGelu": _WHOLE_GELU,
    "QuickGelu": _WHOLE_GELU,
    "BiasSoftmax": Swallows(before={"Add": 1}),
    "LayerNormalization": _WHOLE_NORM,
    "SimplifiedLayerNormalization": _WHOLE_NORM,
    "SkipLayerNormalization": _WHOLE_NORM,
    "SkipSimplifiedLayerNormalization": _WHOLE_NORM,
    "EmbedLayerNormalization": Swallows(before={"LayerNormalization": 1, "Gather": 3, **_NORM}),
    "Attention": _WHOLE_ATTENTION,
    "MultiHeadAttention": _WHOLE_ATTENTION,
    "DynamicQuantizeMatMul": _INTEGER,
    "MatMulIntegerToFloat": _INTEGER,
}
"""What operators of a type take in next to the node they are named after."""

CORES: dict[str, tuple[str, ...]] = {
    "Gelu": ("Erf",),
    "BiasGelu": ("Erf",),
    "FastGelu": ("Tanh", "Gelu"),
    "QuickGelu": ("Sigmoid",),
    "BiasSoftmax": ("Softmax",),
    "LayerNormalization": ("ReduceMean",),
    "SimplifiedLayerNormalization": ("Pow",),
    "SkipLayerNormalization": ("LayerNormalization", "ReduceMean"),
    "SkipSimplifiedLayerNormalization": ("SimplifiedLayerNormalization",),
    "EmbedLayerNormalization": ("Gather",),
    "Attention": ("Softmax",),
    "MultiHeadAttention": ("Softmax",),
    "FusedConv": ("Conv",),
    "NhwcFusedConv": ("Conv",),
    "Gemm": ("MatMul",),
    "FusedGemm": ("Gemm", "MatMul"),
    "QGemm": ("Gemm", "MatMul"),
    "FusedMatMul": ("MatMul",),
    "DynamicQuantizeMatMul": ("MatMulInteger",),
    "MatMulIntegerToFloat": ("MatMulInteger",),
}
"""The node types that show where in the model a fused operator without a name of its own belongs."""

PARTS = ("Erf", "Tanh", "Sigmoid", "ReduceMean", "Pow", "Softmax")
"""Types that name a part of a fused operator and not its work."""

HEAVY = ("Conv", "ConvTranspose", "ConvInteger", "MatMul", "Gemm", "MatMulInteger", "LSTM", "GRU", "RNN", "Einsum")
"""Types that do the work of an operator they are fused into, whatever it is named after."""
