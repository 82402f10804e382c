"""QNNMonitor on the real EP and its simulator, and on what the EP may leave behind."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program import valid_value

import model_zoo
from stand_in_program import make_program
from winml.modelkit.core.op_trace import OpTraceResult, TracingLevel, op_trace_from_json
from winml.modelkit.core.target import Target
from winml.modelkit.render.op_trace import op_trace_text
from winml.modelkit.session.monitor import qnn_monitor
from winml.modelkit.session.monitor.ep_monitor import Observation
from winml.modelkit.session.monitor.qnn import viewer
from winml.modelkit.session.monitor.qnn.qhas_parser import QhasError, read_qhas
from winml.modelkit.session.monitor.qnn.schematic import find_schematics
from winml.modelkit.session.monitor.qnn_monitor import QNNMonitor
from winml.modelkit.session.session import WinMLSession

NPU = Target("qnn", "npu", simulated=True)
IMAGE = {"x": np.random.default_rng(0).random((1, 3, 16, 16), dtype=np.float32)}
TOKENS = {"input_ids": np.arange(16, dtype=np.int64).reshape(1, 16)}
HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier\n"
RUN = (
    "0,NODE,50,CYCLES,BACKEND,SUB-EVENT,first/Conv_token_1:OpId_20 (cycles)\n"
    "0,NODE,30,CYCLES,BACKEND,SUB-EVENT,first/Relu:OpId_21 (cycles)\n"
    "0,EXECUTE,12,US,BACKEND,ROOT,QNN (execute) time\n"
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The EP writes schematics into the working directory."""
    monkeypatch.chdir(tmp_path_factory.mktemp("working"))


def traced(
    model: Path, feed: dict[str, Any], folder: Path, *, level: TracingLevel = "basic", runs: int = 5, warmup: int = 2
) -> OpTraceResult:
    monitor = QNNMonitor(level, folder)
    session = WinMLSession(model, target=NPU, lazy=True)
    with session.perf(warmup=warmup, monitor=monitor):
        for _ in range(warmup + runs):
            session.run(feed)
    assert monitor.result is not None
    return monitor.result


def left_behind(folder: Path, content: bytes | None, *, level: TracingLevel = "basic") -> OpTraceResult:
    """The result when the EP leaves a file with this content, or none."""
    monitor = QNNMonitor(level, folder)
    with monitor:
        if content is not None:
            (folder / "qnn_profile.csv").write_bytes(content)
        monitor.observe(Observation(None, NPU, warmup_runs=0, wall_ns=(20_000,)))
    assert monitor.result is not None
    return monitor.result


@pytest.mark.qnn
@pytest.mark.parametrize(("name", "partitions"), [("conv", 1), ("w8a8", 1), ("encoder", 1), ("split", 2)])
def test_traces_real_models_and_maps_every_operator(
    zoo: Path, conv_w8a8: Path, tmp_path: Path, name: str, partitions: int
) -> None:
    model = conv_w8a8 if name == "w8a8" else zoo / f"{name}.onnx"
    result = traced(model, TOKENS if name == "encoder" else IMAGE, tmp_path)
    assert (result.status, result.error) == ("ok", None)
    assert len(result.summary["partitions"]) == partitions
    assert (result.metadata.num_samples, result.metadata.warmup_samples) == (5, 2)
    on_npu = [o for o in result.operators if o.ep == qnn_monitor.EP]
    for operator in on_npu:
        assert (operator.unit, len(operator.samples), len(operator.warmup)) == ("cycles", 5, 2)
        assert operator.p90 is not None
        assert min(operator.samples) <= operator.p90 <= max(operator.samples)
        if operator.origin == "boundary":
            assert operator.op_path in ("Input", "Output")
        else:
            assert operator.onnx_nodes or (operator.origin == "inserted" and operator.neighbour), operator
        assert "_token_" not in "".join(operator.onnx_nodes)
    assert sum(o.origin == "boundary" for o in on_npu) == 2 * partitions
    assert {o.stream for o in on_npu} == {str(i) for i in range(partitions)}
    assert sum(o.percent_of_total or 0 for o in on_npu) == pytest.approx(100)


