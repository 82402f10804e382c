"""Hazards: what silently makes a model slow, wrong or impossible on a target, and the command that fixes it.

One literal table. Every row has its evidence; a row that depends on something unknown does not fire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.knowledge import operators

if TYPE_CHECKING:
    from winml.modelkit.graph.description import GraphFacts
    from winml.modelkit.graph.quantized_nodes import QuantizedNode

NODES_NAMED = 20
"""How many nodes a hazard names; `count` has them all."""

_OPTIMIZE = "winml optimize -m {model} --target {target} -o {stem}_optimized.onnx"
_QUANTIZE = "winml quantize -m {original} --target {target} -p {precision}{data} -o {stem}_{precision}.onnx"
ORIGINAL = "ORIGINAL.onnx"
"""Placeholder for the model a file was quantized or fused from, which the file does not tell."""
CALIBRATION = "CALIBRATION.npz"
"""Placeholder for samples of the model's inputs."""


@dataclass(frozen=True)
class ModelGraph:
    """The parts of a model that hazards are searched in."""

    facts: GraphFacts
    nodes: tuple[tuple[str, str], ...]
    """Name and operator of every node of the main graph."""
    quantized: tuple[QuantizedNode, ...]


class HazardMatch(NamedTuple):
    """A match of a row."""

    message: str
    nodes: tuple[str, ...] = ()
    """Names of the nodes concerned; empty when it is the whole model."""
    ops: frozenset[str] = frozenset()
    """Operators that the target should refuse by the table; the EP's own answer takes precedence."""


@dataclass(frozen=True)
class Row:
    """A kind of hazard."""

    id: str
    find: Callable[[ModelGraph, Target], HazardMatch | None]
    """Returns None when a model does not have it on a target."""
    fix: str | None
    """A command; `{model}`, `{stem}`, `{target}` and `{dims}` are filled in by the caller."""
    evidence: str


@dataclass(frozen=True)
class Hazard:
    """One thing to know before a model is used on a target."""

    row: Row
    found: HazardMatch


def find_hazards(model: ModelGraph, target: Target) -> list[Hazard]:
    """The hazards of a model on a target."""
    answers = [(row, row.find(model, target)) for row in TABLE]
    return [Hazard(row, found) for row, found in answers if found is not None]


def _of_ops(model: ModelGraph, ops: frozenset[str], message: str) -> HazardMatch | None:
    """A hazard of some operators, with `{ops}` in its message; None when the model has none of them."""
    present = ", ".join(f"{op} x{n}" for op, n in model.facts.ops.items() if op in ops)
    if not present:
        return None
    return HazardMatch(message.format(ops=present), tuple(name for name, op in model.nodes if op in ops), ops)


def _count(nodes: Sequence[object]) -> str:
    return f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"


def _is_qnn_npu(target: Target) -> bool:
    return (target.ep, target.device) == ("qnn", "npu")


def _contrib(model: ModelGraph, target: Target, *, taken: bool | None) -> frozenset[str]:
    """The operators outside ONNX with this support in the tables."""
    return frozenset(
        op
        for op in model.facts.contrib_ops
        if op != EP_CONTEXT and not op.startswith(NCHWC) and operators.takes(target.ep, target.device, op) is taken
    )


NCHWC = "com.microsoft.nchwc:"
EP_CONTEXT = "com.microsoft:EPContext"

UNFUSED: frozenset[str] = frozenset(
    f"com.microsoft:{op}" for op in ("BiasGelu", "FusedConv", "FusedGemm", "SkipLayerNormalization")
)
"""Fused operators that `winml optimize` takes apart again for a target that refuses them."""


def _find_fused(model: ModelGraph, target: Target) -> HazardMatch | None:
    return _of_ops(
        model,
        _contrib(model, target, taken=False) & UNFUSED,
        "{ops}: fused by ONNX Runtime for its own use (saved at level extended or above); "
        f"{target} refuses it, so each one runs on the CPU and splits the graph",
    )


def _find_contrib_refused(model: ModelGraph, target: Target) -> HazardMatch | None:
    return _of_ops(
        model,
        _contrib(model, target, taken=False) - UNFUSED,
        f"{{ops}}: operators of ONNX Runtime only; {target} refuses them",
    )


def _find_contrib_unknown(model: ModelGraph, target: Target) -> HazardMatch | None:
    if target.ep == "cpu":
        return None
    return _of_ops(
        model,
        _contrib(model, target, taken=None),
        f"{{ops}}: operators outside ONNX; whether {target} supports them is unknown",
    )


def _find_blocked_layout(model: ModelGraph, target: Target) -> HazardMatch | None:
    if target.ep == "cpu":
        return None
    return _of_ops(
        model,
        frozenset(op for op in model.facts.ops if op.startswith(NCHWC)),
        "{ops}: the layout of one kind of processor (saved at level all); no other EP can use it, and QNN reads it as "
        "the ordinary operators and computes wrong values",
    )


def _find_native_attention(model: ModelGraph, target: Target) -> HazardMatch | None:
    if not _is_qnn_npu(target):
        return None
    return _of_ops(
        model,
        frozenset({"Attention"}),
        "{ops}: the native Attention of opset 23; QNN refuses it with a boolean mask, which is what exporters write, "
        "and it then runs on the CPU; export with opset 22 or below",
    )


def _find_dynamic_shapes(model: ModelGraph, target: Target) -> HazardMatch | None:
    axes = ", ".join(model.facts.dynamic_axes)
    if target.device != "npu" or not axes:
        return None
    return HazardMatch(
        f"dynamic shapes ({axes}): an NPU needs fixed shapes; nodes that depend on dynamic ones stay on the CPU"
    )


