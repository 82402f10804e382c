"""Asks an execution provider which operators it takes, and writes the answers as the table of `knowledge/operators.py`.

    python scripts/ask_operators.py qnn/npu
    python scripts/ask_operators.py cpu

Every operator is asked with models of one node: ONNX's own backend tests, and those below for contrib operators. A
form is the type of the first tensor, or `quantized` (the node between QuantizeLinear and DequantizeLinear, uint8), or
`pattern`. Inputs after the first are constants, or given at run time if the EP does not take that. A larger graph may
differ; `winml analyze` asks about the graph itself where it can. An EP that leaves a lone node to the CPU whatever it
is (OpenVINO does so with Cast and Unsqueeze) cannot be asked this way.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from winml.modelkit.building.analysis.reasons import read_reasons
from winml.modelkit.building.analysis.result import EPAnswer
from winml.modelkit.core.errors import ModelkitError, RequestError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.ep import catalog
from winml.modelkit.ep import probing as targets
from winml.modelkit.graph import walk
from winml.modelkit.graph.tensors import dtype_name
from winml.modelkit.knowledge.operators import DATA
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.worker.client import Worker

TIMEOUT_S = 60
MODELS_PER_FORM = 6
IR_VERSION = 10
OPSET = 21
EP_OPTIONS = {"qnn": {"offload_graph_io_quantization": "0"}}
"""By default QNN leaves quantizing a model's own inputs and outputs to the CPU, whatever stands between them."""

SCHEMA = "winml/operators/1"
HEADER = f'<ir_version: {IR_VERSION}, opset_import: ["" : {OPSET}, "com.microsoft" : 1]> g '