DEVICE = (
    "0,BACKEND,14253,US,BACKEND,ROOT,RPC (finalize) time\n"
    "0,FINALIZE,561285,US,BACKEND,ROOT,QNN (finalize) time\n"
    "0,UNKNOWN,451,US,BACKEND,SUB-EVENT,Graph Preparation Initializing\n"
)
DEVICE_RUN = (
    "0,BACKEND,4,COUNT,BACKEND,ROOT,Number of HVX threads used\n"
    "0,BACKEND,7784,US,BACKEND,ROOT,RPC (execute) time\n"
    "0,BACKEND,665,US,BACKEND,ROOT,Time for initial VTCM acquire\n"
    "0,BACKEND,1000,CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles)\n"
    "0,NODE,10,CYCLES,BACKEND,SUB-EVENT,Input OpId_2 (cycles)\n"
    "0,NODE,70,CYCLES,BACKEND,SUB-EVENT,x_QuantizeLinear_3:OpId_16 (cycles)\n"
    "0,NODE,240,CYCLES,BACKEND,SUB-EVENT,Transpose_token_328_2:OpId_18 (cycles)\n"
    "0,NODE,500,CYCLES,BACKEND,SUB-EVENT,/stem/Conv_token_1_2:OpId_24 (cycles)\n"
    "0,NODE,90,CYCLES,BACKEND,SUB-EVENT,/body/Conv_token_13_2:OpId_30 (cycles)\n"
    "0,NODE,60,CYCLES,BACKEND,SUB-EVENT,/body/Add_3:OpId_37 (cycles)\n"
    "0,NODE,20,CYCLES,BACKEND,SUB-EVENT,/body/Add_1_3:OpId_45 (cycles)\n"
    "0,NODE,10,CYCLES,BACKEND,SUB-EVENT,Output OpId_3 (cycles)\n"
    "0,BACKEND,1359,US,BACKEND,ROOT,Accelerator (execute) time\n"
    "0,BACKEND,1132,US,BACKEND,ROOT,Accelerator (execute excluding wait) time\n"
    "0,UNKNOWN,UNKNOWN,OBJECT,BACKEND,ROOT,Unknown event type\n"
    "0,EXECUTE,9308,US,BACKEND,ROOT,QNN (execute) time\n"
)
"""Written by hand after the form of a profile recorded on a device (a ResNet-50 of 79 operators): a number at the end
of every name, with the runtime's token or without, and a row whose value is a word in every run."""


def _device_model(folder: Path) -> Path:
    nodes = ["x_QuantizeLinear", "/stem/Conv", "/body/Conv", "/body/Add", "/body/Add_1"]
    model = model_zoo.text_model(
        """g (float[1,4,8,8] x, float[4,4,1,1] w) => (float[1,4,8,8] y)
        { q = Identity(x)  a = Conv(q, w)  b = Conv(a, w)  c = Add(b, a)  y = Add(c, a) }"""
    )
    for node, name in zip(model.graph.node, nodes, strict=True):
        node.name = name
    return model_zoo.saved(model, folder / "m.onnx")


def _device_trace(folder: Path, content: str) -> OpTraceResult:
    monitor = QNNMonitor("basic", folder / "trace")
    with monitor:
        (folder / "trace" / "qnn_profile.csv").write_text(HEADER + DEVICE + content)
        target = Target("qnn", "npu")
        monitor.observe(Observation(str(_device_model(folder)), target, warmup_runs=0, wall_ns=(9_000_000,) * 2))
    assert monitor.result is not None
    return monitor.result


