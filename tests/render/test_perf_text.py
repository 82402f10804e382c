"""The whole text of `winml perf`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measured import PLACEMENT, cpu_time, latency, session_summary
from tests.measured import perf_result as result

from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target
from winml.modelkit.measuring.summary import Throughput
from winml.modelkit.render.perf import perf_text
from winml.modelkit.session.report import InputFacts, Memory, TensorShape, Usage, Utilization


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
        target=Target("qnn", "npu", simulated=True),
        sessions=(session_summary(10, 512.3),),
        latency_ms=latency(321.6, 330.2, 333.3, 334.1, reason="an interval needs at least 3 sessions but there are 1"),
        cpu_ms=cpu_time(322.0),
        throughput=Throughput(runs_per_s=3.11, batch=None, samples_per_s=None),
        placement=Placement(
            "QNNExecutionProvider",
            {"QNNExecutionProvider": 46, "CPUExecutionProvider": 2},
            {"QNNExecutionProvider": 1},
            {"Cast": 2},
        ),
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
    sessions = tuple(session_summary(n, 40.0) for n in (180, 200, 190))
    assert perf_text(result(sessions=sessions)).split("\n")[0].endswith("· 3 sessions x 180 to 200 iterations")


def test_two_sessions_are_more_than_one() -> None:
    sessions = (session_summary(5, 40.0),) * 2
    assert perf_text(result(sessions=sessions)).split("\n")[0].endswith("· 2 sessions x 5 iterations")


def test_several_partitions_are_counted() -> None:
    placement = replace(PLACEMENT, nodes={"QNNExecutionProvider": 40}, partitions={"QNNExecutionProvider": 2})
    assert line(perf_text(result(placement=placement)), "  nodes") == "  nodes  40 on QNN in 2 partitions"


def test_a_model_without_nodes_says_none() -> None:
    assert line(perf_text(result(placement=replace(PLACEMENT, nodes={}))), "  nodes") == "  nodes  none"


def test_inputs_from_a_file_have_no_seed() -> None:
    tensors = {"ids": TensorShape(dtype="int64", shape=(1, 128)), "scale": TensorShape(dtype="float32", shape=())}
    text = perf_text(result(inputs=InputFacts(source="npz", seed=None, tensors=tensors, sizes={})))
    assert line(text, "  inputs") == "  inputs  ids int64[1, 128], scale float32[] (npz)"


def test_memory_is_shown_when_it_was_asked_for_without_what_is_unknown() -> None:
    memory = Memory(before_open=52 * 2**20, after_open=None, after_runs=3 * 2**29, peak=2 * 2**30)
    text = perf_text(result(memory=memory))
    assert line(text, "  memory") == "  memory  before open 52.0 MiB, after runs 1.5 GiB, peak 2.0 GiB"


@pytest.mark.parametrize("shown", ["\x1b", "{", "None"])
def test_the_text_has_no_colours_and_nothing_that_only_a_program_reads(shown: str) -> None:
    assert shown not in perf_text(result(memory=Memory(before_open=None, after_open=None, after_runs=None, peak=2**30)))


def test_what_the_machine_did_is_one_line() -> None:
    sources = {"cpu_pct": 91.6, "load": 1.26, "frequency_mhz": 2445.4, "process_memory_bytes": 2.0**30}
    usage = {name: Usage(mean=value, min=value, max=value) for name, value in sources.items()}
    found = Utilization(interval_s=0.1, samples=12, sources=usage, missing={})
    shown = line(perf_text(result(utilization=found)), "  during the runs")
    assert shown == "  during the runs  CPU 92 %, load 1.3, clock 2445 MHz (12 samples)"
