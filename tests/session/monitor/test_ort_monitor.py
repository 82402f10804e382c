"""The runtime's profiler on the CPU EP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import model_zoo
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.op_trace import OpTraceResult, TracingLevel
from winml.modelkit.core.target import Target
from winml.modelkit.session import perf
from winml.modelkit.session.monitor.ort_monitor import ORTMonitor
from winml.modelkit.session.monitor.ort_profile import read_profile
from winml.modelkit.session.session import WinMLSession

CPU = Target("cpu", "cpu")


def traced(
    model: Path, feed: dict[str, Any], folder: Path, *, runs: int = 5, level: TracingLevel = "basic"
) -> OpTraceResult:
    monitor = ORTMonitor(level, folder)
    session = WinMLSession(model, target=CPU, section=SessionSection(threads=1), lazy=True)
    with session.perf(warmup=3, monitor=monitor):
        run, _ = session.bind_run(feed)
        for _ in range(3 + runs):
            run()
    assert monitor.result is not None
    return monitor.result


def test_operators_of_a_transformer_explain_the_sessions_own_time(tmp_path: Path) -> None:
    """Within 10 %: the rest is the runtime's own work between operators, and the profiler's."""
    model = model_zoo.saved(model_zoo.encoder(layers=4, width=384, heads=6, tokens=128), tmp_path / "m.onnx")
    feed = {"input_ids": np.ones((1, 128), np.int64)}
    result = traced(model, feed, tmp_path / "trace", runs=10)
    assert result.status == "ok"
    assert result.metadata.num_samples == 10
    assert 0 <= result.summary["unexplained_pct"] < 10
    assert result.summary["operators_us"] == pytest.approx(sum(o.average or 0 for o in result.operators))


def test_every_node_of_the_model_is_in_an_operator_or_listed(zoo: Path, tmp_path: Path) -> None:
    result = traced(zoo / "encoder.onnx", {"input_ids": np.ones((1, 16), np.int64)}, tmp_path)
    told = {n for o in result.operators for n in o.onnx_nodes} | {a["node"] for a in result.summary["absorbed_nodes"]}
    assert told == {n.name for n in model_zoo.encoder().graph.node}
    assert {o.onnx_nodes[0] for o in result.operators if o.op_type == "SkipLayerNormalization"} == {
        "/layer.0/attention/LayerNorm", "/layer.0/output/LayerNorm",
        "/layer.1/attention/LayerNorm", "/layer.1/output/LayerNorm",
    }  # fmt: skip


def test_the_saved_graph_is_removed_and_a_large_model_is_mapped_by_names(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = {"x": np.ones((1, 3, 16, 16), np.float32)}
    small = traced(zoo / "conv.onnx", feed, tmp_path / "small")
    monkeypatch.setattr(perf, "SAVED_GRAPH_BYTES", 1000)
    large = traced(zoo / "conv.onnx", feed, tmp_path / "large")
    assert (small.summary["mapped_by"], large.summary["mapped_by"]) == ("graph", "names")
    assert [p.suffix for folder in ("small", "large") for p in (tmp_path / folder).iterdir()] == [".json", ".json"]
    assert [o.onnx_nodes for o in small.operators] == [o.onnx_nodes for o in large.operators]


def test_warm_up_runs_are_kept_apart(zoo: Path, tmp_path: Path) -> None:
    result = traced(zoo / "conv.onnx", {"x": np.ones((1, 3, 16, 16), np.float32)}, tmp_path)
    assert all((len(o.samples), len(o.warmup)) == (5, 3) for o in result.operators)
    statistics = result.statistics["Flatten_7"]
    assert (statistics["count"], statistics["warmup"]["count"]) == (5, 3)


def test_detail_is_a_fallback_with_its_reason(zoo: Path, tmp_path: Path) -> None:
    result = traced(zoo / "conv.onnx", {"x": np.ones((1, 3, 16, 16), np.float32)}, tmp_path, level="detail")
    assert (result.status, result.fallback_reason) == ("basic_fallback", "level_unsupported")


def test_a_loop_does_not_count_its_body_twice(tmp_path: Path) -> None:
    model = model_zoo.text_model(
        """g (float[64,64] x) => (float[64,64] y) <int64 trips = {20}, bool cond = {1}>
        {
          y = Loop (trips, cond, x) <body = b (int64 i, bool keep_in, float[64,64] v) => (bool keep, float[64,64] w)
            { keep = Identity(keep_in)  w = MatMul(v, v) }>
        }"""
    )
    feed = {"x": np.zeros((64, 64), np.float32)}
    result = traced(model_zoo.saved(model, tmp_path / "m.onnx"), feed, tmp_path / "t")
    body = [o for o in result.operators if o.op_type == "MatMul"]
    assert len(body) == 1
    assert len(body[0].samples) == 5
    assert result.summary["operators_us"] <= result.summary["model_run_us"]


def _event(name: str, ts: int, dur: int, tid: int = 1, **args: object) -> str:
    cat = "Node" if args else "Session"
    return json.dumps({"cat": cat, "pid": 1, "tid": tid, "dur": dur, "ts": ts, "ph": "X", "name": name, "args": args})


def test_runs_at_the_same_time_are_told_apart_by_their_thread(tmp_path: Path) -> None:
    events = [
        _event("a_kernel_time", 1, 2, 1, op_name="Relu", provider="CPUExecutionProvider"),
        _event("a_kernel_time", 2, 3, 2, op_name="Relu", provider="CPUExecutionProvider"),
        _event("model_run", 0, 9, 2),
        _event("model_run", 0, 8, 1),
    ]
    path = tmp_path / "p.json"
    path.write_text("[\n" + ",\n".join(events) + "\n]\n")
    assert [[n.duration_us for n in run.nodes] for run in read_profile(path).runs] == [[3], [2]]


def test_a_cut_profile_gives_what_is_whole_and_a_note(tmp_path: Path) -> None:
    node = _event("a_kernel_time", 1, 2, op_name="Relu")
    text = "[\n" + ",\n".join([node, _event("model_run", 0, 9), node, node])
    path = tmp_path / "p.json"
    path.write_text(text[:-5])
    profile = read_profile(path)
    assert [len(run.nodes) for run in profile.runs] == [1]
    assert profile.notes == [
        "1 lines of p.json could not be read; the file is truncated or damaged",
        "1 node events belong to a run that did not end",
    ]


@pytest.mark.parametrize("content", [b"", b"\x00\xfe" * 40, b"not json"])
def test_a_profile_that_is_none_is_no_data_with_its_reason(tmp_path: Path, content: bytes) -> None:
    monitor = ORTMonitor("basic", tmp_path)
    with monitor:
        Path(monitor.get_session_options()["profile_file_prefix"] + "_1.json").write_bytes(content)
    assert monitor.result is not None
    assert monitor.result.status == "no_data"
    assert "holds 0 runs" in (monitor.result.error or "")
