"""Times of a command that is run again, where the CPU clock is fine and where it is coarse."""

from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.support.review import rerun

STEP_NS = 15_625_000


def _result(cpu_ns: list[int]) -> dict[str, Any]:
    one = {"arm": 0, "round": 0, "order": 0, "process": 0, "wall_ns": [1_000_000] * len(cpu_ns), "cpu_ns": cpu_ns}
    rounds = [{**one, "load_before": None, "load_after": None, "started": 0.0}]
    return {
        "ok": True,
        "target": "cpu",
        "simulated": False,
        "inputs": [],
        "placement": {"nodes": {"CPUExecutionProvider": 3}},
        "measurement": {"rounds": rounds, "protocol": {}, "environment": {}},
    }


@pytest.mark.parametrize(
    ("claimed", "again", "differs"),
    [
        ([1_000_000] * 20, [1_500_000] * 20, False),
        ([1_000_000] * 20, [3_000_000] * 20, True),
        ([0] * 20, [0] * 19 + [STEP_NS], False),  # one step more or less says nothing
        ([0] * 19 + [STEP_NS], [0] * 20, False),
        ([0] * 19 + [STEP_NS], [0] * 10 + [STEP_NS] * 10, True),
    ],
)
def test_a_run_may_take_twice_as_long_and_a_coarse_clock_a_step_more(
    claimed: list[int], again: list[int], differs: bool
) -> None:
    found = [line for line in rerun._perf(_result(claimed), _result(again), True) if "CPU time" in line]
    assert bool(found) is differs
