"""For every pass of `winml optimize` a small graph that it changes, and a small transformer for all of them."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

Weights = tuple[int, ...] | np.ndarray


def _array(value: Weights, seed: int) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    return (np.random.default_rng(seed).standard_normal(value) * 0.3).astype(np.float32)


def graph(body: str, *, opset: int = 17, microsoft: bool = False, **weights: Weights) -> onnx.ModelProto:
    """A model from ONNX text; keyword arguments become initializers, a shape stands for random numbers."""
    extra = ', "com.microsoft": 1' if microsoft else ""
    model: onnx.ModelProto = parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}{extra}]> g {body}')
    for seed, (name, value) in enumerate(weights.items()):
        model.graph.initializer.append(numpy_helper.from_array(_array(value, seed), name))
    return model


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def scalar(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


CONV = "(float[1,3,8,8] x) => (float[1,4,8,8] y) "
CONV_WEIGHTS: dict[str, Weights] = {"w": (4, 3, 3, 3), "b": (4,)}
_GELU = """
  {i} = Div({x}, sqrt2)  {i}e = Erf({i})  {i}a = Add({i}e, one)  {i}m = Mul({x}, {i}a)  {y} = Mul({i}m, half)
"""
GELU_WEIGHTS: dict[str, Weights] = {"sqrt2": scalar(np.sqrt(2)), "one": scalar(1), "half": scalar(0.5)}
_LAYER_NORM = """
  {i}m = ReduceMean<axes = [-1]>({x})  {i}d = Sub({x}, {i}m)  {i}p = Pow({i}d, two)
  {i}v = ReduceMean<axes = [-1]>({i}p)  {i}q = Add({i}v, eps)  {i}s = Sqrt({i}q)  {i}n = Div({i}d, {i}s)
  {i}g = Mul({i}n, {i}gamma)  {y} = Add({i}g, {i}beta)
"""
NORM_WEIGHTS: dict[str, Weights] = {"two": scalar(2), "eps": scalar(1e-5)}


TANH_GELU = """
  p = Pow(x, three)  m = Mul(p, cubic)  a = Add(x, m)  s = Mul(a, root)  t = Tanh(s)  o = Add(t, one)
  h = Mul(x, half)  g = Mul(h, o)