SINGLE = (
    """(float[1,4,8] x, float[8,24] w, float[24] b) => (float[1,4,8] y)
        { y = com.microsoft.Attention <num_heads: int = 2> (x, w, b) }""",
    """(float[1,4,8] x, float[8] b, float[1,4,8] s) => (float[1,4,8] y)
        { y = com.microsoft.BiasAdd (x, b, s) }""",
    "(float[1,4,8] x, float[8] b) => (float[1,4,8] y) { y = com.microsoft.BiasGelu (x, b) }",
    "(float[1,4,16] x, float[16] b) => (float[1,4,8] y) { y = com.microsoft.BiasSplitGelu (x, b) }",
    """(float[4,8] x, int8[8,8] w, float[1] s) => (float[4,8] y)
        { y = com.microsoft.DynamicQuantizeMatMul (x, w, s) }""",
    """(int32[1,4] ids, int32[1,4] seg, float[16,8] we, float[16,8] pe, float[2,8] se,
        float[8] g, float[8] b) => (float[1,4,8] y, int32[1] m)
        { y, m = com.microsoft.EmbedLayerNormalization (ids, seg, we, pe, se, g, b) }""",
    "(float[1,4,8] x, float[8] b) => (float[1,4,8] y) { y = com.microsoft.FastGelu (x, b) }",
    """(float[1,3,8,8] x, float[4,3,3,3] w, float[4] b) => (float[1,4,6,6] y)
        { y = com.microsoft.FusedConv <activation: string = "Relu", kernel_shape: ints = [3, 3]> (x, w, b) }""",
    """(float[4,8] x, float[8,8] w, float[8] b) => (float[4,8] y)
        { y = com.microsoft.FusedGemm <activation: string = "Relu"> (x, w, b) }""",
    """(float[2,4,8] x, float[2,4,8] w) => (float[2,4,4] y)
        { y = com.microsoft.FusedMatMul <transB: int = 1, alpha: float = 0.5> (x, w) }""",
    "(float[1,4,8] x) => (float[1,4,8] y) { y = com.microsoft.Gelu (x) }",
    """(float[1,4,16] q, float[1,4,8] k, float[1,4,8] v, float[1,1,8,8] pk, float[1,1,8,8] pv,
        int32[1] lens, int32 total) => (float[1,4,16] y, float[1,1,8,8] nk, float[1,1,8,8] nv)
        { y, nk, nv = com.microsoft.GroupQueryAttention <num_heads: int = 2, kv_num_heads: int = 1>
          (q, k, v, pk, pv, lens, total) }""",
    """(uint8[4,8] x, int8[8,8] w, float[1] sx, float[1] sw) => (float[4,8] y)
        { y = com.microsoft.MatMulIntegerToFloat (x, w, sx, sw) }""",
    """(float[1,4,32] x, uint8[32,1,16] w, float[32] s) => (float[1,4,32] y)
        { y = com.microsoft.MatMulNBits <K: int = 32, N: int = 32, bits: int = 4, block_size: int = 32> (x, w, s) }""",
    """(float[1,4,8] q, float[1,4,8] k, float[1,4,8] v) => (float[1,4,8] y)
        { y = com.microsoft.MultiHeadAttention <num_heads: int = 2> (q, k, v) }""",
    """(uint8[1,4,8] x, int8[8,24] w, float[24] b, float sx, float sw) => (float[1,4,8] y)
        { y = com.microsoft.QAttention <num_heads: int = 2> (x, w, b, sx, sw) }""",
    """(uint8[4,8] x, float sx, uint8 zx, int8[8,8] w, float sw, int8 zw) => (float[4,8] y)
        { y = com.microsoft.QGemm (x, sx, zx, w, sw, zw) }""",
    """(uint8[1,8] a, float sa, uint8 za, uint8[1,8] b, float sb, uint8 zb, float sy, uint8 zy)
        => (uint8[1,8] y) { y = com.microsoft.QLinearAdd (a, sa, za, b, sb, zb, sy, zy) }""",
    """(uint8[1,3,8,8] x, float sx, uint8 zx, float sy, uint8 zy) => (uint8[1,3,7,7] y)
        { y = com.microsoft.QLinearAveragePool <kernel_shape: ints = [2, 2]> (x, sx, zx, sy, zy) }""",
    """(uint8[1,3,8,8] x, float sx, uint8 zx, float sy, uint8 zy) => (uint8[1,3,1,1] y)
        { y = com.microsoft.QLinearGlobalAveragePool <channels_last: int = 0> (x, sx, zx, sy, zy) }""",
    """(uint8[1,8] x, float sx, uint8 zx, float sy, uint8 zy) => (uint8[1,8] y)
        { y = com.microsoft.QLinearLeakyRelu (x, sx, zx, sy, zy) }""",
    """(uint8[1,8] a, float sa, uint8 za, uint8[1,8] b, float sb, uint8 zb, float sy, uint8 zy)
        => (uint8[1,8] y) { y = com.microsoft.QLinearMul (a, sa, za, b, sb, zb, sy, zy) }""",
    """(uint8[1,8] x, float sx, uint8 zx, float sy, uint8 zy) => (uint8[1,8] y)
        { y = com.microsoft.QLinearSigmoid (x, sx, zx, sy, zy) }""",
    """(uint8[1,8] x, float sx, uint8 zx, float sy, uint8 zy) => (uint8[1,8] y)
        { y = com.microsoft.QLinearSoftmax <opset: int = 13> (x, sx, zx, sy, zy) }""",
    "(float[1,4,8] x) => (float[1,4,8] y) { y = com.microsoft.QuickGelu (x) }",
    """(float[1,2,4,8] x, int64[1,4] p, float[16,4] c, float[16,4] s) => (float[1,2,4,8] y)
        { y = com.microsoft.RotaryEmbedding (x, p, c, s) }""",
    """(float[1,4,8] x, float[1,4,8] s, float[8] g, float[8] b) => (float[1,4,8] y)
        { y = com.microsoft.SkipLayerNormalization (x, s, g, b) }""",
    """(float[1,4,8] x, float[1,4,8] s, float[8] g) => (float[1,4,8] y)
        { y = com.microsoft.SkipSimplifiedLayerNormalization (x, s, g) }""",
    "(float[4,8] x) => (float[4,8] y) <int64 axis = {1}> { y = CumSum (x, axis) }",
    """(float[1,4,8] x, float[1,8,4] z) => (float[1,4,4] y)
        { y = Einsum <equation: string = "bij,bjk->bik"> (x, z) }""",
    "(float[4,8] x) => (float[4,8] y) { y = Trilu (x) }",
    """(float[1,4,8] x, float[8] g, float[8] b) => (float[1,4,8] y)
        { y = LayerNormalization (x, g, b) }""",
    """(float[1,4,8] x, float[8] g) => (float[1,4,8] y)
        { y = SimplifiedLayerNormalization (x, g) }""",
)
"""Operators that the backend tests lack, or have only in forms nobody exports."""

