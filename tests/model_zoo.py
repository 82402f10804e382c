"""Small real models for tests, written as ONNX text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

HEADER = '<ir_version: 10, opset_import: ["" : 21{extra}]>'


def text_model(body: str, *, extra: str = "") -> onnx.ModelProto:
    """A model from `name (inputs) => (outputs) { nodes }` with opset 21."""
    return parser.parse_model(HEADER.format(extra=extra) + body)


def saved(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path


def relu() -> onnx.ModelProto:
    return text_model("relu (float[batch,4] x) => (float[batch,4] y) { y = Relu(x) }")


def _weights(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.2).astype(np.float32)


def conv_net(*, fused: bool = False, channels: int = 16, size: int = 16) -> onnx.ModelProto:
    """Three convolutions with Relu; `fused` writes them as com.microsoft FusedConv, as an extended save would."""
    nodes, initializers = [], []
    value, width = "x", 3
    for i in range(3):
        initializers.append(numpy_helper.from_array(_weights((channels, width, 3, 3), i), f"w{i}"))
        initializers.append(numpy_helper.from_array(_weights((channels,), 10 + i), f"b{i}"))
        inputs, pads = [value, f"w{i}", f"b{i}"], [1, 1, 1, 1]
        if fused:
            nodes.append(
                helper.make_node(
                    "FusedConv", inputs, [f"r{i}"], domain="com.microsoft", activation="Relu",
                    pads=pads, kernel_shape=[3, 3],
                )
            )  # fmt: skip
        else:
            nodes.append(helper.make_node("Conv", inputs, [f"c{i}"], pads=pads, kernel_shape=[3, 3]))
            nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
        value, width = f"r{i}", channels
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["p"]))
    nodes.append(helper.make_node("Flatten", ["p"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "conv_net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels])],
        initializers,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def split_net() -> onnx.ModelProto:
    """A convolution the QNN EP takes, one it does not (FusedConv), and one it takes again: two partitions."""
    weights = [numpy_helper.from_array(_weights((3, 3, 3, 3), i), f"w{i}") for i in range(3)]
    shape = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], name="first/Conv", **shape),
        helper.make_node("Relu", ["c0"], ["r0"], name="first/Relu"),
        helper.make_node(
            "FusedConv",
            ["r0", "w1"],
            ["c1"],
            name="middle/FusedConv",
            domain="com.microsoft",
            activation="Relu",
            **shape,
        ),
        helper.make_node("Conv", ["c1", "w2"], ["c2"], name="last/Conv", **shape),
        helper.make_node("Relu", ["c2"], ["y"], name="last/Relu"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 16, 16]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "split_net", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def depthwise_net() -> onnx.ModelProto:
    """Convolutions, one of them depthwise, a gate and a pool: s8s8 makes some of them slower on a CPU, some faster."""
    weights = {"w0": (32, 3, 3, 3), "w1": (32, 1, 3, 3), "w2": (32, 32, 1, 1)}
    square = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], name="stem/Conv", **square),
        helper.make_node("Conv", ["c0", "w1"], ["c1"], name="depthwise/Conv", group=32, **square),
        helper.make_node("Conv", ["c1", "w2"], ["c2"], name="pointwise/Conv", kernel_shape=[1, 1]),
        helper.make_node("Add", ["c0", "c2"], ["a"], name="residual/Add"),
        helper.make_node("Sigmoid", ["a"], ["s"], name="gate/Sigmoid"),
        helper.make_node("Mul", ["a", "s"], ["m"], name="gate/Mul"),
        helper.make_node("MaxPool", ["m"], ["p"], name="pool/MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["p"], ["y"], name="head/Pool"),
    ]
    graph = helper.make_graph(
        nodes,
        "depthwise_net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 1, 1])],
        [numpy_helper.from_array(_weights(shape, i), name) for i, (name, shape) in enumerate(weights.items())],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _quantized(source: Path, path: Path, kind: str) -> Path:
    """A model with input x, statically quantized to QDQ with activations and weights of one type."""
    from onnxruntime import quantization as q

    shape = [d.dim_value for d in onnx.load(source).graph.input[0].type.tensor_type.shape.dim]

    class Reader(q.CalibrationDataReader):
        def __init__(self) -> None:
            rng = np.random.default_rng(0)
            self._data = iter([{"x": rng.random(shape, dtype=np.float32)} for _ in range(4)])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self._data, None)

    q.quantize_static(
        str(source), str(path), Reader(), quant_format=q.QuantFormat.QDQ,
        activation_type=getattr(q.QuantType, kind), weight_type=getattr(q.QuantType, kind),
    )  # fmt: skip
    return path


def conv_w8a8(path: Path) -> Path:
    """The conv net in uint8."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return _quantized(saved(conv_net(), Path(folder) / "conv.onnx"), path, "QUInt8")


