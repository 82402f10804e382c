"""The real program, as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
from program import DIVIDED, QUICK, failed, valid, winml

import model_zoo
from ctrl_c import Telling, press_ctrl_c, start


def test_sys_names_every_ep_and_why_it_is_missing() -> None:
    result = winml("sys", "--json")
    value = valid(result.stdout)
    assert [ep["ep"] for ep in value["eps"]] == [
        "cpu", "qnn", "openvino", "dml", "vitisai", "webgpu", "nvtensorrtrtx", "migraphx", "cuda",
    ]  # fmt: skip
    assert value["eps"][0]["installations"][0]["targets"][0]["status"] == "ready"
    for ep in value["eps"]:
        targets = [t for i in ep["installations"] for t in i["targets"]]
        assert targets or ep["missing"]
        for target in [*targets, *ep["missing"]]:
            assert target["status"] == "ready" or target["reason"], target


def test_sys_text_lists_targets_and_devices() -> None:
    assert "cpu" in winml("sys").stdout
    listed = winml("sys", "--list-ep").stdout
    assert listed.startswith("target")
    assert "machine" not in listed
    assert winml("sys", "--list-device").stdout.startswith("kind")


def test_inspect_describes_a_model(zoo: Path) -> None:
    value = valid(winml("inspect", "-m", zoo / "fused.onnx", "--json").stdout)
    assert value["facts"]["ops"]["com.microsoft:FusedConv"] == 3
    text = winml("inspect", "-m", zoo / "conv.onnx").stdout
    assert "Conv" in text
    assert "sha256:" in text


def test_perf_measures_and_keeps_every_sample(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "out put.json"
    result = winml("perf", "-m", zoo / "conv.onnx", "--target", "cpu", "--iterations", "20", "--json", "-o", out)
    value = valid(result.stdout)
    assert value == json.loads(out.read_text(encoding="utf-8"))
    rounds = value["measurement"]["rounds"]
    assert len(rounds) == 3
    assert all(len(r["wall_ns"]) == len(r["cpu_ns"]) == 20 for r in rounds)
    assert len({r["process"] for r in rounds}) == 3
    interval = value["latency_ms"]["interval"]
    assert 0 < interval["low"] <= interval["high"]
    assert value["placement"]["nodes"] == {"CPUExecutionProvider": 8}
    assert value["io_binding"] is True


def test_perf_text_goes_to_stdout_and_talk_to_stderr(zoo: Path) -> None:
    result = winml("perf", "-m", zoo / "relu.onnx", *QUICK, "--memory")
    assert result.returncode == 0
    assert result.stdout.startswith("relu.onnx on cpu (onnxruntime")
    assert "no interval: an interval needs at least 3 sessions" in result.stdout
    assert "memory" in result.stdout
    assert "note: target cpu" in result.stderr
    assert "\x1b[" not in result.stdout + result.stderr


def test_wmk_spelling_of_device_and_ep(zoo: Path) -> None:
    for words in (["--device", "CPU"], ["--ep", "CPUExecutionProvider"], ["--ep", "MLAS", "-d", "cpu"], ["-d", "auto"]):
        assert valid(winml("perf", "-m", zoo / "relu.onnx", *QUICK, *words, "--json").stdout)["target"] == "cpu"


def test_perf_takes_inputs_from_npz(zoo: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((2, 4), np.float32))
    value = valid(winml("perf", "-m", zoo / "relu.onnx", *QUICK, "--input-data", tmp_path / "in.npz", "--json").stdout)
    assert value["inputs"] == {
        "source": "npz", "seed": None, "tensors": {"x": {"dtype": "float32", "shape": [2, 4]}},
        "sizes": {"batch": {"size": 2, "source": "data", "reason": "input data"}},
    }  # fmt: skip


def test_perf_runs_for_a_duration(zoo: Path) -> None:
    value = valid(winml("perf", "-m", zoo / "relu.onnx", "--sessions", "1", "--duration", "0.3", "--json").stdout)
    assert sum(value["measurement"]["rounds"][0]["wall_ns"]) <= 0.4e9
    assert value["sessions"][0]["iterations"] > 100


@pytest.mark.qnn
def test_perf_on_the_simulator_says_that_times_are_not_real(conv_w8a8: Path) -> None:
    words = ("perf", "-m", conv_w8a8, "--target", "qnn/npu", "--ep-options", "soc_model=60", *QUICK)
    value = valid(winml(*words, "--json").stdout)
    assert value["simulated"] is True
    assert value["placement"]["nodes"]["QNNExecutionProvider"] > 20
    assert any("simulator" in w for w in value["warnings"])
    text = winml(*words)
    assert "simulator time" in text.stdout
    assert "not of a device" in text.stderr


@pytest.mark.qnn
def test_fused_convolutions_on_the_cpu_are_named(zoo: Path) -> None:
    words = ("perf", "-m", zoo / "fused.onnx", "--target", "QNN/NPU", *QUICK)
    value = valid(winml(*words, "--json").stdout)
    assert value["placement"]["cpu_ops"] == {"com.microsoft:FusedConv": 3}
    assert "com.microsoft:FusedConv x3" in failed(winml(*words, "--strict-ep"), 5)


@pytest.mark.qnn
def test_an_unknown_soc_is_never_a_quiet_cpu_run(conv_w8a8: Path) -> None:
    result = winml("perf", "-m", conv_w8a8, "--device", "npu", "--ep-options", "soc_model=9999", *QUICK, "--json")
    assert "took none of the" in failed(result, 1)
    value = valid(result.stdout)
    assert value["error"]["code"] == "ep-took-no-node"
    assert any("Invalid config" in line for line in value["log"])


@pytest.mark.qnn
def test_auto_never_picks_a_simulator(zoo: Path) -> None:
    assert valid(winml("perf", "-m", zoo / "relu.onnx", *QUICK, "--json").stdout)["target"] == "cpu"


def test_a_crash_is_a_result(zoo: Path) -> None:
    result = winml("perf", "-m", zoo / "fpe.onnx", *QUICK, "--json")
    assert f"crashed with {DIVIDED}" in failed(result, 1)
    assert valid(result.stdout)["error"]["code"] == "worker-crashed"


def test_a_hang_is_a_result_and_no_process_is_left(zoo: Path) -> None:
    result = winml("perf", "-m", zoo / "hang.onnx", *QUICK, "--timeout", "2")
    assert "timed out after 2 s" in failed(result, 1)
    left = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    assert not [words for words in left if str(zoo / "hang.onnx") in words]


@pytest.mark.parametrize("name", ["perf", "inspect"])
@pytest.mark.parametrize(
    ("content", "exit_code"),
    [(None, 2), (b"", 2), (b"hello world", 2), (b"\xff" * 100, 2), ("truncated", 2), ("directory", 2), ("ir", 2)],
    ids=["missing", "empty", "text", "garbage", "truncated", "directory", "newer IR"],
)
def test_files_that_are_no_model(tmp_path: Path, name: str, content: bytes | str | None, exit_code: int) -> None:
    path = tmp_path / "mödel x.onnx"
    whole = model_zoo.conv_net()
    if content == "directory":
        path.mkdir()
    elif content == "truncated":
        path.write_bytes(whole.SerializeToString()[:500])
    elif content == "ir":
        whole.ir_version = 99
        path.write_bytes(whole.SerializeToString())
    elif isinstance(content, bytes):
        path.write_bytes(content)
    result = winml(name, "-m", path, "--json")
    assert str(path.name) in failed(result, exit_code)
    assert valid(result.stdout)["error"]["exit"] == exit_code


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (["--target", "qn/npu"], 2, "did you mean `qnn`?"),
        (["--target", "cpu/npu"], 2, "does not drive a npu"),
        (["--target", "cpu", "--ep", "cpu"], 2, "cannot be combined"),
        (["--target", "vitisai/npu"], 3, "not available"),
        (["--ep", "openvino"], 3, "not available"),
        (["--device", "tpu"], 2, "unknown device"),
        (["--ep-options", "novalue"], 2, "K=V"),
        (["--ep-options", "a=1"], 2, "no option `a`"),
        (["--iterations", "0"], 2, "--iterations"),
        (["--iterations", "-3"], 2, "--iterations"),
        (["--iterations", "many"], 2, "--iterations"),
        (["--warmup", "-1"], 2, "--warmup"),
        (["--sessions", "0"], 2, "--sessions"),
        (["--duration", "0"], 2, "--duration"),
        (["--timeout", "-1"], 2, "--timeout"),
        (["--batch-size", "0"], 2, "--batch-size"),
        (["--threads", "0"], 2, "--threads"),
        (["--dim", "sequence=3"], 2, "no symbolic dimension `sequence`"),
        (["--dim", "batch=0"], 2, "at least 1"),
        (["--int-range", "5:1"], 2, "is empty"),
        (["--int-range", "abc"], 2, "LOW:HIGH"),
        (["--input-data", "missing.npz"], 2, "not found"),
        (["--input-data", "x.npz", "--batch-size", "2"], 2, "cannot be combined"),
        (["--nonsense"], 2, "nonsense"),
        (["-o", "no/such/folder/x.json"], 2, "output folder not found"),
    ],
)
def test_wrong_requests_are_told_apart_from_a_wrong_machine(
    zoo: Path, words: list[str], exit_code: int, message: str
) -> None:
    result = winml("perf", "-m", zoo / "relu.onnx", *words, "--json")
    assert message in failed(result, exit_code)
    assert valid(result.stdout)["ok"] is False


@pytest.mark.qnn
def test_an_ep_without_its_device_is_a_matter_of_the_machine(zoo: Path) -> None:
    assert "has no gpu" in failed(winml("perf", "-m", zoo / "relu.onnx", "--target", "qnn/gpu"), 3)


def test_a_model_must_be_named_once(zoo: Path) -> None:
    failed(winml("perf"), 2)
    failed(winml("perf", "--sample", "-m", zoo / "relu.onnx"), 2)


def test_an_unknown_command_suggests_the_nearest() -> None:
    result = winml("pref", "--json")
    assert "did you mean `perf`?" in failed(result, 2)
    valid(result.stdout)


def test_an_existing_result_is_not_overwritten_by_accident(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    out.write_text("mine")
    assert "exists" in failed(winml("perf", "-m", zoo / "relu.onnx", *QUICK, "-o", out), 2)
    assert out.read_text() == "mine"
    assert winml("perf", "-m", zoo / "relu.onnx", *QUICK, "-o", out, "--overwrite").returncode == 0
    valid(out.read_text(encoding="utf-8"))


def test_ctrl_c_in_the_timed_loop_keeps_what_was_measured(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    telling = Telling(tmp_path)
    words = ("perf", "-m", zoo / "relu.onnx", "--duration", "600", "--sessions", "1", "-o", out, "--json")
    with start(telling.argv(*words)) as process:
        telling.wait_for("progress", process)
        press_ctrl_c(process)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    value = valid(stdout)
    assert value["error"]["code"] == "interrupted"
    assert len(value["measurement"]["rounds"][0]["wall_ns"]) > 10
    assert json.loads(out.read_text(encoding="utf-8"))["measurement"]["rounds"]


def test_ctrl_c_in_a_run_that_does_not_return_ends_soon(zoo: Path, tmp_path: Path) -> None:
    telling = Telling(tmp_path)
    with start(telling.argv("perf", "-m", zoo / "hang.onnx", "--sessions", "1")) as process:
        telling.wait_for("opened", process)
        press_ctrl_c(process)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr


def _read_a_little(count: int, *words: str) -> tuple[int, str]:
    """Exit code and stderr of a run whose reader leaves after so many bytes."""
    command = [sys.executable, "-m", "winml.modelkit", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(count)
        process.stdout.close()
        text = process.stderr.read().decode()
    return process.returncode, text


def test_a_reader_that_leaves_early_is_no_error() -> None:
    assert _read_a_little(10, "sys", "--json") == (0, "")


def test_a_reader_that_left_before_an_error_is_no_traceback() -> None:
    code, text = _read_a_little(0, "perf", "-m", "nowhere.onnx", "--json")
    assert code == 2
    assert "Traceback" not in text


def test_no_color_and_non_terminals_get_plain_text(zoo: Path) -> None:
    result = winml("perf", "-m", zoo / "gone.onnx", env={**os.environ, "FORCE_COLOR": "1"})
    assert "\x1b[" not in failed(result, 2)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_model_is_a_matter_of_the_machine(zoo: Path, tmp_path: Path) -> None:
    path = model_zoo.saved(model_zoo.relu(), tmp_path / "m.onnx")
    path.chmod(0)
    failed(winml("perf", "-m", path), 3)


def test_ep_options_lists_names_values_and_who_may_set_them() -> None:
    value = valid(winml("ep", "options", "qnn", "--json").stdout)
    rows = {row["name"]: row for row in value["eps"][0]["options"]}
    assert rows["backend_path"]["set_by"] == "command_line"
    assert rows["soc_model"]["set_by"] == "document"
    assert rows["op_affinity"]["type"] == "json"
    assert "session.intra_op.allow_spinning" in value["config_entries"]
    text = winml("ep", "options").stdout
    assert "backend_path" in text
    assert "htp_performance_mode" in text
