"""The whole text of `winml perf`."""

from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.render.perf import perf_text


def result(**changed: Any) -> dict[str, Any]:
    """A result as `app.perf` makes it, as far as the text shows it."""
    return {
        "model": "models/resnet18.onnx",
        "target": "cpu",
        "simulated": False,
        "latency_ms": {
            "p50": 8.414,
            "p90": 9.021,
            "p99": 11.43,
            "max": 132.2,
            "interval": {"low": 8.331, "high": 8.519, "level": 0.95},
            "interval_reason": None,
        },
        "cpu_ms": {"p50": 16.52, "per": "run"},
        "throughput": {"runs_per_s": 118.34},
        "sessions": [
            {"iterations": 200, "open_ms": 45.62},
            {"iterations": 200, "open_ms": 41.08},
            {"iterations": 200, "open_ms": 120.4},
        ],
        "placement": {"nodes": {"CPUExecutionProvider": 48}, "partitions": {}},
        "inputs": {
            "source": "synthetic",
            "seed": 0,
            "tensors": {"x": {"dtype": "float32", "shape": [1, 3, 224, 224]}},
            "sizes": {},
        },
        "memory": None,
        "utilization": None,
        "op_trace": None,
        "trace_diff": None,
        "environment": {"runtime": {"name": "onnxruntime", "version": "1.31.1"}},
        **changed,
    }


def line(text: str, start: str) -> str:
    [found] = [entry for entry in text.split("\n") if entry.startswith(start)]
    return found


def test_a_result_on_a_real_device() -> None:
    assert perf_text(result()) == (
        "resnet18.onnx on cpu (onnxruntime 1.31.1) · 3 sessions x 200 iterations\n"
        "  p50  8.41 ms  (8.33 ms … 8.52 ms, 95 %)\n"
        "  p90  9.02 ms     p99  11.4 ms     max  132 ms\n"
        "  CPU time per run  16.5 ms     runs per second  118.3\n"
        "  opening the session  41.1 ms … 120 ms\n"
        "  nodes  48 on CPU\n"
        "  inputs  x float32[1, 3, 224, 224] (synthetic, seed 0)"
    )


def test_a_result_on_a_simulator_says_so_instead_of_naming_a_latency() -> None:
    simulated = result(
        target="qnn/npu",
        simulated=True,
        sessions=[{"iterations": 10, "open_ms": 512.3}],
        latency_ms={
            "p50": 321.6,
            "p90": 330.2,
            "p99": 333.3,
            "max": 334.1,
            "interval": None,
            "interval_reason": "an interval needs at least 3 sessions but there are 1",
        },
        cpu_ms={"p50": 322.0, "per": "run"},
        throughput={"runs_per_s": 3.11},
        placement={
            "nodes": {"QNNExecutionProvider": 46, "CPUExecutionProvider": 2},
            "partitions": {"QNNExecutionProvider": 1},
        },
    )
    assert perf_text(simulated) == (
        "resnet18.onnx on qnn/npu (simulated) (onnxruntime 1.31.1) · 1 session x 10 iterations\n"
        "  simulator time  322 ms  (no interval: an interval needs at least 3 sessions but there are 1)\n"
        "  p90  330 ms     p99  333 ms     max  334 ms\n"
        "  CPU time per run  322 ms     runs per second  3.1\n"
        "  opening the session  512 ms … 512 ms\n"
        "  nodes  46 on QNN in 1 partition, 2 on CPU\n"
        "  inputs  x float32[1, 3, 224, 224] (synthetic, seed 0)"
    )


def test_sessions_of_different_length_are_told_as_a_range() -> None:
    sessions = [{"iterations": n, "open_ms": 40.0} for n in (180, 200, 190)]
    assert perf_text(result(sessions=sessions)).split("\n")[0].endswith("· 3 sessions x 180 to 200 iterations")


def test_two_sessions_are_more_than_one() -> None:
    sessions = [{"iterations": 5, "open_ms": 40.0}] * 2
    assert perf_text(result(sessions=sessions)).split("\n")[0].endswith("· 2 sessions x 5 iterations")


def test_several_partitions_are_counted() -> None:
    placement = {"nodes": {"QNNExecutionProvider": 40}, "partitions": {"QNNExecutionProvider": 2}}
    assert line(perf_text(result(placement=placement)), "  nodes") == "  nodes  40 on QNN in 2 partitions"


def test_a_model_without_nodes_says_none() -> None:
    assert line(perf_text(result(placement={"nodes": {}, "partitions": {}})), "  nodes") == "  nodes  none"


def test_inputs_from_a_file_have_no_seed() -> None:
    tensors = {"ids": {"dtype": "int64", "shape": [1, 128]}, "scale": {"dtype": "float32", "shape": []}}
    text = perf_text(result(inputs={"source": "npz", "seed": None, "tensors": tensors, "sizes": {}}))
    assert line(text, "  inputs") == "  inputs  ids int64[1, 128], scale float32[] (npz)"


def test_memory_is_shown_when_it_was_asked_for_without_what_is_unknown() -> None:
    memory = {"before_open": 52 * 2**20, "after_open": None, "after_runs": 3 * 2**29, "peak": 2 * 2**30}
    text = perf_text(result(memory=memory))
    assert line(text, "  memory") == "  memory  before open 52.0 MiB, after runs 1.5 GiB, peak 2.0 GiB"


@pytest.mark.parametrize("shown", ["\x1b", "{", "None"])
def test_the_text_has_no_colours_and_nothing_that_only_a_program_reads(shown: str) -> None:
    assert shown not in perf_text(result(memory={"peak": 2**30}))


def test_what_the_machine_did_is_one_line() -> None:
    sources = {"cpu_pct": 91.6, "load": 1.26, "frequency_mhz": 2445.4, "process_memory_bytes": 2.0**30}
    found = {"samples": 12, "sources": {k: {"mean": v, "min": v, "max": v} for k, v in sources.items()}}
    shown = line(perf_text(result(utilization=found)), "  while it ran")
    assert shown == "  while it ran  CPU 92 %, load 1.3, clock 2445 MHz (12 samples)"
