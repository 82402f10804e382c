"""An operator trace: what every operator of a model cost in the runs that were observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Annotated, Any, Literal, get_args

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.statistics import mean, median, percentile
from winml.modelkit.core.values import KnownKeys, in_json, key, read, to_json

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


@dataclass(frozen=True, kw_only=True)
class OperatorDetail:
    """What only a detailed trace knows of an operator."""

    hardware_time_us: float | None = None
    memory_time_us: float | None = None
    dominant_path_us: float | None = None
    dominant_path_cycles: float | None = None
    dram_read_bytes: float | None = None
    dram_write_bytes: float | None = None
    vtcm_read_bytes: float | None = None
    vtcm_write_bytes: float | None = None
    vtcm_hit_ratio: float | None = None
    num_htp_ops: float | None = None


DETAIL_FIELDS = tuple(one.name for one in fields(OperatorDetail))


@dataclass(frozen=True, kw_only=True)
class Absorbed:
    """A node that another operator does the work of."""

    node: str
    op_type: str


@dataclass(frozen=True, kw_only=True)
class Weight:
    name: str
    dims: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class OperatorEntry:
    """An operator in a file. Microseconds are null where the EP counts cycles, unless its profile has both."""

    op_path: str
    op_id: str | None
    op_type: str | None
    ep: str
    stream: str
    unit: Unit
    start_time_us: float | None
    percent_of_total: float | None
    samples_us: tuple[float, ...]
    samples_cycles: tuple[float, ...]
    warmup_samples: tuple[float, ...]
    onnx_op_type: str | None
    onnx_nodes: tuple[str, ...]
    origin: Origin
    neighbour: str | None
    # Traces of earlier versions do not have the three that follow.
    absorbed: tuple[Absorbed, ...] = ()
    reads: tuple[str, ...] = ()
    weight: Weight | None = None
    data_type: str | None
    dims: tuple[int, ...] | None
    detail: OperatorDetail = key(inline=True)

    @property
    @in_json
    def name(self) -> str:
        """The last part of the path."""
        return self.op_path.rstrip("/").rpartition("/")[2] or self.op_path

    @property
    @in_json
    def sample_count(self) -> int:
        return len(self.samples_cycles if self.unit == "cycles" else self.samples_us)

    @property
    @in_json
    def avg_us(self) -> float | None:
        return mean(self.samples_us) if self.samples_us else None

    @property
    @in_json
    def duration_us(self) -> float | None:
        return self.avg_us

    @property
    @in_json
    def total_us(self) -> float | None:
        return sum(self.samples_us) if self.samples_us else None

    @property
    @in_json
    def p90_us(self) -> float | None:
        return percentile(sorted(self.samples_us), 0.9) if self.samples_us else None

    @property
    @in_json
    def avg_cycles(self) -> float | None:
        return mean(self.samples_cycles) if self.samples_cycles else None

    @property
    @in_json
    def duration_cycles(self) -> float | None:
        return self.avg_cycles

    @property
    @in_json
    def total_cycles(self) -> float | None:
        return sum(self.samples_cycles) if self.samples_cycles else None

    @property
    @in_json
    def p90_cycles(self) -> float | None:
        return percentile(sorted(self.samples_cycles), 0.9) if self.samples_cycles else None


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
    """Names and types of the nodes it does the work of, without the first."""
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

    def to_value(self) -> OperatorEntry:
        in_cycles = self.unit == "cycles"
        return OperatorEntry(
            op_path=self.op_path,
            op_id=self.op_id,
            op_type=self.op_type,
            ep=self.ep,
            stream=self.stream,
            unit=self.unit,
            start_time_us=self.start_time_us,
            percent_of_total=self.percent_of_total,
            samples_us=self.times_us if in_cycles else self.samples,
            samples_cycles=self.samples if in_cycles else (),
            warmup_samples=self.warmup,
            onnx_op_type=self.onnx_op_type,
            onnx_nodes=self.onnx_nodes,
            origin=self.origin,
            neighbour=self.neighbour,
            absorbed=tuple(Absorbed(node=node, op_type=kind) for node, kind in self.absorbed),
            reads=self.reads,
            weight=None if self.weight is None else Weight(name=self.weight[0], dims=self.weight[1]),
            data_type=self.data_type,
            dims=self.dims,
            detail=OperatorDetail(**{name: self.detail.get(name) for name in DETAIL_FIELDS}),
        )

    @classmethod
    def from_value(cls, value: OperatorEntry) -> OperatorMetrics:
        in_cycles = value.unit == "cycles"
        return cls(
            op_path=value.op_path,
            ep=value.ep,
            unit=value.unit,
            samples=value.samples_cycles if in_cycles else value.samples_us,
            warmup=value.warmup_samples,
            times_us=value.samples_us if in_cycles else (),
            op_type=value.op_type,
            stream=value.stream,
            op_id=value.op_id,
            start_time_us=value.start_time_us,
            percent_of_total=value.percent_of_total,
            onnx_op_type=value.onnx_op_type,
            onnx_nodes=value.onnx_nodes,
            origin=value.origin,
            neighbour=value.neighbour,
            absorbed=tuple((one.node, one.op_type) for one in value.absorbed),
            reads=value.reads,
            weight=None if value.weight is None else (value.weight.name, value.weight.dims),
            data_type=value.data_type,
            dims=value.dims,
            detail={name: found for name, found in vars(value.detail).items() if found is not None},
        )

    def to_dict(self) -> dict[str, Any]:
        """The operator as files hold it."""
        value: dict[str, Any] = to_json(self)
        return value


def with_shares(operators: Sequence[OperatorMetrics]) -> tuple[OperatorMetrics, ...]:
    """The operators with their share of all that are measured in the same unit, in the order given."""
    totals = {unit: sum(o.average or 0.0 for o in operators if o.unit == unit) for unit in get_args(Unit)}
    return tuple(
        replace(o, percent_of_total=100.0 * o.average / totals[o.unit])
        if o.average is not None and totals[o.unit] > 0
        else o
        for o in operators
    )


@dataclass(frozen=True)
class TraceMetadata:
    """What was traced, on what, and how."""

    ep: str
    device: str
    tracing_level: TracingLevel
    tracing_backend: str
    model: str | None = None
    simulated: bool = False
    timestamp: str | None = None
    num_samples: int = 0
    """Measured runs; warm-up runs are in `warmup_samples`."""
    warmup_samples: int = 0


@dataclass(frozen=True, kw_only=True)
class SampleStatistics:
    """Null where there is no sample."""

    count: int
    avg: float | None
    min: float | None
    max: float | None
    p90: float | None
    total: float


@dataclass(frozen=True, kw_only=True)
class OperatorStatistics:
    unit: Unit
    measured: SampleStatistics = key(inline=True)
    warmup: SampleStatistics


@dataclass(frozen=True, kw_only=True)
class GoneNode:
    """A node of the model that no operator has the name of."""

    node: str
    op_type: str
    into: str | None
    how: Literal["fused", "folded", "gone"]


@dataclass(frozen=True, kw_only=True)
class TraceSummary:
    """What the summary of a trace may hold; every EP reports what it knows."""

    unit: Unit | None
    end_to_end_us: float | None
    unexplained_us: float | None
    unexplained_pct: float | None
    operators_us: float | None
    operators_cycles: float | None
    accelerator_cycles: float | None
    unexplained_cycles: float | None
    model_run_us: float | None
    accel_execute_us: float | None
    qnn_execute_us: float | None
    cpu_operators_us: float | None
    session_us: float | None
    hvx_threads: int | None
    partitions: Mapping[str, float | None]
    absorbed_nodes: tuple[GoneNode, ...]
    mapped_by: Literal["graph", "names"]
    notes: tuple[str, ...]


def _statistics(samples: Sequence[float]) -> SampleStatistics:
    ordered = sorted(samples)
    return SampleStatistics(
        count=len(ordered),
        avg=mean(ordered) if ordered else None,
        min=ordered[0] if ordered else None,
        max=ordered[-1] if ordered else None,
        p90=percentile(ordered, 0.9) if ordered else None,
        total=sum(ordered),
    )


@dataclass(frozen=True, kw_only=True)
class OpTraceFile:
    """A trace, or why there is none: the same shape in every status."""

    schema: Literal["winml/op-trace/1"] = "winml/op-trace/1"
    metadata: TraceMetadata
    summary: Annotated[Mapping[str, Any], KnownKeys(TraceSummary)]
    operators: tuple[OperatorMetrics, ...]
    """In the order they ran."""
    artifacts: Mapping[str, str]
    status: TraceStatus
    error: str | None
    fallback_reason: str | None

    @property
    @in_json
    def statistics(self) -> Mapping[str, OperatorStatistics]:
        """Spread over the runs per operator, warm-up apart; operators of one name are distinguished by their id."""
        found: dict[str, OperatorStatistics] = {}
        for o in self.operators:
            name = o.key if o.key not in found else f"{o.key} #{o.op_id or len(found)}"
            found[name] = OperatorStatistics(unit=o.unit, measured=_statistics(o.samples), warmup=_statistics(o.warmup))
        return found


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
        """Spread over the runs per operator, as files hold it."""
        value: dict[str, Any] = to_json(self.to_value().statistics)
        return value

    def to_value(self) -> OpTraceFile:
        return OpTraceFile(
            metadata=self.metadata,
            summary=self.summary,
            operators=self.operators,
            artifacts=self.artifacts,
            status=self.status,
            error=self.error,
            fallback_reason=self.fallback_reason,
        )

    @classmethod
    def from_value(cls, value: OpTraceFile) -> OpTraceResult:
        return cls(
            metadata=value.metadata,
            status=value.status,
            operators=value.operators,
            summary=value.summary,
            artifacts=value.artifacts,
            error=value.error,
            fallback_reason=value.fallback_reason,
        )

    def to_dict(self) -> dict[str, Any]:
        """The trace as files hold it."""
        value: dict[str, Any] = to_json(self)
        return value


def op_trace_from_json(value: Any, *, source: str) -> OpTraceResult:
    """The trace in a file that `to_dict` made; an error names the file and what does not fit."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        found = value.get("schema") if isinstance(value, dict) else None
        raise DataError(
            f"{source} is not an operator trace: its schema is {found!r}, not `{SCHEMA}`",
            hint="`winml perf --op-tracing basic -o perf.json` writes one as perf_op_trace.json",
        )
    try:
        return read(OpTraceResult, value, "trace", strict=False, error=DataError)
    except DataError as error:
        raise DataError(f"{source} is damaged: {error.message}") from error
