"""Operator traces for tests, made from their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, TraceMetadata, Unit, with_shares

CPU, QNN = "CPUExecutionProvider", "QNNExecutionProvider"


def operator(name: str, kind: str, value: float, **changes: Any) -> OperatorMetrics:
    """An operator that is one node of the model; in µs on the CPU unless told otherwise."""
    ep = changes.pop("ep", CPU)
    unit: Unit = "cycles" if ep == QNN else "us"
    whole: dict[str, Any] = {"op_type": kind, "onnx_op_type": kind, "onnx_nodes": (name,), "origin": "node"}
    return OperatorMetrics(name, ep, changes.pop("unit", unit), (value, value), **{**whole, **changes})


def trace(*operators: OperatorMetrics, summary: Mapping[str, Any] | None = None, **metadata: Any) -> OpTraceResult:
    """A trace of two runs after one."""
    whole: dict[str, Any] = {
        "ep": "cpu", "device": "cpu", "tracing_level": "basic", "tracing_backend": "onnxruntime profiler",
        "model": "models/m.onnx", "num_samples": 2, "warmup_samples": 1,
    }  # fmt: skip
    return OpTraceResult(
        TraceMetadata(**{**whole, **metadata}), operators=with_shares(operators), summary=dict(summary or {})
    )


def chain(values: Sequence[float], kind: str = "Conv") -> list[OperatorMetrics]:
    """Operators one after the other."""
    return [operator(f"/block.{number}/{kind}", kind, value) for number, value in enumerate(values)]
