"""Quantized models in which one layer was damaged, and whether `winml debug` ranks that layer first.

    python benchmarks/accuracy/faults.py -o WORK [--targets cpu,qnn/npu] [--count 20]

Models are networks with random weights (convolutions with residuals, a perceptron, a transformer), quantized by
`winml quantize -p int8`. A fault is one of: the scale or the zero point of a value, the weights, their scale, or the
bias of a layer. Writes `benchmarks/results/planted_faults.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results" / "planted_faults.json"
KINDS = ("scale", "zero point", "weights", "weight scale", "bias")


def convolutions(rng: np.random.Generator) -> ModelProto:
    """Convolutions with a residual, and a classifier."""
    net = _Net(rng, [1, 3, 16, 16])
    value = net.conv("x", 3, 8)
    for _ in range(4):
        inner = net.conv(net.conv(value, 8, 8), 8, 8, relu=False)
        value = net.add("Relu", net.add("Add", value, inner))
    pooled = net.add("Flatten", net.add("GlobalAveragePool", value))
    return net.finish(net.linear(pooled, 8, 10))


def perceptron(rng: np.random.Generator) -> ModelProto:
    """Eight dense layers."""
    net = _Net(rng, [1, 32])
    value = "x"
    for _ in range(8):
        value = net.add("Relu", net.linear(value, 32, 32))
    return net.finish(net.linear(value, 32, 8))


def transformer(rng: np.random.Generator) -> ModelProto:
    """Two blocks of attention and dense layers."""
    net = _Net(rng, [1, 12, 16])
    value = "x"
    for _ in range(2):
        query, key, content = (net.linear(value, 16, 16) for _ in range(3))
        turned = net.add("Transpose", key, perm=[0, 2, 1])
        weights = net.add("Softmax", net.add("MatMul", query, turned), axis=-1)
        value = net.add("Add", value, net.linear(net.add("MatMul", weights, content), 16, 16))
        value = net.add("LayerNormalization", value, net.constant(np.ones(16)), net.constant(np.zeros(16)))
        value = net.add("Add", value, net.linear(net.add("Relu", net.linear(value, 16, 32)), 32, 16))
    return net.finish(value)


MODELS: dict[str, Callable[[np.random.Generator], ModelProto]] = {
    "convolutions": convolutions, "perceptron": perceptron, "transformer": transformer,
}  # fmt: skip


class _Net:
    """A network that layers are added to."""

    def __init__(self, rng: np.random.Generator, shape: list[int]) -> None:
        self.rng, self.shape = rng, shape
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: Any) -> str:
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def conv(self, value: str, inputs: int, outputs: int, *, relu: bool = True) -> str:
        weight = self.constant(self.rng.normal(0, (2 / (9 * inputs)) ** 0.5, (outputs, inputs, 3, 3)))
        bias = self.constant(self.rng.normal(0, 0.1, outputs))
        made = self.add("Conv", value, weight, bias, pads=[1, 1, 1, 1])
        return self.add("Relu", made) if relu else made

    def linear(self, value: str, inputs: int, outputs: int) -> str:
        weight = self.constant(self.rng.normal(0, (2 / inputs) ** 0.5, (inputs, outputs)))
        return self.add("Add", self.add("MatMul", value, weight), self.constant(self.rng.normal(0, 0.1, outputs)))

    def finish(self, value: str) -> ModelProto:
        self.nodes.append(helper.make_node("Identity", [value], ["y"], name="last"))
        graph = helper.make_graph(
            self.nodes, "g", [helper.make_tensor_value_info("x", 1, self.shape)],
            [helper.make_tensor_value_info("y", 1, None)], self.constants,
        )  # fmt: skip
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def damage(model: ModelProto, kind: str, rng: np.random.Generator) -> list[str]:
    """Damage one constant in place; the values that layers compute with it.

    A value that is only given another shape keeps its scale, so that both have the fault.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    places = list(_places(model, kind, constants))
    if not places:
        raise LookupError(f"nothing to damage: {kind}")
    name = places[rng.integers(len(places))][1]
    tensor = constants[name]
    array = numpy_helper.to_array(tensor).copy()
    if kind in ("scale", "weight scale"):
        array = (array * (0.25 if kind == "scale" else rng.uniform(0.4, 1.8, array.shape))).astype(array.dtype)
    elif kind == "zero point":
        limits = np.iinfo(array.dtype)
        array = np.asarray(int(array) + (60 if int(array) < (limits.min + limits.max) // 2 else -60), array.dtype)
    elif kind == "bias":
        array = (array + np.abs(array).max() * rng.choice([-3, 3], array.shape)).astype(array.dtype)
    else:
        chosen = rng.random(array.shape) < 0.2
        array[chosen] = np.negative(array[chosen].astype(np.int32)).clip(-128, 127).astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return [value for value, other in places if other == name]


def _places(model: ModelProto, kind: str, constants: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Values with the constant to damage for each."""
    makers = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        # Not of inputs of the model, which no layer computes.
        pair = node.op_type == "QuantizeLinear" and node.input[0] in makers
        if kind in ("scale", "zero point") and pair:
            yield node.input[0], node.input[1 if kind == "scale" else 2]
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            continue
        place = 2 if kind == "bias" else 1
        source = makers.get(node.input[place]) if len(node.input) > place else None
        if source is None or source.op_type != "DequantizeLinear" or source.input[0] not in constants:
            continue
        if kind in ("weights", "bias"):
            yield node.output[0], source.input[0]
        elif kind == "weight scale":
            yield node.output[0], source.input[1]


def make_case(work: Path, number: int) -> tuple[Path, Path, str, str, list[str]]:
    """A reference, its damaged int8 model, the kind of model and of fault, and the values of the damaged layer."""
    import winml.modelkit as wk

    rng = np.random.default_rng(number)
    name = list(MODELS)[number % len(MODELS)]
    reference, quantized = work / f"{number}.onnx", work / f"{number}-int8.onnx"
    if not quantized.exists():
        onnx.save(MODELS[name](rng), reference)
        wk.quantize(reference, output=quantized, target="cpu", precision="int8", calibration="random", samples=16)
    kinds = [kind for kind in KINDS if any(_places_of(quantized, kind))]
    kind = kinds[(number // len(MODELS)) % len(kinds)]
    while True:
        model = onnx.load(quantized)
        values = damage(model, kind, rng)
        if matters(model, quantized, rng):
            break
    damaged = work / f"{number}-damaged.onnx"
    onnx.save(model, damaged)
    return reference, damaged, name, kind, values


def matters(damaged: ModelProto, quantized: Path, rng: np.random.Generator) -> bool:
    """Whether a fault changes the outputs by more than a tenth: what is clipped may never occur."""
    import onnxruntime

    sessions = [onnxruntime.InferenceSession(model) for model in (str(quantized), damaged.SerializeToString())]
    shape = sessions[0].get_inputs()[0].shape
    before, after = zip(
        *([one.run(None, {"x": x})[0] for one in sessions] for x in rng.random((4, *shape)).astype(np.float32)),
        strict=True,
    )
    return bool(np.linalg.norm(np.subtract(after, before)) > 0.1 * np.linalg.norm(before))


def _places_of(path: Path, kind: str) -> Iterator[tuple[str, str]]:
    model = onnx.load(path)
    return _places(model, kind, {tensor.name: tensor for tensor in model.graph.initializer})


def rank_of(result: Any, damaged: Path, values: list[str]) -> int | None:
    """The rank of the layer that computes one of the values; a value inside of a layer counts as the layer's."""
    model = onnx.load(damaged)
    readers = {name: node for node in model.graph.node for name in node.input}
    ranks = {row.value: place for place, row in enumerate(result.layers, 1)}
    found = []
    for value in values:
        while value not in ranks and value in readers:
            value = readers[value].output[0]
        found += [ranks[value]] if value in ranks else []
    return min(found, default=None)


def main() -> int:
    import winml.modelkit as wk

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for models")
    parser.add_argument("--targets", default="cpu,qnn/npu")
    parser.add_argument("--count", type=int, default=20)
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(asked.count):
        reference, damaged, name, kind, values = make_case(asked.output, number)
        for target in asked.targets.split(","):
            result = wk.debug(damaged, reference=reference, data="random", target=target, progress=False)
            rank = rank_of(result, damaged, values)
            rows.append({
                "model": name, "fault": kind, "target": target, "layers": len(result.layers), "rank": rank,
                "outputs_db": result.outputs[0].noise.sqnr_db, "seconds": round(result.seconds, 1),
            })  # fmt: skip
            print(json.dumps(rows[-1]), flush=True)
    sys.path.insert(0, str(HERE.parent))
    from record import write_results

    targets = asked.targets.split(",")
    write_results(
        RESULTS,
        f"python benchmarks/accuracy/faults.py -o WORK --targets {asked.targets} --count {asked.count}",
        [
            (
                f"{target}, {kind}",
                [float(row["rank"] or 0) for row in rows if (row["target"], row["fault"]) == (target, kind)],
            )
            for target in targets
            for kind in KINDS
        ],
        conditions={"cases": rows},
    )
    print({target: sum(row["rank"] == 1 for row in rows if row["target"] == target) for target in targets})
    return 0


if __name__ == "__main__":
    sys.exit(main())