QUANTIZED_RELU = """(float[1,8] x) => (float[1,8] y) <float s = {0.02}, uint8 z = {128}>
        { q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)  r = Relu (d)
          p = QuantizeLinear (r, s, z)  y = DequantizeLinear (p, s, z) }"""

PATTERNS: dict[str, str] = {
    "ConvInteger": """(float[1,3,8,8] x, int8[4,3,3,3] w, float sw) => (float[1,4,6,6] y)
        { q, s, z = DynamicQuantizeLinear (x)  i = ConvInteger (q, w, z)  f = Cast <to: int = 1> (i)
          m = Mul (s, sw)  y = Mul (f, m) }""",
    "MatMulInteger": """(float[4,8] x, int8[8,8] w, float sw) => (float[4,8] y)
        { q, s, z = DynamicQuantizeLinear (x)  i = MatMulInteger (q, w, z)  f = Cast <to: int = 1> (i)
          m = Mul (s, sw)  y = Mul (f, m) }""",
    "DynamicQuantizeLinear": """(float[4,8] x, int8[8,8] w, float sw) => (float[4,8] y)
        { q, s, z = DynamicQuantizeLinear (x)  i = MatMulInteger (q, w, z)  f = Cast <to: int = 1> (i)
          m = Mul (s, sw)  y = Mul (f, m) }""",
    "QuantizeLinear": QUANTIZED_RELU,
    "DequantizeLinear": QUANTIZED_RELU,
    "Erf": """(float[1,4,8] x) => (float[1,4,8] y) <float root = {1.4142135}, float one = {1.0}, float half = {0.5}>
        { d = Div (x, root)  e = Erf (d)  a = Add (e, one)  m = Mul (x, a)  y = Mul (m, half) }""",
}
"""Operators that an EP may take only as part of a group it knows."""


@dataclass
class Answer:
    """How many models with an operator were taken, by form, and the first reason why not."""

    took: dict[str, list[int]] = field(default_factory=dict)
    reason: str | None = None

    def add(self, form: str, answers: list[Outcome]) -> None:
        """Count one model as taken when one way of writing it is; what could not be asked does not count."""
        asked = [outcome for outcome in answers if outcome.taken is not None]
        if not asked:
            return
        taken = any(outcome.taken for outcome in asked)
        counts = self.took.setdefault(form, [0, 0])
        counts[0] += taken
        counts[1] += 1
        if not taken:
            self.reason = self.reason or asked[0].reason

    def to_json(self) -> dict[str, Any]:
        taken = sum(took for took, _ in self.took.values())
        asked = sum(number for _, number in self.took.values())
        return {"taken": taken > 0, "forms": self.took, **({"reason": self.reason} if taken < asked else {})}


@dataclass(frozen=True)
class Outcome:
    """Whether the EP took the operator; None when the runtime cannot read the model, so that nobody was asked."""

    taken: bool | None
    reason: str | None = None


@dataclass(frozen=True)
class Case:
    """A model to ask about one operator, with values for its inputs."""

    op: str
    form: str
    model: ModelProto
    inputs: list[Any]


def _text_cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for op, body in [*((None, body) for body in SINGLE), *PATTERNS.items()]:
        model = parser.parse_model(HEADER + body)
        inputs = [_fill(value, rng) for value in model.graph.input]
        yield Case(op or walk.op_key(model.graph.node[0]), "pattern" if op else _dtype(model), model, inputs)