"""
TANH_GELU_WEIGHTS: dict[str, Weights] = {
    "three": scalar(3), "cubic": scalar(0.044715), "root": scalar(np.sqrt(2 / np.pi)), "one": scalar(1),
    "half": scalar(0.5),
}  # fmt: skip


def gelu(x: str, y: str, i: str = "g") -> str:
    return _GELU.format(x=x, y=y, i=i)


def layer_norm(x: str, y: str, i: str = "n") -> str:
    return _LAYER_NORM.format(x=x, y=y, i=i)


def _ones(size: int) -> np.ndarray:
    return (1 + 0.1 * np.random.default_rng(size).standard_normal(size)).astype(np.float32)


def transformer(
    *, layers: int = 1, hidden: int = 32, heads: int = 2, tokens: int = 8, vocabulary: int = 50, masked: bool = True,
    opset: int = 12, fused_norms: bool = False,
) -> onnx.ModelProto:  # fmt: skip
    """A BERT-like encoder in plain operators, as an exporter writes it; the mask becomes a bias of the scores."""
    size = hidden // heads
    weights: dict[str, Weights] = {
        **GELU_WEIGHTS, **NORM_WEIGHTS, "table": (vocabulary, hidden), "places": (1, tokens, hidden),
        "split": i64(0, 0, heads, size), "join": i64(0, 0, hidden), "root": scalar(np.sqrt(size)),
        "low": scalar(-10000), "ngamma": _ones(hidden), "nbeta": (hidden,),
    }  # fmt: skip
    text = "e = Gather(table, ids)  ep = Add(e, places)" + _norm("ep", "h0", "n", fused=fused_norms)
    if masked:
        text += """mask1 = Unsqueeze<axes = [1]>(mask)  mask2 = Unsqueeze<axes = [2]>(mask1)
        maskf = Cast<to = 1>(mask2)  masked = Sub(one, maskf)  bias = Mul(masked, low)
        """
    for n in range(layers):
        text += _layer(n, masked=masked, fused_norms=fused_norms)
        weights |= {f"w{n}{part}": (hidden, hidden) for part in "qkvo"}
        weights |= {f"b{n}{part}": (hidden,) for part in "qkvo"}
        weights |= {f"w{n}f": (hidden, 4 * hidden), f"b{n}f": (4 * hidden,), f"w{n}p": (4 * hidden, hidden)}
        weights |= {f"b{n}p": (hidden,)}
        for norm in "yz":
            weights |= {f"{norm}{n}gamma": _ones(hidden), f"{norm}{n}beta": (hidden,)}
    mask = f", int64[1,{tokens}] mask" if masked else ""
    return graph(
        f"(int64[1,{tokens}] ids{mask}) => (float[1,{tokens},{hidden}] y) {{ {text} y = Identity(h{layers}) }}",
        opset=opset, **weights,
    )  # fmt: skip


def _norm(x: str, y: str, i: str, *, fused: bool) -> str:
    return f"{y} = LayerNormalization({x}, {i}gamma, {i}beta)\n" if fused else layer_norm(x, y, i)


def _layer(n: int, *, masked: bool, fused_norms: bool) -> str:
    text = ""
    for part, order in (("q", "[0,2,1,3]"), ("k", "[0,2,3,1]"), ("v", "[0,2,1,3]")):
        text += f"""{part}m{n} = MatMul(h{n}, w{n}{part})  {part}a{n} = Add({part}m{n}, b{n}{part})
        {part}r{n} = Reshape({part}a{n}, split)  {part}t{n} = Transpose<perm = {order}>({part}r{n})
        """
    score = f"s{n} = MatMul(qt{n}, kt{n})  d{n} = Div(s{n}, root)  "
    score += (
        f"sb{n} = Add(d{n}, bias)  p{n} = Softmax<axis = 3>(sb{n})" if masked else f"p{n} = Softmax<axis = -1>(d{n})"
    )
    text += f"""{score}
        c{n} = MatMul(p{n}, vt{n})  ct{n} = Transpose<perm = [0,2,1,3]>(c{n})  cr{n} = Reshape(ct{n}, join)
        om{n} = MatMul(cr{n}, w{n}o)  oa{n} = Add(om{n}, b{n}o)  r{n} = Add(oa{n}, h{n})
        {_norm(f"r{n}", f"m{n}", f"y{n}", fused=fused_norms)}
        fm{n} = MatMul(m{n}, w{n}f)  fa{n} = Add(fm{n}, b{n}f)  {gelu(f"fa{n}", f"fg{n}", f"g{n}")}
        pm{n} = MatMul(fg{n}, w{n}p)  pa{n} = Add(pm{n}, b{n}p)  r2{n} = Add(pa{n}, m{n})
        {_norm(f"r2{n}", f"h{n + 1}", f"z{n}", fused=fused_norms)}
    """
    return text


def mask_indices(batch: int, queries: int, keys: int) -> np.ndarray:
    """(batch, key) for every position of an attention mask, as exporters index it."""
    b, _, _, k = np.indices((batch, 1, queries, keys))
    return np.stack([b, k], axis=-1).astype(np.int64)


def _qdq(body: str, **weights: Weights) -> onnx.ModelProto:
    """A graph with 8-bit quantization; `s` and `z` are the scale and zero point of every pair."""
    return graph(body, s=scalar(0.05), z=np.array(120, np.uint8), **weights)


def _with_function() -> onnx.ModelProto:
    model: onnx.ModelProto = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "local": 1]>
        g (float[2,4] x) => (float[2,4] y) { y = local.twice(x) }
        <domain: "local", opset_import: ["": 17]> twice (a) => (b) { b = Add(a, a) }"""
    )
    return model


def _with_default_input() -> onnx.ModelProto:
    return graph("(float[2,4] x, float[4] w) => (float[2,4] y) { y = Add(x, w) }", w=(4,))


def _four_bit() -> onnx.ModelProto:
    """A MatMul whose weights are 4-bit numbers in blocks of 16."""
    model = graph(
        """(float[2,32] x) => (float[2,16] y) {
          d = DequantizeLinear<axis = 0, block_size = 16>(w, s, z)  y = MatMul(x, d) }""",
        opset=21, s=(2, 16),
    )  # fmt: skip
    model.ir_version = 10
    for name, dims, raw in (("w", [32, 16], bytes(range(256))), ("z", [2, 16], bytes(16))):
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.UINT4, dims, raw, raw=True))
    return model