def s8s8(source: Path, path: Path) -> Path:
    """A model with input x in int8."""
    return _quantized(source, path, "QInt8")


def divides_int_min() -> onnx.ModelProto:
    """INT_MIN / -1, which ends the process with SIGFPE on x86."""
    return text_model(
        """g (int32[1] x) => (int32[1] y)
        <int32[1] lowest = {-2147483648}, int32[1] minus = {-1}, int32[1] one = {1}>
        { z = Sub(x, x)  a = Add(lowest, z)  b = Add(minus, z)  y = Div(a, b) }"""
    )


def crashes_when_folded() -> onnx.ModelProto:
    """INT_MIN / -1 among constants: whoever folds them when the model is opened ends with SIGFPE on x86."""
    return text_model(
        """g (int32[1] x) => (int32[1] y) <int32[1] lowest = {-2147483648}, int32[1] minus = {-1}>
        { a = Div(lowest, minus)  y = Add(a, x) }"""
    )


def endless_loop() -> onnx.ModelProto:
    """A Loop whose condition never turns false."""
    return text_model(
        """g (float[1] x) => (float[1] y)
        <int64 trips = {9223372036854775807}, bool cond = {1}>
        {
          y = Loop (trips, cond, x) <body = b (int64 i, bool keep_in, float[1] v) => (bool keep, float[1] w)
            { keep = Identity(keep_in)  w = Sin(v) }>
        }"""
    )


def endless_shape_inference() -> onnx.ModelProto:
    """A model of a few bytes on which onnx's shape inference never ends and takes more and more memory.

    Data propagation makes a shape with as many dimensions as a vector has elements; it keeps the interpreter's lock.
    """
    # The size comes out of following values alone, so that nobody can see it before.
    return text_model(
        """agraph (float[1048576] x) => (float[n] y)
        { s = Shape(x)  t = Mul(s, s)  z = ConstantOfShape(t)  y = Add(z, z) }"""
    )


def huge_allocation() -> onnx.ModelProto:
    return text_model(
        """g (int64[1] x) => (float[n] y) <int64[1] many = {4398046511104}>
        { z = Sub(x, x)  s = Add(many, z)  y = ConstantOfShape(s) }"""
    )


def embedding(rows: int = 10) -> onnx.ModelProto:
    """Token ids to rows of a table: ids outside the table fail at run time."""
    table = numpy_helper.from_array(_weights((rows, 4), 0), "table")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["y"])],
        "embedding",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "sequence"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", "sequence", 4])],
        [table],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