def test_every_row_of_a_devices_profile_is_mapped_and_none_is_called_unreadable(tmp_path: Path) -> None:
    result = _device_trace(tmp_path, DEVICE_RUN * 2)
    assert (result.status, result.summary["hvx_threads"], result.metadata.num_samples) == ("ok", 4, 2)
    assert not [note for note in result.summary["notes"] if "could not be read" in note]
    assert {o.op_path: o.onnx_nodes for o in result.operators if o.origin == "node"} == {
        "x_QuantizeLinear_3": ("x_QuantizeLinear",),
        "/stem/Conv_token_1_2": ("/stem/Conv",),
        "/body/Conv_token_13_2": ("/body/Conv",),
        "/body/Add_3": ("/body/Add",),
        "/body/Add_1_3": ("/body/Add_1",),
    }
    assert [(o.op_path, o.neighbour) for o in result.operators if o.origin == "inserted"] == [
        ("Transpose_token_328_2", "/stem/Conv"),
    ]  # fmt: skip
    assert not [a for a in result.summary["absorbed_nodes"] if a["how"] == "gone"]


def test_a_number_that_belongs_to_a_name_stays_where_not_all_names_have_one_more(tmp_path: Path) -> None:
    rows = [row for row in DEVICE_RUN.splitlines(keepends=True) if "Add_3" not in row]
    plain = "".join(rows).replace("_token_1_2", "_token_1").replace("Add_1_3", "Add_1").replace("Linear_3", "Linear")
    result = _device_trace(tmp_path, plain)
    assert [o.onnx_nodes for o in result.operators if o.op_path.endswith("Add_1")] == [("/body/Add_1",)]


def test_microseconds_of_operators_are_shown_where_the_profile_has_them(tmp_path: Path) -> None:
    """Beside their cycles, of the same operator, and never computed from them."""
    timed = DEVICE_RUN.replace(
        "0,NODE,90,CYCLES", "0,NODE,31,US,BACKEND,SUB-EVENT,/stem/Conv_token_1_2:OpId_24 (us)\n0,NODE,90,CYCLES"
    )
    result = _device_trace(tmp_path, timed + timed.replace("NODE,31,US", "NODE,33.5,US"))
    value = valid_value(result.to_dict())
    rows = {o["op_path"]: o for o in value["operators"]}
    conv, other = rows["/stem/Conv_token_1_2"], rows["/body/Conv_token_13_2"]
    assert len(rows) == len(value["operators"]) == 8
    assert (conv["unit"], conv["avg_cycles"], conv["samples_us"], conv["avg_us"]) == ("cycles", 500, [31, 33.5], 32.25)
    assert (other["samples_us"], other["avg_us"]) == ([], None)
    assert op_trace_from_json(value, source="it").to_dict() == value
    text = op_trace_text(result, top_k=2).splitlines()
    assert text[2].split()[-2:] == ["avg", "µs"]
    assert text[3].split()[-1] == "32.2"


@pytest.mark.qnn
def test_no_node_of_the_model_is_lost(zoo: Path, tmp_path: Path) -> None:
    result = traced(zoo / "encoder.onnx", TOKENS, tmp_path, runs=1, warmup=0)
    told = {n for o in result.operators for n in o.onnx_nodes} | {a["node"] for a in result.summary["absorbed_nodes"]}
    assert told == {n.name for n in model_zoo.encoder().graph.node}
    assert not [a for a in result.summary["absorbed_nodes"] if a["how"] == "gone"]


@pytest.mark.qnn
def test_cycles_are_labelled_and_never_time(zoo: Path, tmp_path: Path) -> None:
    value = valid_value(traced(zoo / "conv.onnx", IMAGE, tmp_path).to_dict())
    assert value["metadata"]["simulated"] is True
    assert any("say nothing about a device" in note for note in value["summary"]["notes"])
    for operator in value["operators"]:
        assert operator["duration_us"] is operator["avg_us"] is operator["p90_us"] is None
        assert operator["samples_us"] == []
        assert operator["p90_cycles"] is not None
    assert value["summary"]["operators_cycles"] == pytest.approx(value["summary"]["accelerator_cycles"])