def _array(value: Any) -> Any:
    """A scalar of numpy as the array it stands for; lists and empty optionals as they are."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def _fill(value: onnx.ValueInfoProto, rng: np.random.Generator) -> Any:
    tensor = value.type.tensor_type
    shape = [d.dim_value for d in tensor.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    return np.asarray(rng.random(shape) * (1 if dtype.kind == "f" else 4)).astype(dtype)


def _backend_cases() -> list[Case]:
    """The one-node models of ONNX's backend tests with their inputs, a few per operator and type."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    found: dict[tuple[str, str], list[Case]] = {}
    for test in tests:
        node = test.model.graph.node[0]
        if len(test.model.graph.node) == 1 and "_expanded" not in test.name and "preview" not in node.domain:
            model = _readable(test.model)
            case = Case(walk.op_key(node), _dtype(model), model, [_array(value) for value in test.data_sets[0][0]])
            found.setdefault((case.op, case.form), []).append(case)
    return [case for cases in found.values() for case in cases[:: -(-len(cases) // MODELS_PER_FORM)]]


def _readable(model: ModelProto) -> ModelProto:
    """The model for the versions exporters write, where its operator exists in them."""
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = min(copy.ir_version, IR_VERSION)
    for entry in copy.opset_import:
        if entry.domain in ("", "ai.onnx") and entry.version != OPSET:
            older = ModelProto()
            older.CopyFrom(copy)
            next(o for o in older.opset_import if o.domain == entry.domain).version = OPSET
            try:
                onnx.checker.check_model(older, full_check=True)
            except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
                continue
            return older
    return copy


def _dtype(model: ModelProto) -> str:
    value = next(iter([*model.graph.input, *model.graph.output]))
    return dtype_name(value.type.tensor_type.elem_type)


def _variants(case: Case) -> Iterator[tuple[str, list[ModelProto]]]:
    """By form, the ways of writing a model that count as one."""
    arrays = all(isinstance(value, np.ndarray) and value.dtype != object for value in case.inputs)
    several = arrays and len(case.model.graph.input) == len(case.inputs) > 1
    # Constants first: a weight that is given at run time makes the QNN EP crash for some operators.
    yield case.form, [*([_with_constants(case.model, case.inputs)] if several else []), case.model]
    quantized = _quantized(case) if arrays and case.form != "pattern" else None
    if quantized is not None:
        yield "quantized", [quantized]


def _with_constants(model: ModelProto, inputs: list[Any]) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    for value, array in list(zip(copy.graph.input, inputs, strict=True))[1:]:
        copy.graph.initializer.append(numpy_helper.from_array(np.asarray(array), value.name))
    del copy.graph.input[1:]
    return copy


def _is_float(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.tensor_type.elem_type == TensorProto.FLOAT)


def _quantized(case: Case) -> ModelProto | None:
    """The node between QuantizeLinear and DequantizeLinear; None where it has no float input and output."""
    model, inputs = case.model, case.inputs
    source = _with_constants(model, inputs) if len(model.graph.input) == len(inputs) > 1 else model
    opset = next((o.version for o in source.opset_import if o.domain in ("", "ai.onnx")), 0)
    values = source.graph.input
    if opset < 13 or not (any(map(_is_float, values)) and any(map(_is_float, source.graph.output))):
        return None
    copy = ModelProto()
    copy.CopyFrom(source)
    graph = copy.graph
    graph.initializer.append(numpy_helper.from_array(np.float32(0.02), "q_scale"))
    graph.initializer.append(numpy_helper.from_array(np.uint8(128), "q_zero"))
    node = onnx.NodeProto()
    node.CopyFrom(graph.node[0])
    before, after = [], []
    for value in filter(_is_float, graph.input):
        before += _pair(value.name, f"{value.name}_dq")
        node.input[:] = [f"{value.name}_dq" if name == value.name else name for name in node.input]
    for tensor in [t for t in graph.initializer if t.data_type == TensorProto.FLOAT and t.name != "q_scale"]:
        before += _pair(tensor.name, f"{tensor.name}_dq")
        node.input[:] = [f"{tensor.name}_dq" if name == tensor.name else name for name in node.input]
    for value in filter(_is_float, graph.output):
        after += _pair(f"{value.name}_raw", value.name)
        node.output[:] = [f"{value.name}_raw" if name == value.name else name for name in node.output]
    del graph.node[:]
    graph.node.extend([*before, node, *after])
    return copy


def _pair(source: str, target: str) -> list[onnx.NodeProto]:
    return [
        helper.make_node("QuantizeLinear", [source, "q_scale", "q_zero"], [f"{target}_q"]),
        helper.make_node("DequantizeLinear", [f"{target}_q", "q_scale", "q_zero"], [target]),
    ]


class Asker:
    """Asks one model after another in a worker, with a fresh one after a crash."""

    def __init__(self, target: str, folder: Path) -> None:
        self.resolved = targets.resolve(target, None, None)
        self.answer: EPAnswer | None = None
        self._path = folder / "model.onnx"
        self._worker: Worker | None = None
        self._read = 0

    def ask(self, op: str, model: ModelProto) -> Outcome:
        """Whether the EP took the operator, and its reason when it did not."""
        self._path.write_bytes(model.SerializeToString())
        if self._worker is None or not self._worker.alive:
            self.close()
            self._worker, self._read = Worker(python=self.resolved.installed.python), 0
        resolved = self.resolved
        session = SessionSection(
            threads=1, optimization_level="disable", ep_options=EP_OPTIONS.get(resolved.target.ep, {})
        )
        arm = Arm(artifact=str(self._path), target=resolved.target, session=session)
        args = arm_arguments(arm, resolved.installed.package.distribution)
        try:
            answer = self._worker.ask(EPAnswer, "analysis.ask", args, timeout_s=TIMEOUT_S, what="opening it")
        except RequestError:
            return Outcome(None)
        except ModelkitError as error:
            return Outcome(False, error.message.replace(f"`{self._path}`", "it").replace(str(self._path), "it"))
        self.answer = answer
        log = self._worker.log()
        new, self._read = log[self._read :], len(log)
        left = [n.op for n in answer.nodes if n.ep != catalog.BY_NAME[resolved.target.ep].full_name]
        if not left:
            return Outcome(True)
        name = op.rpartition(":")[2]
        return Outcome(False, next((r.text for r in read_reasons(new) if r.op == name), None))

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()


def main(target: str) -> None:
    answers: dict[str, Answer] = {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        asker = Asker(target, Path(folder))
        try:
            for case in (*_text_cases(), *_backend_cases()):
                for form, models in _variants(case):
                    answers.setdefault(case.op, Answer()).add(form, _first_taken(asker, case.op, models))
        finally:
            asker.close()
    known = {op: answers[op].to_json() for op in sorted(answers) if answers[op].took}
    path = DATA / f"{str(asker.resolved.target).replace('/', '_')}.json"
    path.write_text(_written(asker, known), encoding="utf-8")
    taken = sum(entry["taken"] for entry in known.values())
    print(f"{path.name}: {taken} of {len(known)} operators taken, asked in {time.monotonic() - started:.0f} s")


def _first_taken(asker: Asker, op: str, models: list[ModelProto]) -> list[Outcome]:
    """The outcomes up to the first model that was taken."""
    outcomes = []
    for model in models:
        outcomes.append(asker.ask(op, model))
        if outcomes[-1].taken:
            break
    return outcomes


def _written(asker: Asker, known: dict[str, dict[str, Any]]) -> str:
    """The table as JSON with a line per operator, so that a new version of an EP shows in the diff."""
    head = {
        "schema": SCHEMA,
        "target": str(asker.resolved.target),
        "source": {
            "kind": "asked",
            "how": "models of one operator" + (", on the simulator" if asker.resolved.target.simulated else ""),
            "onnx": onnx.__version__,
            "runtime": asker.answer.environment.runtime.version,
            "ep": asker.answer.environment.ep.version,
            "options": dict(asker.answer.provider_options),
        },
    }
    lines = ",\n".join(f"    {json.dumps(op)}: {json.dumps(entry)}" for op, entry in known.items())
    return json.dumps(head, indent=2)[:-2] + f',\n  "operators": {{\n{lines}\n  }}\n}}\n'


if __name__ == "__main__":
    main(*sys.argv[1:])