def _is_int4(node: QuantizedNode, granularity: str) -> bool:
    return node.weight in ("int4", "uint4") and node.granularity == granularity


def _find_int4_per_tensor(model: ModelGraph, target: Target) -> HazardMatch | None:
    nodes = tuple(node.name for node in model.quantized if _is_int4(node, "tensor") and node.bias)
    if not _is_qnn_npu(target) or not nodes:
        return None
    return HazardMatch(
        f"{_count(nodes)} with 4-bit weights per tensor and a bias: QNN does not open such a model", nodes
    )


def _find_int4_blocks(model: ModelGraph, target: Target) -> HazardMatch | None:
    nodes = tuple(node.name for node in model.quantized if _is_int4(node, "block"))
    if not _is_qnn_npu(target) or not nodes:
        return None
    return HazardMatch(
        f"{_count(nodes)} with 4-bit weights in blocks behind DequantizeLinear: the CPU dequantizes them in every run",
        nodes,
    )


SLOW_PAIRS = {
    ("int8", "int8"): "ONNX Runtime fuses quantized operators only with uint8 activations; it turns int8 ones into "
    "uint8 where it can and runs the rest in float32 between QuantizeLinear and DequantizeLinear",
    ("uint8", "uint8"): "the CPU EP has no fast kernels for uint8 weights",
}
"""Types of activations and weights that the CPU EP is slow with on x86-64, and why."""


def _find_type_pair(model: ModelGraph, target: Target) -> HazardMatch | None:
    slow = [node for node in model.quantized if (node.activation, node.weight) in SLOW_PAIRS]
    if target.ep != "cpu" or not slow:
        return None
    reasons = [
        f"{activation} x {weight} (activations x weights): on x86-64 {why}"
        for (activation, weight), why in SLOW_PAIRS.items()
        if any((node.activation, node.weight) == (activation, weight) for node in slow)
    ]
    return HazardMatch(f"{_count(slow)} quantized as {'; '.join(reasons)}", tuple(node.name for node in slow))


def _find_must_stay_float(model: ModelGraph, target: Target) -> HazardMatch | None:
    reason = catalog.BY_NAME[target.ep].unquantized.get(target.device)
    if reason is None or model.facts.quantized.kind == "none":
        return None
    return HazardMatch(f"the model is quantized, and {target} must not get a quantized model: {reason}")


def _find_compiled_elsewhere(model: ModelGraph, target: Target) -> HazardMatch | None:
    sources = model.facts.compiled_for
    if not sources or any(_names(source, target) for source in sources):
        return None
    where = ", but it is not known for which EP" if "unknown" in sources else f" for {', '.join(sources)}"
    return HazardMatch(f"the model is compiled{where}; only the EP that compiled it can open it")


def _names(source: str, target: Target) -> bool:
    """Whether an EPContext node's `source` is an EP, by its short or full name."""
    full_name = catalog.BY_NAME[target.ep].full_name
    return source.casefold() in (full_name.casefold(), full_name.removesuffix("ExecutionProvider").casefold())


def _quantize(precision: str, *, data: bool = True) -> str:
    given = f" --calibration {CALIBRATION}" if data else ""
    return _QUANTIZE.replace("{precision}", precision).replace("{original}", ORIGINAL).replace("{data}", given)


_SIMULATOR = "asked onnxruntime-qnn 2.7.0 (simulator, soc_model 60)"

TABLE: tuple[Row, ...] = (
    Row("fused-operator", _find_fused, _OPTIMIZE, f"{_SIMULATOR}: knowledge/data/qnn_npu.json"),
    Row("contrib-operator", _find_contrib_refused, _OPTIMIZE.replace("{model}", ORIGINAL),
        "knowledge/data: the EP was asked about each operator"),
    Row("unknown-operator", _find_contrib_unknown, _OPTIMIZE.replace("{model}", ORIGINAL),
        "no table of knowledge/data names the operator for this target"),
    Row("blocked-layout", _find_blocked_layout, _OPTIMIZE.replace("{model}", ORIGINAL),
        f"{_SIMULATOR}: outputs of a conv net off by more than their own size; other models fail to open"),
    # ONNX's converter cannot go below opset 23 with Attention in the graph, so a new export is needed.
    Row("native-attention", _find_native_attention, None,
        f"{_SIMULATOR}: 4 of 6 forms taken, those with a boolean mask refused"),
    Row("dynamic-shapes", _find_dynamic_shapes,
        "winml optimize -m {model} --target {target} {dims} -o {stem}_fixed.onnx",
        f"{_SIMULATOR}: nodes that depend on a symbolic dimension stay on the CPU"),
    Row("int4-per-tensor", _find_int4_per_tensor, _quantize("w4a16"),
        f"{_SIMULATOR}: `Unsupported weight quantization encoding for bias quantization`"),
    Row("int4-blocks", _find_int4_blocks, _quantize("int4", data=False),
        f"{_SIMULATOR}: `does not support a standalone DQ op with per-channel quantization`"),
    Row("slow-type-pair", _find_type_pair, _quantize("int8"),
        "measured with onnxruntime 1.31.1 on x86-64, one thread, CPU time: ResNet-18 float32 36.0 ms, int8 x int8 "
        "29.5, uint8 x uint8 27.0, uint8 x int8 per channel 11.0; a net of residual blocks 5.05, 5.11, 4.06, 2.68"),
    Row("must-stay-float", _find_must_stay_float, None, "ep/catalog.py"),
    Row("compiled-elsewhere", _find_compiled_elsewhere, None, "an EPContext node runs only on the EP that made it"),
)  # fmt: skip
"""Every kind of hazard."""
