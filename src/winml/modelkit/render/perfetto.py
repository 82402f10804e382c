"""An operator trace in the Chrome trace format, which Perfetto and chrome://tracing open.

One track per EP and stream, with the first measured run. Cycles have no place on a clock: they are laid one after
another on a track of their own that says so.
"""

from __future__ import annotations

from typing import Any

_PROCESS = 1
_CYCLES_PER_TICK = 1000.0


def _track(operator: dict[str, Any]) -> str:
    name = f"{operator['ep'].removesuffix('ExecutionProvider')} {operator['stream']}"
    return name if operator["unit"] == "us" else f"{name} (1 us = 1000 cycles, not time)"


def _first(operator: dict[str, Any]) -> float | None:
    samples = operator[f"samples_{operator['unit']}"]
    return samples[0] if samples else None


def _arguments(operator: dict[str, Any]) -> dict[str, Any]:
    kept = ("op_path", "op_type", "onnx_op_type", "onnx_nodes", "origin", "neighbour", "data_type", "dims")
    return {name: operator[name] for name in kept if operator[name]}


def perfetto(trace: dict[str, Any]) -> dict[str, Any]:
    """The JSON object of the Chrome trace format."""
    tracks: dict[str, int] = {}
    events: list[dict[str, Any]] = []
    ends: dict[int, float] = {}
    for operator in trace["operators"]:
        value = _first(operator)
        if value is None:
            continue
        track = tracks.setdefault(_track(operator), len(tracks) + 1)
        in_time = operator["unit"] == "us"
        duration = value if in_time else value / _CYCLES_PER_TICK
        start = operator["start_time_us"] if in_time else None
        start = ends.get(track, 0.0) if start is None else start
        ends[track] = start + duration
        events.append(
            {
                "name": operator["onnx_op_type"] or operator["op_type"] or operator["name"],
                "cat": operator["ep"],
                "ph": "X",
                "ts": start,
                "dur": duration,
                "pid": _PROCESS,
                "tid": track,
                "args": {**_arguments(operator), **({} if in_time else {"cycles": value})},
            }
        )
    model = trace["metadata"]["model"] or "model"
    names = [_named("process_name", model), *(_named("thread_name", name, tid) for name, tid in tracks.items())]
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ms", "otherData": dict(trace["metadata"])}


def _named(kind: str, name: str, track: int = 0) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": track, "args": {"name": name}}
