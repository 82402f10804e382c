"""Values of measurements for tests: whole ones, of which a test changes what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from winml.modelkit.core.environment import Environment, EPVersion, Machine, Power, RuntimeVersion
from winml.modelkit.core.latency import CPUTime, Interval, Latency
from winml.modelkit.core.measurement import (
    Arm,
    CompareProtocol,
    Measurement,
    PairProtocol,
    Round,
    SessionSection,
    SessionsProtocol,
)
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target
from winml.modelkit.measuring.perf import PerfResult
from winml.modelkit.measuring.summary import SessionSummary, Throughput
from winml.modelkit.session.report import InputFacts, SessionReport, TensorShape

CPU = Target("cpu", "cpu")
ARM = Arm(artifact="model.onnx", target=CPU, session=SessionSection())
MACHINE = Machine(system="Linux", release="6.1", architecture="x86_64", cpu=None, cores=4)
ENVIRONMENT = Environment(
    machine=MACHINE,
    winml="0.5.0",
    python="3.12.0",
    numpy="2.3.0",
    runtime=RuntimeVersion(name="onnxruntime", version="1.31.1"),
    ep=EPVersion(name="cpu", version="1.31.1"),
    power=Power(governor=None),
    priority=0,
    load=0.1,
    pressure_pct=None,
)
SESSIONS = SessionsProtocol(iterations=100, duration_s=None, warmup=10, sessions=3, cool_down_s=0.0, timeout_s=None)
PAIR = PairProtocol(protocol=CompareProtocol("cpu"), mode="together", metric="cpu", seed=0)
PLACEMENT = Placement("CPUExecutionProvider", {"CPUExecutionProvider": 48}, {}, {"Conv": 48})
INPUTS = InputFacts(
    source="synthetic", seed=0, tensors={"x": TensorShape(dtype="float32", shape=(1, 3, 224, 224))}, sizes={}
)


def environment(*, cores: int = 4, **changes: Any) -> Environment:
    return replace(ENVIRONMENT, machine=replace(MACHINE, cores=cores), **changes)


def a_round(wall_ns: tuple[int, ...], cpu_ns: tuple[int, ...] | None = None, **changes: Any) -> Round:
    """A round of the first arm."""
    whole: dict[str, Any] = {"arm": 0, "round": 0, "process": 1, "order": 0, "load_before": 0.1, "load_after": 0.1}
    return Round(wall_ns=wall_ns, cpu_ns=wall_ns if cpu_ns is None else cpu_ns, **{**whole, **changes})


def measurement(*rounds: Round, **changes: Any) -> Measurement:
    whole: dict[str, Any] = {"arms": (ARM,), "protocol": SESSIONS, "environment": ENVIRONMENT}
    return Measurement(rounds=rounds, **{**whole, **changes})


def session_report(*wall_ns: int, **changes: Any) -> SessionReport:
    whole: dict[str, Any] = {
        "cpu_ns": tuple(ns // 2 for ns in wall_ns),
        "stopped": False,
        "open_ns": 12_000_000,
        "first_run_ns": 30_000_000,
        "load_before": 0.5,
        "load_after": 0.75,
        "weights_at_risk": 0,
        "placement": PLACEMENT,
        "provider_options": {},
        "added_options": {},
        "fixed_dims": {},
        "io_binding": True,
        "inputs": INPUTS,
        "memory": None,
        "environment": ENVIRONMENT,
        "op_trace": None,
    }
    return SessionReport(wall_ns=wall_ns, **{**whole, **changes})


def latency(
    p50: float, p90: float, p99: float, most: float, interval: tuple[float, float] | None = None, reason: str = "few"
) -> Latency:
    return Latency(
        mean=p50,
        min=p50,
        max=most,
        p50=p50,
        p90=p90,
        p95=p90,
        p99=p99,
        std=None,
        interval=None if interval is None else Interval(low=interval[0], high=interval[1], level=0.95),
        interval_reason=reason if interval is None else None,
    )


def cpu_time(p50: float, **changes: Any) -> CPUTime:
    whole = dict.fromkeys(("mean", "min", "max", "p50", "p90", "p95", "p99"), p50)
    more: dict[str, Any] = {"std": None, "interval": None, "interval_reason": "few", "per": "run", **changes}
    return CPUTime(**whole, **more)


def session_summary(iterations: int, open_ms: float) -> SessionSummary:
    return SessionSummary(
        process=1,
        iterations=iterations,
        p50_ms=8.0,
        cpu_p50_ms=16.0,
        open_ms=open_ms,
        first_run_ms=None,
        load_before=None,
        load_after=None,
    )


def perf_result(**changes: Any) -> PerfResult:
    """A result on a real device."""
    whole: Mapping[str, Any] = {
        "model": "models/resnet18.onnx",
        "target": CPU,
        "built_for": None,
        "latency_ms": latency(8.414, 9.021, 11.43, 132.2, (8.331, 8.519)),
        "cpu_ms": cpu_time(16.52),
        "throughput": Throughput(runs_per_s=118.34, batch=1, samples_per_s=118.34),
        "sessions": tuple(session_summary(200, open_ms) for open_ms in (45.62, 41.08, 120.4)),
        "placement": PLACEMENT,
        "inputs": INPUTS,
        "io_binding": True,
        "provider_options": {},
        "fixed_dims": {},
        "memory": None,
        "environment": ENVIRONMENT,
        "measurement": measurement(a_round((8_000_000,))),
        "utilization": None,
        "op_trace": None,
        "trace_diff": None,
        "warnings": (),
    }
    return PerfResult(**{**whole, **changes})
