"""`winml quantize` as a user runs it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from program import failed, valid, winml, winml_process

import model_zoo
from ctrl_c import Telling, press_ctrl_c, start
from winml.modelkit import sample


def test_the_sample_becomes_u8s8_per_channel(tmp_path: Path) -> None:
    out = tmp_path / "int8.onnx"
    value = valid(winml("quantize", "--sample", "-o", out, "--target", "cpu", "--json").stdout)
    section = value["section"]
    assert (section["activation_type"], section["weight_type"], section["per_channel"]) == ("uint8", "int8", True)
    assert value["calibration"]["samples"] == 128
    assert value["nodes"]["quantized"]["Conv"] == 4
    assert value["fidelity"]["outputs"][0]["cosine"] > 0.999
    assert value["size"]["after_bytes"] < value["size"]["before_bytes"] / 3
    inspected = valid(winml("inspect", "-m", out, "--json").stdout)
    assert inspected["facts"]["quantized"]["kind"] == "qdq"
    assert [path.name for path in tmp_path.iterdir()] == ["int8.onnx"]


def test_text_goes_to_stdout_and_talk_to_stderr(tmp_path: Path) -> None:
    result = winml("quantize", "--sample", "-o", tmp_path / "q.onnx", "--samples", "8")
    assert result.returncode == 0, result.stderr
    assert "8 samples of calibration.npz (seed 0), minmax" in result.stdout
    assert "cosine" in result.stdout
    assert "note: target cpu" in result.stderr
    assert "next: winml compare" in result.stderr
    assert "onnxruntime" not in result.stdout


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    for number in (1, 2):
        env = {**os.environ, "PYTHONHASHSEED": str(number)}
        result = winml_process(
            "quantize", "--sample", "-o", tmp_path / f"{number}.onnx", "--samples", "8", "--rebuild", env=env
        )
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "1.onnx").read_bytes() == (tmp_path / "2.onnx").read_bytes()


def test_random_calibration_is_asked_for_recorded_and_told(zoo: Path, tmp_path: Path) -> None:
    words = ("quantize", "-m", zoo / "conv.onnx", "-o", tmp_path / "q.onnx", "--target", "cpu")
    assert "needs calibration data" in failed(winml(*words), 2)
    result = winml(*words, "--calibration", "random", "--samples", "4", "--json")
    value = valid(result.stdout)
    assert value["calibration"]["source"] == value["section"]["calibration"]["source"] == "random"
    assert any("random inputs" in warning for warning in value["warnings"])
    assert "warning: calibrated on random inputs" in result.stderr


@pytest.mark.qnn
def test_every_static_precision_for_the_npu_runs_on_it_entirely(tmp_path: Path) -> None:
    for word in ("int8", "w8a16", "w4a16"):
        out = tmp_path / f"{word}.onnx"
        made = winml("quantize", "--sample", "-o", out, "--target", "qnn/npu", "-p", word, "--samples", "16")
        assert made.returncode == 0, made.stderr
        words = ("perf", "-m", out, "--target", "qnn/npu", "--sessions", "1", "--iterations", "1", "--warmup", "0")
        placement = valid(winml(*words, "--ep-options", "offload_graph_io_quantization=0", "--json").stdout)[
            "placement"
        ]
        assert placement["cpu_ops"] == {}, word


def test_a_slow_pair_is_named(zoo: Path, tmp_path: Path) -> None:
    result = winml(
        "quantize", "-m", zoo / "conv.onnx", "-o", tmp_path / "q.onnx", "--target", "cpu", "--calibration", "random",
        "--activations", "int8", "--per-tensor",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "int8 activations with int8 weights are slow on x86-64" in result.stderr


BAD = [
    (("-p", "int9"), "unknown precision `int9`"),
    (("-p", "fp32"), "leaves the model as it is"),
    (("-p", "fp16", "--per-channel"), "does not apply to precision `fp16`"),
    (("-p", "dynamic", "--calibration", "random"), "needs no calibration data"),
    (("--calibration", "random", "--op-types", "Konv"), "no operator `Konv`"),
    (("--calibration", "random", "--activations", "int8", "--weights", "uint8"), "cannot go with uint8 weights"),
    (("--data", "x.npz"), "are for a limit"),
    (("--calibration", "nothing.npz"), "not found"),
    (("--target", "qnn/gpu", "-p", "int8", "--calibration", "random"), "cannot be used on qnn/gpu"),
    (("--target", "qnn/npu", "-p", "w4a16", "--per-tensor", "--calibration", "random"), "4-bit weights per tensor"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[message for _, message in BAD])
def test_a_wrong_request_is_one_error_and_writes_nothing(
    zoo: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "q.onnx"
    assert message in failed(winml("quantize", "-m", zoo / "conv.onnx", "-o", out, *words), 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("shape", "fill", "message"),
    [((0, 3, 16, 16), 0.0, "sample"), ((4, 3, 8, 8), 0.0, "must have shape"), ((4, 3, 16, 16), np.nan, "NaN")],
)
def test_bad_calibration_data_is_one_error(
    zoo: Path, tmp_path: Path, shape: tuple[int, ...], fill: float, message: str
) -> None:
    np.savez(tmp_path / "data.npz", x=np.full(shape, fill, np.float32))
    out = tmp_path / "q.onnx"
    words = ("quantize", "-m", zoo / "conv.onnx", "-o", out, "--calibration", tmp_path / "data.npz")
    assert message in failed(winml(*words), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["data.npz"]


def test_an_existing_output_is_kept_without_overwrite(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "q.onnx"
    out.write_bytes(b"mine")
    words = ("quantize", "-m", zoo / "conv.onnx", "-o", out, "-p", "fp16")
    assert "output file exists" in failed(winml(*words), 2)
    assert out.read_bytes() == b"mine"
    assert winml(*words, "--overwrite").returncode == 0
    assert len(out.read_bytes()) > 1000
    assert "is the model itself" in failed(winml("quantize", "-m", out, "-o", out, "-p", "fp16", "--overwrite"), 2)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits and signals")
def test_a_full_disk_is_one_error_and_leaves_nothing(tmp_path: Path) -> None:
    import resource

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    words = ("quantize", "--sample", "-o", tmp_path / "q.onnx", "--samples", "4", "--no-verify")
    result = winml_process(*words, preexec_fn=small_files)
    failed(result, 3)
    assert not list(tmp_path.iterdir())


def test_ctrl_c_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    model = model_zoo.saved(model_zoo.conv_net(channels=64, size=64), tmp_path / "m.onnx")
    out = tmp_path / "out"
    out.mkdir()
    telling = Telling(tmp_path)
    words = ("quantize", "-m", model, "-o", out / "q.onnx", "--target", "cpu", "--calibration", "random")
    with start(telling.argv(*words, "--samples", "100000"), start_new_session=True) as process:
        telling.wait_for("calibrating", process)
        press_ctrl_c(process)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "error: interrupted" in errors
    assert not list(out.iterdir())


def test_failures_are_json_too(zoo: Path, tmp_path: Path) -> None:
    result = winml("quantize", "-m", zoo / "conv.onnx", "-o", tmp_path / "q.onnx", "-p", "int8", "--json")
    value = valid(result.stdout)
    assert value["ok"] is False
    assert value["error"]["exit"] == result.returncode == 2


def test_the_sample_data_is_used_only_where_data_is_needed(tmp_path: Path) -> None:
    value = valid(winml("quantize", "--sample", "-o", tmp_path / "q.onnx", "-p", "fp16", "--json").stdout)
    assert value["section"]["calibration"] is None
    assert value["calibration"] is None
    assert value["model"] == str(sample.MODEL)


# --- the cache of builds


def test_a_build_and_the_commands_use_one_result(zoo: Path, tmp_path: Path, no_logins: None) -> None:
    """Also of a model that another command wrote under a name of its own."""
    for name, seed in (("data", 0), ("other", 1)):
        np.savez(tmp_path / f"{name}.npz", x=np.random.default_rng(seed).random((2, 3, 16, 16), dtype=np.float32))
    to_int8 = ("--target", "cpu", "-p", "int8", "--json", "--calibration")
    first = winml("optimize", "-m", zoo / "conv.onnx", "-o", tmp_path / "mine.onnx", "--target", "cpu")
    assert first.returncode == 0, first.stderr
    words = ("quantize", "-m", tmp_path / "mine.onnx", *to_int8)
    alone = valid(winml(*words, tmp_path / "data.npz", "-o", tmp_path / "q.onnx").stdout)
    assert alone["cache"] == "miss"
    build = ("build", "-m", zoo / "conv.onnx", "--no-analyze", *to_int8, tmp_path / "data.npz")
    built = valid(winml(*build, "-o", tmp_path / "built").stdout)
    assert [(stage["stage"], stage["cache"]) for stage in built["stages"]] == [("optimize", "hit"), ("quantize", "hit")]
    assert (tmp_path / "built" / "model.onnx").read_bytes() == (tmp_path / "q.onnx").read_bytes()

    (tmp_path / "data.npz").rename(tmp_path / "moved.npz")
    moved = valid(winml(*words, tmp_path / "moved.npz", "-o", tmp_path / "moved.onnx").stdout)
    assert moved["cache"] == "hit"
    assert moved["calibration"] == {**alone["calibration"], "source": str(tmp_path / "moved.npz")}
    other = ("-o", tmp_path / "other.onnx", "--overwrite")
    assert valid(winml(*words, tmp_path / "other.npz", *other).stdout)["cache"] == "miss", "other data, another result"
    assert valid(winml(*words, tmp_path / "moved.npz", "--rebuild", *other).stdout)["cache"] == "miss"
    assert valid(winml(*words, tmp_path / "moved.npz", "--no-compare", *other).stdout)["cache"] == "miss"