@pytest.mark.qnn
def test_nodes_on_the_cpu_are_in_the_trace_in_microseconds_where_they_ran(zoo: Path, tmp_path: Path) -> None:
    result = traced(zoo / "split.onnx", IMAGE, tmp_path)
    order = [o.onnx_nodes[0] for o in result.operators if o.onnx_nodes]
    assert order == ["first/Conv", "first/Relu", "middle/FusedConv", "last/Conv", "last/Relu"]
    (middle,) = [o for o in result.operators if "middle/FusedConv" in o.onnx_nodes]
    assert (middle.ep, middle.unit, middle.onnx_op_type) == ("CPUExecutionProvider", "us", "FusedConv")
    assert result.summary["end_to_end_us"] > result.summary["unexplained_us"] > 0


@pytest.mark.qnn
def test_a_compiled_model_is_traced_by_the_names_it_was_compiled_with(zoo: Path, tmp_path: Path) -> None:
    import onnxruntime

    from winml.modelkit.ep import catalog
    from winml.modelkit.session import ep_registry

    ep_registry.ensure_initialized(["qnn"])
    options = onnxruntime.SessionOptions()
    traces = {"enable_framework_op_trace": "1", "framework_op_trace_dir": str(tmp_path)}
    devices = ep_registry.devices_of(catalog.BY_NAME["qnn"])[:1]
    options.add_provider_for_devices(devices, {"backend_type": "htp", "soc_model": "60", **traces})
    onnxruntime.ModelCompiler(options, str(zoo / "split.onnx")).compile_to_file(str(tmp_path / "ctx.onnx"))
    result = traced(tmp_path / "ctx.onnx", IMAGE, tmp_path / "trace", runs=2, warmup=0)
    assert result.status == "ok"
    order = [o.onnx_nodes[0] for o in result.operators if o.onnx_nodes]
    assert order == ["first/Conv", "first/Relu", "middle/FusedConv", "last/Conv", "last/Relu"]
    assert "Conv2d" in {o.op_type for o in result.operators}


@pytest.mark.qnn
def test_a_second_trace_into_one_folder_reads_only_its_own(zoo: Path, tmp_path: Path) -> None:
    traced(zoo / "conv.onnx", IMAGE, tmp_path, runs=3, warmup=0)
    result = traced(zoo / "conv.onnx", IMAGE, tmp_path, runs=2, warmup=0)
    assert result.metadata.num_samples == 2
    assert "qnn_profile.csv held an earlier trace; only what was appended is read" in result.summary["notes"]


@pytest.mark.qnn
def test_an_operator_trace_without_the_sdk_falls_back_with_its_reason(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(viewer.SDK_ROOT, raising=False)
    result = traced(zoo / "conv.onnx", IMAGE, tmp_path, level="detail")
    assert (result.status, result.fallback_reason) == ("basic_fallback", "sdk_missing")
    assert len(result.operators) == 12


def test_options_of_profiling_are_set_last_and_others_pass_through(tmp_path: Path) -> None:
    mine = {"profiling_level": "off", "profiling_file_path": "x", "soc_model": "60", "enable_framework_op_trace": "0"}
    options = QNNMonitor("detail", tmp_path, mine).get_provider_options()
    assert options["profiling_level"] == "optrace"
    assert options["profiling_file_path"] == str(tmp_path / "qnn_profile.csv")
    assert options["soc_model"] == "60"
    assert options["enable_framework_op_trace"] == "0"
    plain = QNNMonitor("basic", tmp_path).get_provider_options()
    assert plain["profiling_level"] == "detailed"
    assert not [k for k in plain if k.startswith(("backend", "htp")) or "fallback" in k]


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (None, "no_data", "was not written"),
        (b"", "no_data", "is empty"),
        (HEADER.encode(), "no_data", "no operator of a run"),
        (b"Time;Name\n1;2\n", "parse_failed", "its header is `Time;Name`"),
        (bytes(range(256)) * 8, "parse_failed", "its header is"),
    ],
)
def test_a_profile_that_cannot_be_used_is_a_status_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, status: str, reason: str
) -> None:
    monkeypatch.setattr(qnn_monitor, "RETRIES_S", (0.0,))
    result = left_behind(tmp_path, content)
    assert result.status == status
    assert reason in (result.error or "")
    valid_value(result.to_dict())


