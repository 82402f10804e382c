"""Operator tracing as a user starts it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from program import DIVIDED, failed, valid, valid_value, winml
from test_environments import CACHE, installed
from test_environments import winml as winml_with_environments

import model_zoo

TRACE = ("--op-tracing", "basic", "--warmup", "2")


def trace_of(path: Path) -> dict[str, Any]:
    """The trace beside a result file, checked against its published schema."""
    return valid_value(json.loads(path.with_name(path.stem + "_op_trace.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("words", [("--device", "CPU"), ("--ep", "Cpu"), ()])
def test_every_spelling_of_the_cpu_is_traced_in_one_run(zoo: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    out = tmp_path / "a b.json"
    result = winml("perf", "-m", zoo / "encoder.onnx", *words, "--op-tracing", "BASIC", "-o", out, "--json")
    value = valid(result.stdout)
    assert [s["iterations"] for s in value["sessions"]] == [1]
    trace = trace_of(out)
    assert trace == value["op_trace"]
    assert (trace["status"], trace["metadata"]["num_samples"], trace["metadata"]["warmup_samples"]) == ("ok", 1, 10)
    assert trace["metadata"]["ep"] == "cpu"
    assert all(Path(file).is_file() for file in trace["artifacts"].values())
    assert {Path(file).parent for file in trace["artifacts"].values()} == {tmp_path / "a b_op_trace"}


def test_the_table_shows_the_largest_operators_and_nothing_is_written_without_o(zoo: Path, tmp_path: Path) -> None:
    result = winml("perf", "-m", zoo / "encoder.onnx", *TRACE, "--iterations", "4", "--top-k", "3", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "operators (onnxruntime profiler; 4 runs after 2 warm-ups)" in result.stdout
    assert "share of their µs, the first 3" in result.stdout
    assert "are outside operators" in result.stdout
    assert "next: winml autoconfig -m " in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_build_folder_is_traced_like_a_file(zoo: Path, tmp_path: Path) -> None:
    model_zoo.saved(model_zoo.conv_net(), tmp_path / "model.onnx")
    assert valid(winml("perf", "-m", tmp_path, *TRACE, "--json").stdout)["op_trace"]["status"] == "ok"


@pytest.mark.qnn
@pytest.mark.parametrize("name", ["conv", "encoder", "split"])
def test_the_npu_is_traced_as_it_stands(zoo: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "r.json"
    result = winml("perf", "-m", zoo / f"{name}.onnx", "--device", "npu", *TRACE, "--iterations", "3", "-o", out)
    assert result.returncode == 0, result.stderr
    trace = trace_of(out)
    assert (trace["status"], trace["metadata"]["num_samples"]) == ("ok", 3)
    assert len(trace["summary"]["partitions"]) == (2 if name == "split" else 1)
    for operator in trace["operators"]:
        assert operator["onnx_nodes"] or operator["neighbour"] or operator["origin"] == "boundary"
        assert operator["p90_cycles" if operator["unit"] == "cycles" else "p90_us"] is not None
    assert "share of their cycles" in result.stdout
    assert "say nothing about a device" in result.stderr


@pytest.mark.qnn
def test_detail_without_the_sdk_is_exit_0_with_a_notice(zoo: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "QNN_SDK_ROOT"}
    words = ("perf", "-m", zoo / "conv.onnx", "--ep", "QNN", "--op-tracing", "detail", "--warmup", "1", "--json")
    result = winml(*words, env=environment)
    assert result.returncode == 0, result.stderr
    trace = valid(result.stdout)["op_trace"]
    assert (trace["status"], trace["fallback_reason"]) == ("basic_fallback", "sdk_missing")
    assert "warning: the trace is basic instead of detail (sdk_missing)" in result.stderr
    wrong = winml(*words, env={**environment, "QNN_SDK_ROOT": "/nowhere"})
    assert valid(wrong.stdout)["op_trace"]["fallback_reason"] == "sdk_missing"
    assert "/nowhere" in wrong.stderr


def test_a_trace_without_data_is_exit_4_and_latencies_are_kept(tmp_path: Path) -> None:
    """A model without nodes runs well and leaves nothing to trace."""
    empty = helper.make_graph([], "g", *([helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])] for _ in (0, 1)))
    model = helper.make_model(empty, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path, out = model_zoo.saved(model, tmp_path / "m.onnx"), tmp_path / "r.json"
    result = winml("perf", "-m", path, "--target", "cpu", *TRACE, "-o", out)
    text = failed(result, 4)
    assert "no operator trace (no_data): the profile holds 3 runs and none of a node" in text
    assert "hint: run it again" in text
    assert "p50" in result.stdout
    kept = valid(out.read_text(encoding="utf-8"))
    assert (kept["ok"], kept["error"]["exit"]) == (False, 4)
    assert len(kept["measurement"]["rounds"][0]["wall_ns"]) == 1
    assert kept["op_trace"]["status"] == "no_data"
    assert not out.with_name("r_op_trace.json").exists()
    failed(winml("perf", "-m", path, "--target", "cpu", *TRACE, "--json"), 4)


def test_asking_for_what_cannot_be_is_a_wrong_request(zoo: Path, tmp_path: Path) -> None:
    model = ("-m", zoo / "conv.onnx")
    assert "a trace is taken in one session" in failed(winml("perf", *model, *TRACE, "--sessions", "3"), 2)
    assert "`--baseline` compares traces" in failed(winml("perf", *model, "--baseline", "x.json"), 2)
    assert "writes a file" in failed(winml("perf", *model, *TRACE, "--trace-format", "perfetto"), 2)
    assert "deep" in failed(winml("perf", *model, "--op-tracing", "deep"), 2)
    assert "trace not found" in failed(winml("perf", *model, *TRACE, "--baseline", tmp_path / "x.json"), 2)
    (tmp_path / "r_op_trace.json").write_text("mine")
    assert "exists" in failed(winml("perf", *model, *TRACE, "-o", tmp_path / "r.json"), 2)
    assert (tmp_path / "r_op_trace.json").read_text() == "mine"
    assert not (tmp_path / "r.json").exists()


def test_an_absent_ep_is_a_matter_of_the_machine_also_when_traced(zoo: Path) -> None:
    failed(winml("perf", "-m", zoo / "conv.onnx", "--ep", "vitisai", *TRACE), 3)


def test_a_crash_in_the_middle_of_tracing_is_told_as_without_tracing(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    result = winml("perf", "-m", zoo / "fpe.onnx", *TRACE, "-o", out, "--json")
    assert f"crashed with {DIVIDED}" in failed(result, 1)
    assert valid(result.stdout)["error"]["code"] == "worker-crashed"
    assert list(tmp_path.iterdir()) == []


def test_a_perfetto_file_has_a_track_and_every_operator(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    assert winml("perf", "-m", zoo / "conv.onnx", *TRACE, "--trace-format", "perfetto", "-o", out).returncode == 0
    value = json.loads((tmp_path / "r_op_trace.perfetto.json").read_text(encoding="utf-8"))
    spans = [e for e in value["traceEvents"] if e["ph"] == "X"]
    assert len(spans) == len(trace_of(out)["operators"])
    assert {e["args"]["name"] for e in value["traceEvents"] if e["name"] == "thread_name"} == {"CPU 0"}


@pytest.mark.not_wine(
    "GetProcessTimes of another process that computes stands still there (0.00 s in a second); "
    "Windows documents it for any process that may be queried"
)
def test_the_machine_is_sampled_beside_the_loop(zoo: Path) -> None:
    words = ("perf", "-m", zoo / "encoder.onnx", "--target", "cpu", "--sessions", "2", "--duration", "0.5", "--monitor")
    value = valid(winml(*words, "--json").stdout)
    assert value["utilization"]["samples"] >= 4
    assert value["utilization"]["sources"]["process_cpu_pct"]["mean"] > 20
    assert "during the runs  CPU" in winml(*words).stdout


def _traced(model: Path, out: Path, *words: str) -> Path:
    result = winml("perf", "-m", model, *TRACE, *words, "-o", out)
    assert result.returncode == 0, result.stderr
    return out.with_name(out.stem + "_op_trace.json")


@pytest.mark.qnn
def test_a_diff_names_the_convolutions_that_moved_to_the_cpu(zoo: Path, tmp_path: Path) -> None:
    plain = _traced(zoo / "conv.onnx", tmp_path / "plain.json", "--device", "npu")
    fused = _traced(zoo / "fused.onnx", tmp_path / "fused.json", "--device", "npu")
    result = winml("trace", "diff", plain, fused)
    assert "3 Conv + Relu became FusedConv and moved from QNN to CPU" in result.stdout
    assert "simulator" in result.stderr
    value = valid(winml("trace", "diff", plain, fused, "--json").stdout)
    moved = [c for c in value["changes"] if c["moved"]]
    assert [c["moved"] for c in moved] == [{"from": "QNN", "to": "CPU"}] * 3
    assert {o["onnx_nodes"][0] for c in moved for o in c["after"]} == {"FusedConv_0", "FusedConv_1", "FusedConv_2"}


def test_a_diff_names_the_operators_that_quantization_made_slower(tmp_path: Path) -> None:
    """fp32 against s8s8 on the CPU: pooling int8 takes about 20 times as long here."""
    fp32 = model_zoo.saved(model_zoo.depthwise_net(), tmp_path / "fp32.onnx")
    s8s8 = model_zoo.s8s8(fp32, tmp_path / "s8s8.onnx")
    words = ("--target", "cpu", "--threads", "1", "--iterations", "15")
    before = _traced(fp32, tmp_path / "before.json", *words)
    result = winml("perf", "-m", s8s8, *TRACE, *words, "--baseline", before, "--json")
    value = valid(result.stdout)["trace_diff"]
    assert any(reason.startswith("1 MaxPool is slower (") for reason in value["reasons"]), value["reasons"]
    (pool,) = [c for c in value["changes"] if any("pool/MaxPool" in o["onnx_nodes"] for o in c["after"])]
    assert pool["unit"] == "us"
    assert pool["delta"] > 0
    text = winml("perf", "-m", s8s8, *TRACE, *words, "--baseline", before).stdout
    assert "what changed" in text


@pytest.mark.parametrize("content", ["", "[]", '{"schema": "winml/perf/1"}', '{"schema": "winml/op-trace/1"}'])
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    result = winml("trace", "diff", path, path, "--json")
    assert "x.json" in failed(result, 2)
    assert valid(result.stdout)["ok"] is False


def _openvino_with_tracer() -> dict[str, Any]:
    found = installed("openvino")
    if found["tracer"] is None:  # made before tracers were installed
        result = winml_with_environments("ep", "install", "openvino", "--rebuild", "--json")
        assert result.returncode == 0, result.stderr
        found = installed("openvino")
    return found


@pytest.mark.package_index
@pytest.mark.xdist_group("environments")
@pytest.mark.timeout(900)
def test_openvino_is_traced_by_a_pass_of_its_own(zoo: Path, tmp_path: Path) -> None:
    environment = _openvino_with_tracer()
    assert environment["tracer"].startswith("openvino==20")
    out = tmp_path / "r.json"
    words = ("--target", "OpenVINO/cpu", *TRACE, "--iterations", "3", "-o", out, "--json")
    result = winml_with_environments("perf", "-m", zoo / "encoder.onnx", *words)
    value = valid(result.stdout)
    trace = value["op_trace"]
    assert (trace["status"], trace["metadata"]["num_samples"]) == ("ok", 3), result.stderr
    assert trace["metadata"]["tracing_backend"] == "openvino, outside onnxruntime"
    assert trace["summary"]["openvino_version"].startswith(environment["tracer"].removeprefix("openvino=="))
    nodes = {n for o in trace["operators"] for n in o["onnx_nodes"]}
    assert {"/layer.0/attention/Softmax", "/layer.1/output/Add"} <= nodes
    assert CACHE.exists()


@pytest.mark.npu
def test_a_real_npu_is_traced_with_the_command_of_the_docs(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    result = winml("perf", "-m", zoo / "conv.onnx", "--device", "npu", "--op-tracing", "basic", "-o", out)
    assert result.returncode == 0, result.stderr
    trace = trace_of(out)
    assert trace["status"] == "ok"
    assert trace["metadata"]["simulated"] is False
    assert any(o["unit"] == "cycles" and o["onnx_nodes"] for o in trace["operators"])
    assert Path(trace["artifacts"]["csv"]).stat().st_size > 0


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo terminal")
def test_a_terminal_shows_the_machine_while_it_runs(zoo: Path, tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "winml.modelkit", "perf", "-m", str(zoo / "encoder.onnx"), "--target", "cpu",
               "--sessions", "1", "--duration", "1", "--monitor", "--json"]  # fmt: skip
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    shown = b""
    with (
        (tmp_path / "out.json").open("w") as out,
        subprocess.Popen(command, stdout=out, stderr=theirs, env=environment) as process,
    ):
        os.close(theirs)
        while process.poll() is None or select.select([ours], [], [], 0)[0]:
            try:
                shown += os.read(ours, 4096) if select.select([ours], [], [], 0.1)[0] else b""
            except OSError:  # the other end is closed
                break
    os.close(ours)
    assert process.returncode == 0
    assert b"running \xc2\xb7 CPU" in shown
    assert valid((tmp_path / "out.json").read_text(encoding="utf-8"))["utilization"]["samples"] > 0
