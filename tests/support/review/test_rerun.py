"""Times of a command that is run again, where the CPU clock is fine and where it is coarse."""

from __future__ import annotations

import pytest

from winml.modelkit.core.measurement import SessionsProtocol
from winml.modelkit.measuring import summary
from winml.modelkit.support.review.rerun import contradictions
from winml.modelkit.support.review.results import (
    MeasuringEnvironment,
    PerfEvidence,
    PerfMeasurement,
    Placement,
    Samples,
)

STEP_NS = 15_625_000


def _result(cpu_ns: tuple[int, ...]) -> PerfEvidence:
    wall_ns = (1_000_000,) * len(cpu_ns)
    taken = Samples(
        arm=0, round=0, order=0, process=0, wall_ns=wall_ns, cpu_ns=cpu_ns, load_before=None, load_after=None
    )
    protocol = SessionsProtocol(
        iterations=len(cpu_ns), duration_s=None, warmup=0, sessions=1, cool_down_s=0.0, timeout_s=None
    )
    return PerfEvidence(
        schema="winml/perf/1",
        target="cpu",
        simulated=False,
        inputs=[],
        latency_ms=summary.latency((taken,)),
        cpu_ms=summary.cpu_time((taken,)),
        placement=Placement(nodes={"CPUExecutionProvider": 3}),
        measurement=PerfMeasurement(rounds=(taken,), protocol=protocol),
        environment=MeasuringEnvironment(machine={}),
    )


@pytest.mark.parametrize(
    ("claimed", "again", "differs"),
    [
        ((1_000_000,) * 20, (1_500_000,) * 20, False),
        ((1_000_000,) * 20, (3_000_000,) * 20, True),
        ((0,) * 20, (0,) * 19 + (STEP_NS,), False),  # one step more or less says nothing
        ((0,) * 19 + (STEP_NS,), (0,) * 20, False),
        ((0,) * 19 + (STEP_NS,), (0,) * 10 + (STEP_NS,) * 10, True),
    ],
)
def test_a_run_may_take_twice_as_long_and_a_coarse_clock_a_step_more(
    claimed: tuple[int, ...], again: tuple[int, ...], differs: bool
) -> None:
    lines = contradictions(_result(claimed), _result(again), same_machine=True)
    found = [line for line in lines if "CPU time" in line]
    assert bool(found) is differs