def test_a_profile_that_is_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            (tmp_path / "qnn_profile.csv").write_text(HEADER + RUN)

    monkeypatch.setattr(time, "sleep", sleep)
    assert left_behind(tmp_path, None).status == "ok"
    assert waits == [0.05, 0.1, 0.2]


def test_a_profile_that_is_there_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited"))
    assert left_behind(tmp_path, (HEADER + RUN).encode()).status == "ok"


def _sdk(root: Path, code: str) -> None:
    """An SDK whose viewer is a program of ours."""
    system = viewer._folders()[0]
    program = root / "bin" / system / ("qnn-profile-viewer.exe" if sys.platform == "win32" else "qnn-profile-viewer")
    library = "QnnHtpOptraceProfilingReader.dll" if sys.platform == "win32" else "libQnnHtpOptraceProfilingReader.so"
    make_program(program, code)
    reader = root / "lib" / system / library
    reader.parent.mkdir(parents=True)
    reader.touch()


QHAS = {
    "data": {
        "htp_overall_summary": {
            "data": [
                {
                    "time_us": 812.5, "graph_execute_us": 900, "percent_utilization": 41.5, "total_dram_read": 4096,
                    "total_dram_write": 128, "peak_vtcm_alloc": 65536, "timeline_cycles": 120000,
                }
            ]
        },
        "qnn_op_instances_nodes": {
            "data": [
                {
                    "qnn_op": "first/Conv_token_1", "qnn_op_type": "Conv2d", "cycles": 50, "num_htp_ops": 3,
                    "num_dominant_path_cycles_htp_0": 40, "dram_read": 100, "dram_write": 0, "vtcm_read": 300,
                    "vtcm_write": 10,
                }
            ]
        },
    }
}  # fmt: skip
WRITES = f"""
import pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
out.with_name(out.stem + "_qnn_htp_analysis_summary.json").write_text({json.dumps(QHAS)!r})
"""


def detailed(folder: Path, *, schematic_age_s: float = 0.0, log: bool = True) -> OpTraceResult:
    """A trace at level detail whose EP left a profile, a log and a schematic."""
    monitor = QNNMonitor("detail", folder)
    with monitor:
        (folder / "qnn_profile.csv").write_text(HEADER + RUN)
        schematic = folder / "graph_schematic.bin"
        schematic.write_bytes(b"s")
        made = time.time() - schematic_age_s
        os.utime(schematic, (made, made))
        if log:
            (folder / "qnn_profile_qnn.log").write_bytes(b"l")
        monitor.observe(Observation(None, NPU, warmup_runs=0, wall_ns=(20_000,)))
    assert monitor.result is not None
    return monitor.result


