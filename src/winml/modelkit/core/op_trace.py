"""An operator trace: what every operator of a model cost in the runs that were observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NotRequired, TypedDict, get_args

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.forms import misfit
from winml.modelkit.core.statistics import mean, median, percentile

SCHEMA = "winml/op-trace/1"

TraceStatus = Literal["ok", "no_data", "parse_failed", "basic_fallback", "not_run"]
TracingLevel = Literal["basic", "detail"]
Unit = Literal["us", "cycles"]
"""Cycles are never turned into time: operators run in parallel on a device, and a simulator's are its host's."""

Origin = Literal["node", "fused", "inserted", "boundary", "unknown"]
"""What an operator is in the model: one node, several in one, none (with its neighbour), an edge of the graph."""

USABLE: tuple[TraceStatus, ...] = ("ok", "basic_fallback")
STATUSES: tuple[TraceStatus, ...] = get_args(TraceStatus)
LEVELS: tuple[TracingLevel, ...] = get_args(TracingLevel)
DETAIL_FIELDS = (
    "hardware_time_us", "memory_time_us", "dominant_path_us", "dominant_path_cycles", "dram_read_bytes",
    "dram_write_bytes", "vtcm_read_bytes", "vtcm_write_bytes", "vtcm_hit_ratio", "num_htp_ops",
)  # fmt: skip
"""What only a detailed trace knows of an operator."""


@dataclass(frozen=True)
class OperatorMetrics:
    """One operator as the EP ran it, with one sample per run in which it ran."""

    op_path: str
    """The name the EP gave it; unique together with `ep` and `stream`."""
    ep: str
    unit: Unit
    samples: tuple[float, ...]
    warmup: tuple[float, ...] = ()
    """Samples of warm-up runs, kept apart."""
    times_us: tuple[float, ...] = ()
    """Microseconds of the measured runs, where a profile has them beside cycles."""
    op_type: str | None = None
    """The EP's own type: `QLinearConv`, `Conv2d`."""
    stream: str = "0"
    op_id: str | None = None
    start_time_us: float | None = None
    """Since the begin of the first measured run; None where the EP gives no time stamps."""
    percent_of_total: float | None = None
    """Share of all operators measured in the same unit."""
    onnx_op_type: str | None = None
    onnx_nodes: tuple[str, ...] = ()
    """The nodes of the model it comes from, the one that does the work first."""
    origin: Origin = "unknown"
    neighbour: str | None = None
    absorbed: tuple[tuple[str, str], ...] = ()
    """Names and types of the nodes it does the work of besides the first."""
    reads: tuple[str, ...] = ()
    """What it reads: the first nodes of other operators, and inputs of the model as `input:NAME`."""
    weight: tuple[str, tuple[int, ...]] | None = None
    """Name and dimensions of the largest weight of its first node."""
    data_type: str | None = None
    dims: tuple[int, ...] | None = None
    detail: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.op_path.rstrip("/").rpartition("/")[2] or self.op_path

    @property
    def type(self) -> str:
        """The best known type: of the ONNX node, else the EP's, else the name."""
        return self.onnx_op_type or self.op_type or self.name

    @property
    def average(self) -> float | None:
        return mean(self.samples) if self.samples else None

    @property
    def median(self) -> float | None:
        return median(self.samples) if self.samples else None

    @property
    def p90(self) -> float | None:
        return percentile(sorted(self.samples), 0.9) if self.samples else None

    @property
    def key(self) -> str:
        """How statistics name it: its path, with the stream where several have one of that path."""
        return self.op_path if self.stream == "0" else f"{self.op_path} [{self.stream}]"

    def to_dict(self) -> dict[str, Any]:
        in_cycles = self.unit == "cycles"
        total = sum(self.samples) if self.samples else None
        times = self.times_us if in_cycles else self.samples
        average_us = mean(times) if times else None
        return {
            "name": self.name,
            "op_path": self.op_path,
            "op_id": self.op_id,
            "op_type": self.op_type,
            "ep": self.ep,
            "stream": self.stream,
            "unit": self.unit,
            "start_time_us": self.start_time_us,
            "duration_us": average_us,
            "duration_cycles": self.average if in_cycles else None,
            "percent_of_total": self.percent_of_total,
            "sample_count": len(self.samples),
            "samples_us": list(times),
            "samples_cycles": list(self.samples) if in_cycles else [],
            "warmup_samples": list(self.warmup),
            "avg_us": average_us,
            "total_us": sum(times) if times else None,
            "p90_us": percentile(sorted(times), 0.9) if times else None,
            "avg_cycles": self.average if in_cycles else None,
            "total_cycles": total if in_cycles else None,
            "p90_cycles": self.p90 if in_cycles else None,
            "onnx_op_type": self.onnx_op_type,
            "onnx_nodes": list(self.onnx_nodes),
            "origin": self.origin,
            "neighbour": self.neighbour,
            "absorbed": [{"node": node, "op_type": kind} for node, kind in self.absorbed],
            "reads": list(self.reads),
            "weight": None if self.weight is None else {"name": self.weight[0], "dims": list(self.weight[1])},
            "data_type": self.data_type,
            "dims": None if self.dims is None else list(self.dims),
            **{name: self.detail.get(name) for name in DETAIL_FIELDS},
        }