class _Named:
    """Collects nodes that carry names as an exporter gives them, and their weights."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int) -> str:
        self.weights.append(numpy_helper.from_array(_weights(shape, len(self.weights)) * 0.3, name))
        return name

    def constant(self, name: str, value: object) -> str:
        self.weights.append(numpy_helper.from_array(np.array(value), name))
        return name

    def add(self, op: str, name: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, list(inputs), [f"{name}_output_0"], name=name, **attributes))
        return f"{name}_output_0"

    def dense(self, name: str, value: str, width: int, out: int) -> str:
        product = self.add("MatMul", f"{name}/MatMul", value, self.weight(f"{name}.weight", width, out))
        return self.add("Add", f"{name}/Add", self.weight(f"{name}.bias", out), product)


def _attention(net: _Named, at: str, value: str, width: int, heads: int) -> str:
    split = net.constant(f"{at}/split", [1, -1, heads, width // heads])
    merged = net.constant(f"{at}/merged", [1, -1, width])
    parts = []
    for part in ("query", "key", "value"):
        dense = net.dense(f"{at}/{part}", value, width, width)
        shaped = net.add("Reshape", f"{at}/{part}/Reshape", dense, split)
        perm = [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3]
        parts.append(net.add("Transpose", f"{at}/{part}/Transpose", shaped, perm=perm))
    scores = net.add("MatMul", f"{at}/MatMul", parts[0], parts[1])
    scale = net.constant(f"{at}/scale", np.float32((width // heads) ** 0.5))
    shares = net.add("Softmax", f"{at}/Softmax", net.add("Div", f"{at}/Div", scores, scale), axis=-1)
    mixed = net.add("MatMul", f"{at}/MatMul_1", shares, parts[2])
    back = net.add("Transpose", f"{at}/Transpose", mixed, perm=[0, 2, 1, 3])
    return net.dense(f"{at}/output", net.add("Reshape", f"{at}/Reshape", back, merged), width, width)


def _gelu(net: _Named, at: str, value: str) -> str:
    root = net.constant(f"{at}/root", np.float32(2**0.5))
    erf = net.add("Erf", f"{at}/Erf", net.add("Div", f"{at}/Div", value, root))
    shifted = net.add("Add", f"{at}/Add", erf, net.constant(f"{at}/one", np.float32(1)))
    doubled = net.add("Mul", f"{at}/Mul", value, shifted)
    return net.add("Mul", f"{at}/Mul_1", doubled, net.constant(f"{at}/half", np.float32(0.5)))


def _norm(net: _Named, name: str, value: str, width: int) -> str:
    scale = net.constant(f"{name}.weight", np.ones(width, np.float32))
    return net.add("LayerNormalization", name, value, scale, net.weight(f"{name}.bias", width))


def encoder(*, layers: int = 2, width: int = 64, heads: int = 4, tokens: int = 16, words: int = 100) -> onnx.ModelProto:
    """A BERT-like encoder with the node names of an exporter; GELU is spelled out."""
    net = _Named()
    value = net.add("Gather", "/embeddings/Gather", net.weight("embeddings.weight", words, width), "input_ids")
    value = _norm(net, "/embeddings/LayerNorm", value, width)
    for i in range(layers):
        at = f"/layer.{i}"
        mixed = _attention(net, f"{at}/attention", value, width, heads)
        value = _norm(net, f"{at}/attention/LayerNorm", net.add("Add", f"{at}/Add", value, mixed), width)
        hidden = _gelu(net, f"{at}/gelu", net.dense(f"{at}/intermediate", value, width, 4 * width))
        out = net.dense(f"{at}/output", hidden, 4 * width, width)
        value = _norm(net, f"{at}/output/LayerNorm", net.add("Add", f"{at}/Add_1", value, out), width)
    net.nodes.append(helper.make_node("Identity", [value], ["last_hidden_state"], name="/Identity"))
    graph = helper.make_graph(
        net.nodes,
        "encoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, tokens])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, tokens, width])],
        net.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def grouped_attention(*, heads: int = 4, kv_heads: int = 2, width: int = 16, tokens: int = 8) -> onnx.ModelProto:
    """One step of attention with fewer heads for keys than for queries, as decoders of language models have it."""
    past, new = f"float[1,{kv_heads},{tokens},{width}]", f"float[1,1,{kv_heads * width}]"
    model = text_model(
        f"gqa (float[1,1,{heads * width}] q, {new} k, {new} v, {past} past_k, {past} past_v) "
        f"=> (float[1,1,{heads * width}] y, {past} present_k, {past} present_v) "
        f"<int32[1] seen = {{{tokens - 1}}}, int32 total = {{{tokens}}}> {{ "
        "y, present_k, present_v = com.microsoft.GroupQueryAttention"
        f"<num_heads = {heads}, kv_num_heads = {kv_heads}> (q, k, v, past_k, past_v, seen, total) }}",
        extra=', "com.microsoft" : 1',
    )
    model.graph.node[0].name = "attention"
    return model
