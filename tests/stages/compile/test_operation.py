"""The stage as a pipeline runs it: one model, one worker, one report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.core.errors import ModelFileError, RequestError, WorkerCrashed
from winml.modelkit.worker.client import Worker

pytestmark = pytest.mark.qnn


def _run(model: Path, output: Path, compiler: str = "ort", **changes: Any) -> dict[str, Any]:
    target = {"ep": "qnn", "device": "npu", "simulated": True}
    args = {"model": str(model), "output": str(output), "section": {"compiler": compiler}, "target": target, **changes}
    with Worker() as worker:
        report: dict[str, Any] = worker.call("stages.compile", args, timeout_s=60)
    return report


def test_a_model_becomes_a_file_and_a_report(conv_w8a8: Path, tmp_path: Path) -> None:
    report = _run(conv_w8a8, tmp_path / "compiled.onnx")
    assert {p.name for p in tmp_path.iterdir()} == {"compiled.onnx", "compiled_qnn.bin"}
    assert report["precision"] == "w8a8"
    assert report["validation"]["status"] == "passed"
    assert report["cpu_ops"] == {"QuantizeLinear": 1, "DequantizeLinear": 1}


def test_validation_can_be_left_out(conv_w8a8: Path, tmp_path: Path) -> None:
    assert _run(conv_w8a8, tmp_path / "compiled.onnx", validate=False)["validation"] is None


def test_refusals_come_before_anything_is_written(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="without fixed sizes"):
        _run(zoo / "relu.onnx", tmp_path / "compiled.onnx")
    with pytest.raises(RequestError, match="does not compile models"):
        _run(zoo / "conv.onnx", tmp_path / "c.onnx", target={"ep": "cpu", "device": "cpu", "simulated": False})
    with pytest.raises(RequestError, match="unknown key `compile.embedded`"):
        _run(zoo / "conv.onnx", tmp_path / "c.onnx", section={"embedded": True})
    assert list(tmp_path.iterdir()) == []


def test_a_crash_is_a_result(zoo: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkerCrashed, match="SIGFPE"):
        _run(zoo / "folded.onnx", tmp_path / "compiled.onnx", "ort_jit")