def with_shares(operators: Sequence[OperatorMetrics]) -> tuple[OperatorMetrics, ...]:
    """The operators with their share of all that are measured in the same unit, in the order given."""
    totals = {unit: sum(o.average or 0.0 for o in operators if o.unit == unit) for unit in get_args(Unit)}
    return tuple(
        replace(o, percent_of_total=100.0 * o.average / totals[o.unit])
        if o.average is not None and totals[o.unit] > 0
        else o
        for o in operators
    )


def by_share(operators: Iterable[OperatorMetrics]) -> list[OperatorMetrics]:
    """Largest share first, ties by path."""
    return sorted(operators, key=lambda o: (-(o.percent_of_total or 0.0), o.op_path))


@dataclass(frozen=True)
class TraceMetadata:
    """What was traced, on what, and how."""

    ep: str
    device: str
    tracing_level: str
    tracing_backend: str
    model: str | None = None
    simulated: bool = False
    timestamp: str | None = None
    num_samples: int = 0
    """Measured runs; warm-up runs are in `warmup_samples`."""
    warmup_samples: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "device": self.device,
            "ep": self.ep,
            "tracing_level": self.tracing_level,
            "tracing_backend": self.tracing_backend,
            "timestamp": self.timestamp,
            "num_samples": self.num_samples,
            "warmup_samples": self.warmup_samples,
            "simulated": self.simulated,
        }


