"""THE table of passes of `winml optimize`: names, what each turns into what, and the library. Imports nothing heavy.

Passes run in the order of this table: a fusion that needs what another one makes comes after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.core.suggest import nearest

STAGE_VERSION = 3
"""Raised when the same section gives another model."""

LIBRARIES: tuple[str, ...] = ("onnx", "onnx-ir", "onnxruntime", "onnxscript")
"""Distributions whose versions may change the bytes of an optimized model."""

Kind = Literal["ort", "ir", "onnxscript", "own"]
Level = Literal["basic", "extended", "all"]

LEVELS: dict[str, tuple[Level, ...]] = {
    "none": (),
    "basic": ("basic",),
    "extended": ("basic", "extended"),
    "all": ("basic", "extended", "all"),
}
"""ONNX Runtime's optimization levels; `basic` makes no operator that only ONNX Runtime knows."""

DEFAULT_LEVEL = "basic"


@dataclass(frozen=True)
class Pass:
    """One row."""

    name: str
    kind: Kind
    what: str
    """The graph it looks for and what that becomes."""
    parts: tuple[str, ...] = ()
    """Names of the transformers, classes, rules or the module that do it."""
    level: Level | None = None
    """The first level that has it; None when it runs only by name."""
    produces: tuple[str, ...] = ()
    """Operators it may put into a graph that had none of them."""
    needs: tuple[str, ...] = ()
    """Passes that make what it looks for."""
    entries: tuple[tuple[str, str], ...] = ()
    """Session config entries without which ONNX Runtime does not have the transformer."""
    approximate: bool = False
    """Whether it changes results by more than rounding."""
    opset: int = 0
    """The lowest opset that has what it makes."""
    unavailable: str | None = None
    """Why it cannot act in this runtime."""


def _ort(name: str, part: str, what: str, level: Level | None = "basic", **more: object) -> Pass:
    return Pass(name, "ort", what, (part,), level, **more)  # type: ignore[arg-type]  # the fields of Pass, by name


def _script(name: str, parts: tuple[str, ...], what: str, **more: object) -> Pass:
    return Pass(name, "onnxscript", what, parts, None, **more)  # type: ignore[arg-type]  # the fields of Pass, by name


def _own(name: str, what: str, *, module: str | None = None, **more: object) -> Pass:
    return Pass(name, "own", what, (module or name,), None, **more)  # type: ignore[arg-type]  # the fields of Pass, by name


_MS = "com.microsoft:"
_NCHWC = "com.microsoft.nchwc:"
_CUDA = "ONNX Runtime does this only to nodes on a CUDA device"