class TestViewer:
    def test_its_summary_adds_what_the_csv_does_not_know(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _sdk(tmp_path / "sdk", WRITES)
        monkeypatch.setenv(viewer.SDK_ROOT, str(tmp_path / "sdk"))
        result = detailed(tmp_path / "run")
        assert (result.status, result.fallback_reason) == ("ok", None)
        conv = result.operators[0]
        assert conv.detail["dominant_path_cycles"] == 40
        assert conv.detail["vtcm_hit_ratio"] == 0.75
        assert result.summary["inference_us"] == 812.5
        assert result.summary["vtcm_peak_bytes"] == 65536
        valid_value(result.to_dict())

    @pytest.mark.parametrize(
        ("code", "reason"),
        [
            ("import sys; print('no licence', file=sys.stderr); sys.exit(3)", "viewer_failed"),
            ("", "qhas_output_missing"),
            (WRITES.replace("time_us", "time_ns"), "qhas_parse_failed"),
            (WRITES.replace("data", "rows"), "qhas_parse_failed"),
        ],
        ids=["fails", "writes nothing", "has no time", "has no table"],
    )
    def test_a_viewer_that_gives_nothing_usable_is_a_fallback(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
    ) -> None:
        _sdk(tmp_path / "sdk", code)
        monkeypatch.setenv(viewer.SDK_ROOT, str(tmp_path / "sdk"))
        result = detailed(tmp_path / "run")
        assert (result.status, result.fallback_reason) == ("basic_fallback", reason)
        assert len(result.operators) == 2

    def test_a_viewer_that_is_no_program_is_a_fallback(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _sdk(tmp_path / "sdk", "")
        monkeypatch.setenv(viewer.SDK_ROOT, str(tmp_path / "sdk"))
        viewer.find_viewer().program.write_bytes(b"damaged")
        result = detailed(tmp_path / "run")
        assert (result.status, result.fallback_reason) == ("basic_fallback", "viewer_failed")

    def test_a_viewer_that_hangs_is_ended(self, tmp_path: Path) -> None:
        _sdk(tmp_path / "sdk", "import time; time.sleep(60)")
        found = viewer.find_viewer({viewer.SDK_ROOT: str(tmp_path / "sdk")})
        with pytest.raises(viewer.ViewerFailed, match="took longer than 0.3 s") as caught:
            viewer.analysis_summary(
                found, log=tmp_path / "l", schematic=tmp_path / "g_schematic.bin", folder=tmp_path, timeout_s=0.3
            )
        assert caught.value.reason == "viewer_failed"

    def test_a_stale_schematic_is_refused_and_both_times_are_logged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        _sdk(tmp_path / "sdk", WRITES)
        monkeypatch.setenv(viewer.SDK_ROOT, str(tmp_path / "sdk"))
        with caplog.at_level(logging.INFO):
            result = detailed(tmp_path / "run", schematic_age_s=60)
        assert result.fallback_reason == "schematic_missing"
        assert "was made at" in caplog.text
        assert "the trace began at" in caplog.text

    def test_without_the_ep_s_log_there_is_nothing_to_view(self, tmp_path: Path) -> None:
        assert detailed(tmp_path / "run", log=False).fallback_reason == "qnn_log_missing"


def test_two_minutes_is_the_viewers_time() -> None:
    assert viewer.TIMEOUT_S == 120


@pytest.mark.parametrize("root", [None, "", "/nowhere"])
def test_the_sdk_is_looked_for_only_where_the_variable_points(root: str | None) -> None:
    environment = {} if root is None else {viewer.SDK_ROOT: root}
    with pytest.raises(viewer.ViewerFailed, match=viewer.SDK_ROOT) as caught:
        viewer.find_viewer(environment)
    assert caught.value.reason == "sdk_missing"


def test_a_schematic_in_the_working_directory_counts_when_it_is_fresh_and_of_this_model(tmp_path: Path) -> None:
    working, folder = tmp_path / "cwd", tmp_path / "run"
    working.mkdir()
    folder.mkdir()
    for name, age in (("ours", 0.0), ("older", 30.0), ("another", 0.0)):
        path = working / f"{name}_schematic.bin"
        path.write_bytes(b"s")
        os.utime(path, (time.time() - age, time.time() - age))
    found = find_schematics(folder, begun_s=time.time(), partitions={"ours", "older"}, working=working)
    assert found == [folder / "ours_schematic.bin"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"data": {}}', '{"data": {"htp_overall_summary": {"data": []}}}'])
def test_a_summary_of_another_form_is_refused_by_what_it_lacks(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(QhasError):
        read_qhas(path)