def _spread(samples: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(samples)
    return {
        "count": len(ordered),
        "avg": mean(ordered) if ordered else None,
        "min": ordered[0] if ordered else None,
        "max": ordered[-1] if ordered else None,
        "p90": percentile(ordered, 0.9) if ordered else None,
        "total": sum(ordered),
    }


@dataclass(frozen=True)
class OpTraceResult:
    """A trace, or why there is none; `to_dict` has the same nested shape in every status."""

    metadata: TraceMetadata
    status: TraceStatus = "ok"
    operators: tuple[OperatorMetrics, ...] = ()
    """In the order they ran."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    fallback_reason: str | None = None

    @property
    def usable(self) -> bool:
        return self.status in USABLE

    @property
    def statistics(self) -> dict[str, Any]:
        """Spread over the runs per operator, warm-up apart; operators of one name are told apart by their id."""
        found: dict[str, Any] = {}
        for o in self.operators:
            key = o.key if o.key not in found else f"{o.key} #{o.op_id or len(found)}"
            found[key] = {"unit": o.unit, **_spread(o.samples), "warmup": _spread(o.warmup)}
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "metadata": self.metadata.to_dict(),
            "summary": dict(self.summary),
            "operators": [o.to_dict() for o in self.operators],
            "statistics": self.statistics,
            "artifacts": dict(self.artifacts),
            "status": self.status,
            "error": self.error,
            "fallback_reason": self.fallback_reason,
        }


class _Absorbed(TypedDict):
    node: str
    op_type: str


class _Weight(TypedDict):
    name: str
    dims: list[int]


class _Operator(TypedDict):
    """An operator as `to_dict` writes it; what is not named here is made from what is."""

    op_path: str
    ep: str
    unit: Unit
    samples_us: list[float]
    samples_cycles: list[float]
    warmup_samples: list[float]
    op_type: str | None
    stream: str
    op_id: str | None
    start_time_us: float | None
    percent_of_total: float | None
    onnx_op_type: str | None
    onnx_nodes: list[str]
    origin: Origin
    neighbour: str | None
    absorbed: NotRequired[list[_Absorbed]]
    reads: NotRequired[list[str]]
    weight: NotRequired[_Weight | None]
    data_type: str | None
    dims: list[int] | None


class _Trace(TypedDict):
    metadata: TraceMetadata
    status: TraceStatus
    operators: list[_Operator]
    summary: dict[str, Any]
    artifacts: dict[str, str]
    error: str | None
    fallback_reason: str | None


def _operator(value: Mapping[str, Any]) -> OperatorMetrics:
    unit: Unit = "cycles" if value["unit"] == "cycles" else "us"
    dims, weight = value["dims"], value.get("weight")
    return OperatorMetrics(
        op_path=str(value["op_path"]),
        ep=str(value["ep"]),
        unit=unit,
        samples=tuple(float(s) for s in value[f"samples_{unit}"]),
        warmup=tuple(float(s) for s in value["warmup_samples"]),
        times_us=tuple(float(s) for s in value["samples_us"]) if unit == "cycles" else (),
        op_type=value["op_type"],
        stream=str(value["stream"]),
        op_id=value["op_id"],
        start_time_us=value["start_time_us"],
        percent_of_total=value["percent_of_total"],
        onnx_op_type=value["onnx_op_type"],
        onnx_nodes=tuple(str(n) for n in value["onnx_nodes"]),
        origin=value["origin"],
        neighbour=value["neighbour"],
        # Traces of earlier versions do not have the three that follow.
        absorbed=tuple((str(a["node"]), str(a["op_type"])) for a in value.get("absorbed", ())),
        reads=tuple(str(r) for r in value.get("reads", ())),
        weight=None if weight is None else (str(weight["name"]), tuple(int(d) for d in weight["dims"])),
        data_type=value["data_type"],
        dims=None if dims is None else tuple(int(d) for d in dims),
        detail={name: value[name] for name in DETAIL_FIELDS if value[name] is not None},
    )


def _details(value: Mapping[str, Any]) -> list[Any]:
    return [operator[name] for operator in value["operators"] for name in DETAIL_FIELDS]


def op_trace_from_json(value: Any, *, source: str) -> OpTraceResult:
    """The trace in a file that `to_dict` made; an error names the file and what does not fit."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        found = value.get("schema") if isinstance(value, dict) else None
        raise DataError(
            f"{source} is not an operator trace: its schema is {found!r}, not `{SCHEMA}`",
            hint="`winml perf --op-tracing basic -o perf.json` writes one as perf_op_trace.json",
        )
    try:
        problem = misfit(value, _Trace, "trace") or misfit(_details(value), list[float | None], "detail")
        if problem:
            raise ValueError(problem)
        return OpTraceResult(
            metadata=TraceMetadata(**value["metadata"]),
            status=value["status"],
            operators=tuple(_operator(o) for o in value["operators"]),
            summary=dict(value["summary"]),
            artifacts=dict(value["artifacts"]),
            error=value["error"],
            fallback_reason=value["fallback_reason"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{source} is damaged: {type(error).__name__}: {error}") from error
