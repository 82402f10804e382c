"""An operator trace in the Chrome trace format, which Perfetto and chrome://tracing open.

One track per EP and stream, with the first measured run. Cycles have no time stamps: they are laid out one after
another on a track of their own, labelled as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult

_PROCESS = 1
_CYCLES_PER_TICK = 1000.0


def _arguments(operator: OperatorMetrics) -> dict[str, Any]:
    kept = {
        "op_path": operator.op_path,
        "op_type": operator.op_type,
        "onnx_op_type": operator.onnx_op_type,
        "onnx_nodes": operator.onnx_nodes,
        "origin": operator.origin,
        "neighbour": operator.neighbour,
        "data_type": operator.data_type,
        "dims": operator.dims,
    }
    return {name: value for name, value in kept.items() if value}


def perfetto(trace: OpTraceResult) -> Mapping[str, object]:
    """The JSON object of the Chrome trace format."""
    tracks: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    ends: dict[int, float] = {}
    for operator in trace.operators:
        if not operator.samples:
            continue
        value = operator.samples[0]
        in_time = operator.unit == "us"
        name = f"{operator.ep.removesuffix('ExecutionProvider')} {operator.stream}"
        name += "" if in_time else " (1 us = 1000 cycles, not time)"
        track = tracks.setdefault(name, len(tracks) + 1)
        duration = value if in_time else value / _CYCLES_PER_TICK
        start = operator.start_time_us if in_time else None
        start = ends.get(track, 0.0) if start is None else start
        ends[track] = start + duration
        events.append(
            {
                "name": operator.type,
                "cat": operator.ep,
                "ph": "X",
                "ts": start,
                "dur": duration,
                "pid": _PROCESS,
                "tid": track,
                "args": {**_arguments(operator), **({} if in_time else {"cycles": value})},
            }
        )
    model = trace.metadata.model or "model"
    names = [_name_event("process_name", model)]
    names += [_name_event("thread_name", name, track) for name, track in tracks.items()]
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ms", "otherData": trace.metadata}


def _name_event(kind: str, name: str, track: int = 0) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": track, "args": {"name": name}}