PASSES: tuple[Pass, ...] = (
    # --- what was fused for another runtime comes apart first
    _own("unfuse_conv", "com.microsoft.FusedConv -> Conv (+ Add) + its activation", produces=(
        "Conv", "Add", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid",
    )),
    _own("unfuse_gemm", "com.microsoft.FusedGemm -> Gemm + its activation", produces=(
        "Gemm", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid",
    )),
    _own(
        "unfuse_skip_layer_norm", "com.microsoft.SkipLayerNormalization -> Add (+ Add) + LayerNormalization",
        produces=("Add", "LayerNormalization"), opset=17,
    ),
    _own("unfuse_bias_gelu", "com.microsoft.BiasGelu -> Add + Gelu", produces=("Add", "Gelu", "com.microsoft:Gelu")),
    # --- clean-up
    Pass("inline_functions", "ir", "call of a local function -> its nodes", ("InlinePass",), "basic"),
    Pass("lift_constants", "ir", "Constant node -> initializer", ("LiftConstantsToInitializersPass",), "basic"),
    Pass("unused_node_elimination", "ir", "node whose outputs are not read -> nothing", ("RemoveUnusedNodesPass",),
         "basic"),
    Pass("initializer_input_removal", "ir", "input that has a default in the file -> constant",
         ("RemoveInitializersFromInputsPass",)),
    _ort("identity_elimination", "EliminateIdentity", "Identity -> nothing"),
    _ort("dropout_elimination", "EliminateDropout", "Dropout at inference -> nothing"),
    _ort("slice_elimination", "EliminateSlice", "Slice that keeps everything -> nothing"),
    _ort("expand_elimination", "ExpandElimination", "Expand to the shape its input has -> nothing"),
    _ort("unsqueeze_elimination", "UnsqueezeElimination", "Unsqueeze of an initializer -> initializer (opset < 13)"),
    _ort("cast_elimination", "CastElimination", "Cast to the type its input has -> nothing"),
    _ort(
        "cast_chain_elimination", "CastChainElimination", "Cast + Cast -> Cast", None,
        entries=(("optimization.enable_cast_chain_elimination", "1"),), approximate=True,
    ),
    _ort("noop_elimination", "NoopElimination", "x + 0, x - 0, x * 1, x / 1 -> x"),
    _ort("pre_shape_node_elimination", "PreShapeNodeElimination", "Cast + Shape -> Shape"),
    _ort("constant_folding", "ConstantFolding", "nodes with constant inputs -> initializer"),
    _ort("common_subexpression_elimination", "CommonSubexpressionElimination", "equal nodes on equal inputs -> one"),
    _own("concat_slice_elimination", "Concat + Slice that takes whole inputs of it -> those inputs",
         produces=("Concat", "Identity")),
    # --- fusions that stay within ONNX
    _ort("div_mul_fusion", "DivMulFusion", "(1 / x) * y -> y / x", produces=("Div",)),
    _ort("relu_clip_fusion", "FuseReluClip", "Relu + Clip -> Clip"),
    _ort("not_where_fusion", "NotWhereFusion", "Not + Where -> Where with its branches swapped"),
    _ort("gemm_sum_fusion", "GemmSumFusion", "Gemm + Sum -> Gemm with a bias"),
    _ort("gemm_transpose_fusion", "GemmTransposeFusion", "Transpose + Gemm, Gemm + Transpose -> Gemm"),
    _ort("conv_bn_fusion", "ConvBNFusion", "Conv + BatchNormalization -> Conv"),
    _ort("conv_mul_fusion", "ConvMulFusion", "Conv + Mul by a constant per channel -> Conv"),
    _ort("conv_add_fusion", "ConvAddFusion", "Conv + Add of a constant per channel -> Conv"),
    _ort("pad_fusion", "Pad_Fusion", "Pad with zeros + Conv or pooling -> Conv or pooling with pads"),
    _ort("matmul_bn_fusion", "MatMul_BatchNormalization_Fusion", "MatMul + BatchNormalization -> Gemm",
         produces=("Gemm",)),
    _ort("layer_norm_fusion", "LayerNormFusionL1", "ReduceMean + Sub + Pow + ... -> LayerNormalization (opset 17)",
         produces=("LayerNormalization",), opset=17),
    _ort("gelu_fusion", "GeluFusionL1", "x * (Erf(x / sqrt 2) + 1) / 2 -> Gelu (opset 20)", produces=("Gelu",),
         opset=20),
    _own("gelu_singlegelu", "GELU by Erf or Tanh, however it is written -> one Gelu (opset 20)", produces=("Gelu",),
         opset=20),
    _script(
        "fuse_rmsnorm", ("rms_normalization_rules",),
        "Pow + ReduceMean + Sqrt + Reciprocal + Mul + Mul -> RMSNormalization (opset 23)",
        produces=("RMSNormalization",), opset=23,
    ),
    _ort("slice_concat_to_space_to_depth_fusion", "SliceConcatToSpaceToDepthFusion",
         "strided Slices + Concat -> SpaceToDepth + Gather", produces=("SpaceToDepth", "Gather")),
    _ort("matmul_add_fusion", "MatMulAddFusion", "MatMul + Add of a constant -> Gemm, with Reshapes above rank 2",
         produces=("Gemm", "Reshape")),
    _own("matmuladd_reshapegemm", "MatMul + Add of constants on rank 3 and more -> Reshape + Gemm + Reshape",
         produces=("Gemm", "Reshape")),
    _ort("reshape_fusion", "ReshapeFusion", "Shape + Gather + Concat + Reshape -> Reshape by a constant",
         produces=("Reshape",)),
    _ort("transpose_optimizer", "TransposeOptimizer", "Transposes pushed through the graph until they cancel",
         produces=("Transpose", "Squeeze", "Unsqueeze", "Reshape", "Gather")),
    _own("highdimRTR_lowdimRTR",
         "Reshape + Transpose + Reshape above rank 4 -> the same with fewer dimensions (not after Gemm)",
         module="low_rank_transpose", produces=("Reshape", "Transpose")),
    _own("gather_nd_to_gather", "GatherND by constant indices, as in attention masks -> Reshape + Gather",
         produces=("Reshape", "Gather")),
    _own("average_pool_to_global", "AveragePool whose window holds the whole input -> GlobalAveragePool",
         produces=("GlobalAveragePool",)),
    # --- rules of onnxscript
    _script("clip_fusion", ("successive_clip_rule", "successive_clip_relu_rule", "successive_relu_clip_rule",
                            "successive_relu_rule"), "Clips and Relus in a row -> one", produces=("Clip",)),
    _script("min_max_to_clip", ("min_min_rule", "max_max_rule", "min_max_rule", "max_min_rule"),
            "Min and Max by constants in a row -> Clip, Min or Max", produces=("Clip", "Min", "Max")),
    _script("hardswish_fusion", ("fuse_hardswish_rules",), "x * HardSigmoid(x), spelt out -> HardSwish",
            produces=("HardSwish", "HardSigmoid"), opset=14),
    _script("reshape_chain_fusion", ("reshape_reshape_rule",), "Reshape + Reshape -> Reshape"),
    _script("transpose_chain_fusion", ("no_op_transpose_rule", "transpose_transpose_rule"),
            "Transpose + Transpose -> Transpose or nothing"),
    _script("unsqueeze_chain_fusion", ("unsqueeze_unsqueeze_rule",), "Unsqueeze + Unsqueeze -> Unsqueeze"),
    _script("flatten_to_reshape", ("flatten_to_reshape_rule",), "Flatten -> Reshape", produces=("Reshape",)),
    _script("expand_before_binary_elimination", ("expand_before_binary_op_rules",),
            "Expand before an operator that broadcasts anyway -> nothing"),
    _script("scatter_nd_elimination", ("no_op_static_scatter_nd_rule", "no_op_dynamic_scatter_nd_rule"),
            "ScatterND that replaces everything -> its updates", produces=("Identity",)),
    _script("zero_bias_elimination", (
        "remove_optional_bias_from_conv_rule", "remove_optional_bias_from_conv_transpose_rule",
        "remove_optional_bias_from_gemm_rule", "remove_optional_bias_from_qlinear_conv_rule",
    ), "bias of zeros -> no bias"),
    _script("batchnorm_fusion", (
        "fuse_batchnorm_into_conv_rule", "fuse_batchnorm_into_conv_transpose_rule", "fuse_batchnorm_into_gemm_rule",
    ), "Conv, ConvTranspose or Gemm + BatchNormalization -> one node"),
    _script("conv_affine_fusion", ("conv_affine_fusion_rule", "affine_conv_fusion_rule"),
            "Conv beside Mul and Add of scalars -> Conv"),
    # --- quantized graphs
    _ort("qdq_propagation", "QDQPropagationTransformer",
         "DequantizeLinear before Transpose, Reshape, ... -> another pair after them"),
    _ort("double_qdq_pairs_remover", "DoubleQDQPairsRemover", "two QuantizeLinear / DequantizeLinear pairs -> one"),
    _ort("weight_bias_quantization", "WeightBiasQuantization", "float bias of a quantized node -> int32 bias", None,
         produces=("DequantizeLinear", "Cast", "Div", "Mul", "Round"), approximate=True),
    _ort("clip_quant_fusion", "ClipQuantRewrite", "Clip + QuantizeLinear that clips alike -> QuantizeLinear",
         "extended"),
    _ort("relu_quant_fusion", "ReluQuantRewrite", "Relu + QuantizeLinear that clips alike -> QuantizeLinear",
         "extended"),
    # --- fusions into operators that only ONNX Runtime knows
    _ort("gelu_contrib_fusion", "GeluFusionL2", "GELU by Erf -> com.microsoft.Gelu", "extended",
         produces=(f"{_MS}Gelu",)),
    _ort("layer_norm_contrib_fusion", "LayerNormFusionL2",
         "ReduceMean + Sub + Pow + ... -> LayerNormalization of ONNX Runtime, below opset 17", "extended",
         produces=("LayerNormalization",)),
    _ort("simplified_layer_norm_fusion", "SimplifiedLayerNormFusion",
         "Pow + ReduceMean + Sqrt + Div + Mul -> SimplifiedLayerNormalization", "extended",
         produces=("SimplifiedLayerNormalization",)),
    _ort("attention_fusion", "AttentionFusion",
         "LayerNormalization + projections + Softmax of BERT, GPT-2 or DistilBERT -> com.microsoft.Attention",
         "extended", produces=(f"{_MS}Attention", f"{_MS}MultiHeadAttention", "ReduceSum", "Cast"),
         needs=("layer_norm_fusion", "layer_norm_contrib_fusion")),
    _ort("gather_slice_to_split_fusion", "GatherSliceToSplitFusion",
         "Gathers or Slices that cover an axis -> Split (+ Squeeze)", "extended", produces=("Split", "Squeeze")),
    _ort("gather_to_slice_fusion", "GatherToSliceFusion", "Range + Gather -> Slice", "extended",
         produces=("Slice", "Unsqueeze")),
    _ort("matmul_transpose_fusion", "MatmulTransposeFusion", "Transpose + MatMul -> com.microsoft.FusedMatMul",
         "extended", produces=(f"{_MS}FusedMatMul",)),
    _ort("bias_gelu_fusion", "BiasGeluFusion", "Add + com.microsoft.Gelu -> com.microsoft.BiasGelu", "extended",
         produces=(f"{_MS}BiasGelu",), needs=("gelu_contrib_fusion",)),
    _ort("skip_layer_norm_fusion", "SkipLayerNormFusion",
         "Add + LayerNormalization -> com.microsoft.SkipLayerNormalization", "extended",
         produces=(f"{_MS}SkipLayerNormalization",), needs=("layer_norm_fusion", "layer_norm_contrib_fusion")),
    _ort("bias_skip_layer_norm_fusion", "BiasSkipLayerNormFusion",
         "Add + com.microsoft.SkipLayerNormalization -> the latter with a bias", "extended",
         needs=("layer_norm_fusion", "layer_norm_contrib_fusion", "skip_layer_norm_fusion")),
    _ort("fast_gelu_fusion", "FastGeluFusion", "GELU by Tanh -> com.microsoft.FastGelu", "extended",
         produces=(f"{_MS}FastGelu",)),
    _ort("quick_gelu_fusion", "QuickGeluFusion", "x * Sigmoid(a * x) -> com.microsoft.QuickGelu", "extended",
         produces=(f"{_MS}QuickGelu",)),
    _ort("gelu_approximation", "GeluApproximation", "com.microsoft.Gelu -> com.microsoft.FastGelu", None,
         produces=(f"{_MS}FastGelu",), needs=("gelu_contrib_fusion",), approximate=True,
         entries=(("optimization.enable_gelu_approximation", "1"),)),
    _ort("matmul_scale_fusion", "MatMulScaleFusion", "MatMul beside Mul or Div by a constant -> FusedMatMul",
         "extended", produces=(f"{_MS}FusedMatMul",)),
    _ort("gemm_activation_fusion", "GemmActivationFusion", "Gemm + activation -> com.microsoft.FusedGemm", "extended",
         produces=(f"{_MS}FusedGemm",)),
    _ort("conv_activation_fusion", "ConvActivationFusion", "Conv + activation -> com.microsoft.FusedConv", "extended",
         produces=(f"{_MS}FusedConv",)),
    _ort("matmul_integer_to_float_fusion", "MatMulIntegerToFloatFusion",
         "MatMulInteger + Cast + Mul -> com.microsoft.MatMulIntegerToFloat", "extended",
         produces=(f"{_MS}MatMulIntegerToFloat",)),
    _ort("dynamic_quantize_matmul_fusion", "DynamicQuantizeMatMulFusion",
         "DynamicQuantizeLinear + com.microsoft.MatMulIntegerToFloat -> com.microsoft.DynamicQuantizeMatMul",
         "extended", produces=(f"{_MS}DynamicQuantizeMatMul",), needs=("matmul_integer_to_float_fusion",)),
    _ort("dq_matmulnbits_fusion", "DQMatMulNBitsFusion", "4-bit DequantizeLinear + MatMul -> com.microsoft.MatMulNBits",
         None, produces=(f"{_MS}MatMulNBits",), entries=(("session.enable_dq_matmulnbits_fusion", "1"),),
         approximate=True),
    _ort("qdq_selector_action", "QDQSelectorActionTransformer",
         "DequantizeLinear + operator + QuantizeLinear -> its quantized operator", "extended", approximate=True,
         produces=("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger", *(f"{_MS}{op}" for op in (
             "MatMulIntegerToFloat", "MatMulNBits", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat",
             "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid", "QLinearSoftmax",
             "QLinearWhere",
         )))),
    _ort("qdq_final_cleanup", "QDQFinalCleanupTransformer", "QuantizeLinear + DequantizeLinear -> nothing", None,
         entries=(("session.enable_quant_qdq_cleanup", "1"),), approximate=True),
    # --- for this processor only
    _ort("nchwc_transformer", "NchwcTransformer", "Conv and pooling -> blocked layout of this processor", "all",
         produces=tuple(f"{_NCHWC}{op}" for op in (
             "AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput", "ReorderOutput",
             "Upsample",
         ))),
    _ort("nhwc_transformer", "NhwcTransformer",
         "QLinearConv and quantized pooling -> channels last, with Transposes around", "all",
         produces=("Transpose", f"{_MS}QLinearConv", f"{_MS}QLinearAveragePool", f"{_MS}NhwcMaxPool",
                   f"{_MS}NhwcFusedConv")),
    _ort("conv_add_activation_fusion", "ConvAddActivationFusion", "Conv + Add + activation -> com.microsoft.FusedConv",
         "all", produces=(f"{_MS}FusedConv",)),
    # --- transformers of ONNX Runtime that never act here
    _ort("bias_softmax_fusion", "BiasSoftmaxFusion", "Add + Softmax -> com.microsoft.BiasSoftmax", None,
         unavailable=_CUDA),
    _ort("matmul_activation_fusion", "MatMulActivationFusion", "MatMul + activation -> com.microsoft.FusedMatMul",
         None, unavailable="ONNX Runtime does this only to nodes on DirectML"),
    _ort("bias_dropout_fusion", "BiasDropoutFusion", "Add + Dropout -> com.microsoft.BiasDropout", None,
         unavailable=_CUDA),
    _ort("group_query_attention_fusion", "GroupQueryAttentionFusion",
         "RotaryEmbedding + GroupQueryAttention -> GroupQueryAttention", None, unavailable=_CUDA),
)  # fmt: skip
"""Every pass, in the order they run."""

