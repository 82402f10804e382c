"""OpenVINOMonitor without OpenVINO; the real pass is in tests/e2e/test_tracing.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program import valid_value

from winml.modelkit.core.target import Target
from winml.modelkit.ep.openvino import openvino_inside
from winml.modelkit.session.monitor import openvino_monitor
from winml.modelkit.session.monitor.ep_monitor import Observation
from winml.modelkit.session.monitor.openvino_monitor import OpenVINOMonitor


def _seen(model: Path, **options: str) -> Observation:
    inputs = {"x": np.ones((1, 3, 16, 16), np.float32)}
    return Observation(
        str(model), Target("openvino", "cpu"), warmup_runs=1, wall_ns=(90_000, 110_000), inputs=inputs,
        provider_options={"device_type": "CPU", **options},
    )  # fmt: skip


ANSWER: dict[str, Any] = {
    "version": "2025.4.1-20426-82bbf0292c5",
    "originals": {"c0/WithoutBiases": ["c0/WithoutBiases", "c0", "r0"], "x_abcd_acdb_c0/WithoutBiases": []},
    "runs": [
        {
            "wall_ns": wall_ns,
            "nodes": [
                {"name": "x_abcd_acdb_c0/WithoutBiases", "type": "Reorder", "kernel": "jit_uni_f32", "us": 5.0},
                {"name": "c0/WithoutBiases", "type": "Convolution", "kernel": "brgconv_avx2_f32", "us": us},
            ],
        }
        for wall_ns, us in ((90_000, 80.0), (40_000, 20.0), (50_000, 30.0))
    ],
}


def test_the_pass_is_labelled_mapped_and_split_from_its_warm_up(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = OpenVINOMonitor("basic", tmp_path)
    monkeypatch.setattr(monitor, "_pass", lambda seen: ANSWER)
    with monitor:
        monitor.observe(_seen(zoo / "conv.onnx"))
    value = valid_value(monitor.to_dict())
    assert value["metadata"]["tracing_backend"] == "openvino, outside onnxruntime"
    reorder, conv = value["operators"]
    assert (reorder["origin"], reorder["neighbour"]) == ("inserted", "Conv_0")
    assert conv["onnx_nodes"] == ["Conv_0", "Relu_1"]
    assert (conv["samples_us"], conv["warmup_samples"]) == ([20.0, 30.0], [80.0])
    assert value["summary"]["end_to_end_us"] == 45.0
    assert value["summary"]["unexplained_us"] == 15.0
    assert value["summary"]["session_us"] == 100.0


def test_without_the_package_there_is_no_data_and_the_way_to_get_it(
    zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_monitor, "find_spec", lambda name: None)
    monitor = OpenVINOMonitor("basic", tmp_path)
    with monitor:
        monitor.observe(_seen(zoo / "conv.onnx"))
    assert monitor.result is not None
    assert monitor.result.status == "no_data"
    assert "`winml ep install openvino --rebuild`" in (monitor.result.error or "")
    assert not OpenVINOMonitor.is_available()


def test_another_version_than_the_eps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openvino_monitor, "_ep_version", lambda: "2025.4.1")
    openvino_monitor._check_version("2025.4.1-20426-82bbf0292c5")
    with pytest.raises(openvino_monitor.PassFailed, match=r"openvino 2026.1.0 is installed, but the EP holds 2025.4.1"):
        openvino_monitor._check_version("2026.1.0-1-abc")


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({}, {"INFERENCE_PRECISION_HINT": "f32"}),
        (
            {"precision": "FP16", "num_of_threads": "2"},
            {"INFERENCE_PRECISION_HINT": "f16", "INFERENCE_NUM_THREADS": "2"},
        ),
        ({"precision": "ACCURACY"}, {}),
    ],
)
def test_the_pass_computes_in_the_eps_precision(
    zoo: Path, tmp_path: Path, options: dict[str, str], config: dict[str, str]
) -> None:
    assert OpenVINOMonitor("basic", tmp_path)._config(_seen(zoo / "conv.onnx", **options)) == config


def test_the_version_is_read_off_a_library_by_name_or_by_content(tmp_path: Path) -> None:
    assert openvino_inside(tmp_path) is None
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / "openvino.dll").write_bytes(b"\x00MZ2025.3.0-19807-44526285f24-releases\x00")
    assert openvino_inside(tmp_path) == "2025.3.0"
    (tmp_path / "capi" / "libopenvino.so.2541").write_bytes(b"")
    (tmp_path / "capi" / "libopenvino.so.2025.4.1").write_bytes(b"")
    assert openvino_inside(tmp_path) == "2025.4.1"