FIRES: dict[str, onnx.ModelProto] = {
    # --- unfusing
    "unfuse_conv": graph(
        """(float[1,3,8,8] x, float[1,4,8,8] z) => (float[1,4,8,8] y) {
          a = com.microsoft.FusedConv<activation = "LeakyRelu", activation_params = [0.1], pads = [1,1,1,1]>(x, w, b, z)
          y = com.microsoft.FusedConv<activation = "Clip", activation_params = [-1.0, 0.5], pads = [1,1,1,1]>(a, v)
        }""",
        **CONV_WEIGHTS, v=(4, 4, 3, 3), microsoft=True,
    ),
    "unfuse_gemm": graph(
        """(float[2,4] x) => (float[2,3] y) {
          y = com.microsoft.FusedGemm<activation = "LeakyRelu", activation_alpha = 0.2, alpha = 0.5>(x, w, b) }""",
        w=(4, 3), b=(3,), microsoft=True,
    ),
    "unfuse_skip_layer_norm": graph(
        """(float[1,2,4] x, float[1,2,4] z) => (float[1,2,4] y, float[1,2,4] s) {
          y, m, i, s = com.microsoft.SkipLayerNormalization<epsilon = 0.001>(x, z, g, o, b) }""",
        g=_ones(4), o=(4,), b=(4,), microsoft=True,
    ),
    "unfuse_bias_gelu": graph(
        "(float[2,4] x) => (float[2,4] y) { y = com.microsoft.BiasGelu(x, b) }", b=(4,), microsoft=True
    ),
    # --- onnx-ir
    "inline_functions": _with_function(),
    "lift_constants": graph(
        "(float[2,4] x) => (float[2,4] y) { c = Constant<value = float[4] {1, 2, 3, 4}>()  y = Add(x, c) }"
    ),
    "unused_node_elimination": graph("(float[2,4] x) => (float[2,4] y) { dead = Exp(x)  y = Relu(x) }"),
    "initializer_input_removal": _with_default_input(),
    # --- onnxscript
    "fuse_rmsnorm": graph(
        """(float[2,4] x) => (float[2,4] y) {
          p = Pow(x, two)  v = ReduceMean<keepdims = 1, noop_with_empty_axes = 0>(p, axes)  q = Add(v, eps)
          s = Sqrt(q)  r = Reciprocal(s)  n = Mul(x, r)  y = Mul(n, gamma) }""",
        opset=23, **NORM_WEIGHTS, gamma=_ones(4), axes=i64(-1),
    ),
    "clip_fusion": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Clip(x, low, high)  y = Clip(a, zero, one) }",
        low=scalar(-1), high=scalar(6), zero=scalar(0), one=scalar(1),
    ),
    "min_max_to_clip": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Min(x, high)  y = Max(a, low) }", low=scalar(-1), high=scalar(1)
    ),
    "hardswish_fusion": graph(
        """(float[2,4] x) => (float[2,4] y) {
          a = Add(x, three)  c = Clip(a, zero, six)  m = Mul(x, c)  y = Div(m, six) }""",
        three=scalar(3), zero=scalar(0), six=scalar(6),
    ),
    "reshape_chain_fusion": graph(
        "(float[2,4] x) => (float[8] y) { a = Reshape(x, first)  y = Reshape(a, second) }",
        first=i64(4, 2), second=i64(8),
    ),
    "transpose_chain_fusion": graph(
        """(float[2,3,4] x) => (float[4,2,3] y) {
          a = Transpose<perm = [1,0,2]>(x)  y = Transpose<perm = [2,1,0]>(a) }"""
    ),
    "unsqueeze_chain_fusion": graph(
        "(float[2,4] x) => (float[1,1,2,4] y) { a = Unsqueeze(x, axis)  y = Unsqueeze(a, axis) }", axis=i64(0)
    ),
    "flatten_to_reshape": graph("(float[2,3,4] x) => (float[2,12] y) { y = Flatten(x) }"),
    "expand_before_binary_elimination": graph(
        "(float[1,4] x, float[3,4] z) => (float[3,4] y) { a = Expand(x, shape)  y = Mul(a, z) }", shape=i64(3, 4)
    ),
    "scatter_nd_elimination": graph(
        "(float[3,4] x, float[3,4] u) => (float[3,4] y) { y = ScatterND(x, all, u) }",
        opset=18, all=np.array([[0], [1], [2]], np.int64),
    ),
    "zero_bias_elimination": graph(
        CONV + "{ y = Conv<pads = [1,1,1,1]>(x, w, b) }", w=(4, 3, 3, 3), b=np.zeros(4, np.float32)
    ),
    "batchnorm_fusion": graph(
        "(float[1,3,8,8] x) => (float[1,4,8,8] y) { c = ConvTranspose<pads = [1,1,1,1]>(x, w)  "
        "y = BatchNormalization(c, g, o, m, v) }",
        w=(3, 4, 3, 3), g=_ones(4), o=(4,), m=(4,), v=_ones(4),
    ),
    "conv_affine_fusion": graph(
        CONV + "{ c = Conv<pads = [1,1,1,1]>(x, w, b)  m = Mul(c, k)  y = Add(m, a) }",
        **CONV_WEIGHTS, k=scalar(2), a=scalar(0.5),
    ),
    # --- own rewrites
    "gelu_singlegelu": graph(
        f"(float[2,4] x) => (float[2,4] y) {{ {TANH_GELU}  y = Relu(g) }}", opset=20, **TANH_GELU_WEIGHTS
    ),
    "matmuladd_reshapegemm": graph(
        "(float[n,3,4] x) => (float[n,3,5] y) { a = MatMul(x, w)  y = Add(b, a) }", w=(4, 5), b=(5,)
    ),
    "concat_slice_elimination": graph(
        """(float[2,3] a, float[2,4] b, float[2,5] c) => (float[2,9] y, float[2,3] v) {
          t = Concat<axis = 1>(a, b, c)  s = Slice(t, start, end, axis)  y = Relu(s)
          v = Slice(t, zero, start, axis) }""",
        zero=i64(0), start=i64(3), end=i64(9223372036854775807), axis=i64(-1),
    ),
    "highdimRTR_lowdimRTR": graph(
        """(float[1,12,8] x) => (float[1,6,16] y) {
          a = Reshape(x, high)  t = Transpose<perm = [0,1,3,2,4,5]>(a)  y = Reshape(t, low) }""",
        high=i64(1, 1, 6, 2, 2, 4), low=i64(1, 6, 16),
    ),
    "gather_nd_to_gather": graph(
        "(float[2,4] x) => (float[2,1,3,4] y) { y = GatherND(x, indices) }", indices=mask_indices(2, 3, 4)
    ),
    "average_pool_to_global": graph(
        "(float[1,4,2,3] x) => (float[1,4,1,1] y) { "
        "y = AveragePool<kernel_shape = [8,8], strides = [8,8], ceil_mode = 1, count_include_pad = 1>(x) }"
    ),
    # --- ONNX Runtime, rules of its first level
    "identity_elimination": graph("(float[2,4] x) => (float[2,4] y) { a = Identity(x)  y = Relu(a) }"),
    "dropout_elimination": graph("(float[2,4] x) => (float[2,4] y) { a = Dropout(x)  y = Relu(a) }"),
    "slice_elimination": graph(
        "(float[2,4] x) => (float[2,4] y) { e = Exp(x)  a = Slice(e, starts, ends)  y = Relu(a) }",
        starts=i64(0, 0), ends=i64(9223372036854775807, 9223372036854775807),
    ),
    "expand_elimination": graph(
        "(float[2,4] x) => (float[2,4] y) { e = Exp(x)  a = Expand(e, shape)  y = Relu(a) }", shape=i64(2, 4)
    ),
    "unsqueeze_elimination": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Unsqueeze<axes = [0]>(w)  y = Add(x, a) }", opset=11, w=(4,)
    ),
    "cast_elimination": graph("(float[2,4] x) => (float[2,4] y) { a = Cast<to = 1>(x)  y = Relu(a) }"),
    "cast_chain_elimination": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Cast<to = 11>(x)  b = Cast<to = 1>(a)  y = Relu(b) }"
    ),
    "noop_elimination": graph(
        "(float[2,4] x) => (float[2,4] y) { e = Exp(x)  a = Add(e, zero)  y = Relu(a) }", zero=scalar(0)
    ),
    "pre_shape_node_elimination": graph(
        "(float[n,4] x) => (int64[2] y) { a = Cast<to = 7>(x)  y = Shape(a) }"
    ),
    "div_mul_fusion": graph(
        "(float[2,4] x, float[2,4] z) => (float[2,4] y) { a = Div(one, x)  y = Mul(a, z) }", one=scalar(1)
    ),
    "relu_clip_fusion": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Relu(x)  y = Clip(a, low, high) }", low=scalar(-1), high=scalar(6)
    ),
    "not_where_fusion": graph(
        "(bool[4] c, float[4] x, float[4] z) => (float[4] y) { n = Not(c)  y = Where(n, x, z) }"
    ),
    "gemm_sum_fusion": graph(
        "(float[2,4] x, float[2,3] z) => (float[2,3] y) { a = Gemm(x, w)  y = Sum(a, z) }", w=(4, 3)
    ),
    "gemm_transpose_fusion": graph(
        "(float[4,2] x) => (float[2,3] y) { a = Transpose<perm = [1,0]>(x)  y = Gemm(a, w) }", w=(4, 3)
    ),
    "conv_bn_fusion": graph(
        CONV + "{ c = Conv<pads = [1,1,1,1]>(x, w, b)  y = BatchNormalization(c, g, o, m, v) }",
        **CONV_WEIGHTS, g=_ones(4), o=(4,), m=(4,), v=_ones(4),
    ),
    "conv_add_fusion": graph(
        CONV + "{ c = Conv<pads = [1,1,1,1]>(x, w, b)  y = Add(c, o) }", **CONV_WEIGHTS, o=(1, 4, 1, 1)
    ),
    "conv_mul_fusion": graph(
        CONV + "{ c = Conv<pads = [1,1,1,1]>(x, w, b)  y = Mul(c, o) }", **CONV_WEIGHTS, o=(1, 4, 1, 1)
    ),
    "pad_fusion": graph(
        CONV + "{ p = Pad(x, pads, zero)  y = Conv<pads = [0,0,0,0]>(p, w, b) }",
        **CONV_WEIGHTS, pads=i64(0, 0, 1, 1, 0, 0, 1, 1), zero=scalar(0),
    ),
    "matmul_bn_fusion": graph(
        "(float[2,4] x) => (float[2,3] y) { a = MatMul(x, w)  y = BatchNormalization(a, g, o, m, v) }",
        w=(4, 3), g=_ones(3), o=(3,), m=(3,), v=_ones(3),
    ),
    # --- its transformers of the first level
    "constant_folding": graph("(float[2,4] x) => (float[2,4] y) { a = Exp(w)  y = Add(x, a) }", w=(4,)),
    "common_subexpression_elimination": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Exp(x)  b = Exp(x)  c = Neg(b)  y = Sub(a, c) }"
    ),
    "matmul_add_fusion": graph(
        "(float[2,4] x) => (float[2,3] y) { a = MatMul(x, w)  y = Add(a, b) }", w=(4, 3), b=(3,)
    ),
    "reshape_fusion": graph(
        """(float[n,m,8] x) => (float[n,m,2,4] y) {
          s = Shape(x)  i = Gather(s, zero)  j = Gather(s, one)  iu = Unsqueeze(i, axes)  ju = Unsqueeze(j, axes)
          t = Concat<axis = 0>(iu, ju, two, four)  y = Reshape(x, t) }""",
        zero=np.array(0, np.int64), one=np.array(1, np.int64), axes=i64(0), two=i64(2), four=i64(4),
    ),
    "gelu_fusion": graph(f"(float[2,4] x) => (float[2,4] y) {{ {gelu('x', 'y')} }}", opset=20, **GELU_WEIGHTS),
    "layer_norm_fusion": graph(
        f"(float[2,4] x) => (float[2,4] y) {{ {layer_norm('x', 'y')} }}",
        **NORM_WEIGHTS, ngamma=_ones(4), nbeta=(4,),
    ),
    "simplified_layer_norm_fusion": graph(
        """(float[2,4] x) => (float[2,4] y) {
          p = Pow(x, two)  v = ReduceMean<axes = [-1]>(p)  q = Add(v, eps)  s = Sqrt(q)  n = Div(x, s)
          y = Mul(n, gamma) }""",
        **NORM_WEIGHTS, gamma=_ones(4),
    ),
    "transpose_optimizer": graph(
        """(float[1,4,6] x) => (float[1,4,6] y) {
          a = Transpose<perm = [0,2,1]>(x)  b = Relu(a)  y = Transpose<perm = [0,2,1]>(b) }"""
    ),
    "gather_slice_to_split_fusion": graph(
        """(float[2,3,4] x) => (float[2,4] y) {
          a = Gather<axis = 1>(x, zero)  b = Gather<axis = 1>(x, one)  c = Gather<axis = 1>(x, two)
          d = Add(a, b)  y = Add(d, c) }""",
        zero=np.array(0, np.int64), one=np.array(1, np.int64), two=np.array(2, np.int64),
    ),
    "gather_to_slice_fusion": graph(
        "(float[8,4] x) => (float[3,4] y) { r = Range(low, high, step)  y = Gather(x, r) }",
        low=np.array(2, np.int64), high=np.array(5, np.int64), step=np.array(1, np.int64),
    ),
    "slice_concat_to_space_to_depth_fusion": graph(
        """(float[1,3,8,8] x) => (float[1,12,4,4] y) {
          a = Slice(x, s00, end, axes, step)  b = Slice(x, s10, end, axes, step)
          c = Slice(x, s01, end, axes, step)  d = Slice(x, s11, end, axes, step)  y = Concat<axis = 1>(a, b, c, d) }""",
        s00=i64(0, 0), s10=i64(1, 0), s01=i64(0, 1), s11=i64(1, 1), end=i64(8, 8), axes=i64(2, 3), step=i64(2, 2),
    ),
    "double_qdq_pairs_remover": _qdq(
        """(float[2,4] x) => (float[2,4] y) {
          a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  c = QuantizeLinear(b, s, z)
          d = DequantizeLinear(c, s, z)  y = Relu(d) }"""
    ),
    "qdq_propagation": _qdq(
        """(float[2,4] x) => (float[4,2] y) {
          a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  c = Transpose<perm = [1,0]>(b)
          d = Reshape(c, shape)  y = Relu(d) }""",
        shape=i64(4, 2),
    ),
    "relu_quant_fusion": _qdq(
        """(float[2,4] x) => (float[2,4] y) {
          r = Relu(x)  a = QuantizeLinear(r, s, zz)  y = DequantizeLinear(a, s, zz) }""",
        zz=np.array(0, np.uint8),
    ),
    "clip_quant_fusion": _qdq(
        """(float[2,4] x) => (float[2,4] y) {
          e = Exp(x)  r = Clip(e, low, high)  a = QuantizeLinear(r, s, z)  y = DequantizeLinear(a, s, z) }""",
        low=scalar(-100), high=scalar(100),
    ),
    # --- its second level
    "conv_activation_fusion": graph(CONV + "{ c = Conv<pads = [1,1,1,1]>(x, w, b)  y = Relu(c) }", **CONV_WEIGHTS),
    "conv_add_activation_fusion": graph(
        """(float[1,3,8,8] x, float[1,4,8,8] z) => (float[1,4,8,8] y) {
          c = Conv<pads = [1,1,1,1]>(x, w, b)  a = Add(c, z)  y = Relu(a) }""",
        **CONV_WEIGHTS,
    ),
    "gemm_activation_fusion": graph(
        "(float[2,4] x) => (float[2,3] y) { a = Gemm(x, w, b)  y = Relu(a) }", w=(4, 3), b=(3,)
    ),
    "matmul_transpose_fusion": graph(
        "(float[2,5,4] x, float[2,3,4] z) => (float[2,5,3] y) { t = Transpose<perm = [0,2,1]>(z)  y = MatMul(x, t) }"
    ),
    "matmul_scale_fusion": graph(
        "(float[2,4] x, float[4,3] z) => (float[2,3] y) { a = MatMul(x, z)  y = Mul(a, k) }", k=scalar(0.5)
    ),
    "gelu_contrib_fusion": graph(f"(float[2,4] x) => (float[2,4] y) {{ {gelu('x', 'y')} }}", **GELU_WEIGHTS),
    "bias_gelu_fusion": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Add(x, b)  y = com.microsoft.Gelu(a) }", b=(4,), microsoft=True
    ),
    "fast_gelu_fusion": graph(
        f"(float[2,4] x) => (float[2,4] y) {{ {TANH_GELU}  y = Relu(g) }}",
        **TANH_GELU_WEIGHTS,
    ),
    "quick_gelu_fusion": graph(
        "(float[2,4] x) => (float[2,4] y) { a = Mul(x, k)  s = Sigmoid(a)  y = Mul(x, s) }", k=scalar(1.702)
    ),
    "gelu_approximation": graph("(float[2,4] x) => (float[2,4] y) { y = com.microsoft.Gelu(x) }", microsoft=True),
    "skip_layer_norm_fusion": graph(
        """(float[1,2,4] x, float[1,2,4] z) => (float[1,2,4] y) {
          a = Add(x, z)  y = LayerNormalization<axis = -1>(a, g, b) }""",
        g=_ones(4), b=(4,),
    ),
    "bias_skip_layer_norm_fusion": graph(
        """(float[1,2,4] x, float[1,2,4] z) => (float[1,2,4] y) {
          m = MatMul(x, w)  a = Add(m, b)  y = com.microsoft.SkipLayerNormalization(a, z, g, o) }""",
        w=(4, 4), b=(4,), g=_ones(4), o=(4,), microsoft=True,
    ),
    "dynamic_quantize_matmul_fusion": graph(
        """(float[2,4] x) => (float[2,3] y) {
          q, s, z = DynamicQuantizeLinear(x)  y = com.microsoft.MatMulIntegerToFloat(q, w, s, ws, z, wz) }""",
        w=np.arange(12, dtype=np.uint8).reshape(4, 3), wz=np.array(6, np.uint8), ws=scalar(0.1), microsoft=True,
    ),
    "matmul_integer_to_float_fusion": graph(
        """(uint8[2,4] x, float s) => (float[2,3] y) {
          i = MatMulInteger(x, w, z, wz)  f = Cast<to = 1>(i)  k = Mul(s, ws)  y = Mul(f, k) }""",
        w=np.arange(12, dtype=np.uint8).reshape(4, 3), z=np.array(9, np.uint8), wz=np.array(6, np.uint8),
        ws=scalar(0.1),
    ),
    "qdq_selector_action": _qdq(
        """(float[1,4] x) => (float[1,4] y) {
          a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  c = Sigmoid(b)
          d = QuantizeLinear(c, s, z)  y = DequantizeLinear(d, s, z) }"""
    ),
    "weight_bias_quantization": _qdq(
        """(float[2,4] x) => (float[2,3] y) {
          a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  w = DequantizeLinear(wq, s, wz)
          c = Gemm(b, w, bias)  d = QuantizeLinear(c, s, z)  y = DequantizeLinear(d, s, z) }""",
        wq=np.arange(12, dtype=np.int8).reshape(4, 3), wz=np.array(0, np.int8), bias=(3,),
    ),
    "layer_norm_contrib_fusion": graph(
        f"(float[2,4] x) => (float[2,4] y) {{ {layer_norm('x', 'y')} }}",
        opset=12, **NORM_WEIGHTS, ngamma=_ones(4), nbeta=(4,),
    ),
    "attention_fusion": transformer(fused_norms=True),
    "dq_matmulnbits_fusion": _four_bit(),
    "qdq_final_cleanup": _qdq(
        "(float[2,4] x) => (float[2,4] y) { a = QuantizeLinear(x, s, z)  b = DequantizeLinear(a, s, z)  y = Relu(b) }"
    ),
    "nhwc_transformer": graph(
        "(uint8[1,4,8,8] x) => (uint8[1,4,8,8] y) { y = QLinearConv<pads = [1,1,1,1]>(x, s, z, w, s, wz, s, z) }",
        s=scalar(0.05), z=np.array(120, np.uint8), w=np.arange(144, dtype=np.uint8).reshape(4, 4, 3, 3),
        wz=np.array(70, np.uint8),
    ),
    "nchwc_transformer": graph(
        "(float[1,16,8,8] x) => (float[1,16,8,8] y) { y = Conv<pads = [1,1,1,1]>(x, w, b) }", w=(16, 16, 3, 3), b=(16,)
    ),
}  # fmt: skip

STAYS: dict[str, onnx.ModelProto] = {
    "bias_softmax_fusion": graph(
        "(float[2,3,5,5] x, float[2,1,1,5] m) => (float[2,3,5,5] y) { a = Add(x, m)  y = Softmax<axis = 3>(a) }"
    ),
    "matmul_activation_fusion": graph("(float[2,4] x) => (float[2,3] y) { a = MatMul(x, w)  y = Relu(a) }", w=(4, 3)),
    "bias_dropout_fusion": graph(
        "(float[2,4] x, float[2,4] r) => (float[2,4] y) { a = Add(x, b)  d = Dropout(a)  y = Add(d, r) }", b=(4,)
    ),
}  # fmt: skip
"""Graphs that a pass would change if it could act in this runtime."""