BY_NAME: dict[str, Pass] = {row.name: row for row in PASSES}

TARGET_PASSES: dict[str, tuple[str, ...]] = {
    "qnn/npu": (
        "unfuse_conv", "unfuse_gemm", "unfuse_skip_layer_norm", "unfuse_bias_gelu", "gather_nd_to_gather",
        "average_pool_to_global",
    ),
}  # fmt: skip
"""Passes that a target gets at every level but `none`."""

TRANSFORMERS: tuple[str, ...] = (
    "AttentionFusion", "Avx2WeightS8ToU8Transformer", "BiasDropoutFusion", "BiasGeluFusion",
    "BiasSkipLayerNormFusion", "BiasSoftmaxFusion", "CastChainElimination", "CastElimination",
    "CastFloat16Transformer", "ClipQuantRewrite", "CommonSubexpressionElimination", "ConstantFolding",
    "ConstantFoldingDQ", "ConstantSharing", "ConvActivationFusion", "ConvAddActivationFusion", "ConvAddFusion",
    "ConvBNFusion", "ConvMulFusion", "DivMulFusion", "DoubleQDQPairsRemover", "DQMatMulNBitsFusion",
    "DynamicQuantizeMatMulFusion", "EliminateDropout", "EliminateIdentity", "EliminateSlice", "EmbedLayerNormFusion",
    "EnsureUniqueDQForNodeUnit", "ExpandElimination", "FastGeluFusion", "FreeDimensionOverrideTransformer",
    "FuseFp16InitializerToFp32NodeTransformer", "FuseReluClip", "GatherSliceToSplitFusion", "GatherToSliceFusion",
    "GeluApproximation", "GeluFusionL1", "GeluFusionL2", "GemmActivationFusion", "GemmSumFusion",
    "GemmTransposeFusion", "GqaValueLayoutTransformer", "GroupQueryAttentionFusion",
    "GroupQueryAttentionPreNormFusion", "LabelEncoderFusion", "LayerNormFusionL1", "LayerNormFusionL2",
    "MatMul_BatchNormalization_Fusion", "MatMulActivationFusion", "MatMulAddFusion", "MatMulIntegerToFloatFusion",
    "MatMulNBitsFusion", "MatMulNBitsMlpFusion", "MatMulNBitsQkvFusion", "MatMulScaleFusion", "MatmulTransposeFusion",
    "MemcpyTransformer", "NchwcTransformer", "NhwcTransformer", "NoopElimination", "NotWhereFusion", "Pad_Fusion",
    "PreShapeNodeElimination", "QDQFinalCleanupTransformer", "QDQPropagationTransformer", "QDQS8ToU8Transformer",
    "QDQSelectorActionTransformer", "QuickGeluFusion", "ReluQuantRewrite", "RemoveDuplicateCastTransformer",
    "ReshapeFusion", "SimplifiedLayerNormFusion", "SkipLayerNormFusion", "SliceConcatToSpaceToDepthFusion",
    "TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider", "UnsqueezeElimination", "WeightBiasQuantization",
    "WhereDummyDq",
)  # fmt: skip
"""Every transformer and rule of ONNX Runtime 1.31; to run one, all others are disabled."""


def find(name: str) -> Pass:
    """The row of a name in snake_case or kebab-case; a pass that cannot act is refused with its reason."""
    row = BY_NAME.get(name.replace("-", "_"))
    if row is None:
        near = nearest(name.replace("-", "_"), BY_NAME)
        hint = f"did you mean `{near}`? " if near else ""
        raise RequestError(f"unknown pass `{name}`", hint=f"{hint}`winml optimize --list` shows them all")
    if row.unavailable is not None:
        raise UnavailableError(
            f"pass `{row.name}` is unavailable: {row.unavailable}",
            hint="drop it; `winml optimize --list` shows the available passes",
        )
    return row


def available(names: Iterable[str] | None = None) -> tuple[Pass, ...]:
    """The named passes, or all that can act here, in the order they run."""
    if names is None:
        return tuple(row for row in PASSES if row.unavailable is None)
    wanted = {find(name).name for name in names}
    return tuple(row for row in PASSES if row.name in wanted)
