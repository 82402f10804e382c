"""`winml analyze` as a user starts it, on the CPU EP and on QNN's simulator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from program import failed, valid, winml

import analysis_zoo
import model_zoo
from winml.modelkit.ep import catalog
from winml.modelkit.session import ep_registry

NPU = ("--target", "qnn/npu", "--no-fusions")


def _saved(folder: Path, name: str, model: Any) -> Path:
    return model_zoo.saved(model, folder / f"{name}.onnx")


def _extended(folder: Path, source: Path) -> Path:
    """The model as ONNX Runtime saves it at level extended: with its activations fused into the convolutions."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "extended.onnx")
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return folder / "extended.onnx"


def _only(value: dict[str, Any]) -> dict[str, Any]:
    (target,) = value["targets"]
    return target


def _hazards(target: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {hazard["id"]: hazard for hazard in target["hazards"]}


@pytest.mark.qnn
def test_fused_convolutions_stay_on_the_cpu_for_qnns_own_reason_and_the_fix_is_a_command(
    zoo: Path, tmp_path: Path
) -> None:
    result = winml("analyze", "-m", _extended(tmp_path, zoo / "conv.onnx"), *NPU, "--json", "-o", tmp_path / "a.json")
    assert "1 unsupported" in failed(result, 5)
    value = valid(result.stdout)
    assert value["error"]["code"] == "check-failed"
    assert value == json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    target = _only(value)
    assert (target["status"], target["source"]["kind"]) == ("partial", "asked")
    assert target["counts"] == {"supported": 2, "partial": 0, "unsupported": 1, "unknown": 0}
    assert [(n["op"], n["ep"]) for n in target["left"]] == [("com.microsoft:FusedConv", "CPUExecutionProvider")] * 3
    assert {n["reason"] for n in target["left"]} == {"Operators of type `FusedConv` are not supported by QNN EP."}
    assert all(n["name"] for n in target["left"])
    program, *words = _hazards(target)["fused-operator"]["fix"].split()
    assert (program, *words[:2]) == ("winml", "optimize", "-m")
    assert winml(*words, cwd=tmp_path).returncode == 0
    assert winml("analyze", "-m", tmp_path / words[-1], *NPU).returncode == 0


@pytest.mark.qnn
def test_a_model_fully_on_the_npu_exits_0_and_says_what_to_do_next(zoo: Path) -> None:
    result = winml("analyze", "-m", zoo / "conv.onnx", *NPU)
    assert result.returncode == 0, result.stderr
    assert "conv share 38 %" in result.stdout
    assert "qnn/npu (simulated) · fully supported" in result.stdout
    assert "next: winml perf -m" in result.stderr


@pytest.mark.qnn
def test_quantizing_at_the_edges_is_left_by_a_setting_and_is_no_fault_of_the_model(conv_w8a8: Path) -> None:
    value = valid(winml("analyze", "-m", conv_w8a8, *NPU, "--json").stdout)
    target = _only(value)
    assert value["supported"] is True
    assert target["placement"]["by_setting"] == target["placement"]["on_cpu"] == 2
    everything = valid(
        winml("analyze", "-m", conv_w8a8, *NPU, "--ep-options", "offload_graph_io_quantization=0", "--json").stdout
    )
    assert _only(everything)["placement"]["on_cpu"] == 0


@pytest.mark.qnn
def test_dynamic_dimensions_are_fixed_to_ask_an_npu_and_that_is_said(zoo: Path) -> None:
    value = valid(winml("analyze", "-m", zoo / "relu.onnx", *NPU, "--dim", "batch=3", "--json").stdout)
    target = _only(value)
    assert (target["status"], target["source"]["fixed_dims"]) == ("supported", {"batch": 3})
    assert "--dim batch=3" in _hazards(target)["dynamic-shapes"]["fix"]
    assert "no symbolic dimension `bach`" in failed(
        winml("analyze", "-m", zoo / "relu.onnx", *NPU, "--dim", "bach=3"), 2
    )


@pytest.mark.qnn
@pytest.mark.parametrize(
    ("name", "model", "hazard", "status", "reason"),
    [
        ("skip", analysis_zoo.skip_layer_norm(), "fused-operator", "partial", "Operators of type `SkipLayerNorm"),
        ("mask", analysis_zoo.attention(mask=True), "native-attention", "unsupported", "boolean attn_mask"),
        ("int4", analysis_zoo.qdq_conv("uint16", "int4"), "int4-per-tensor", "refused", "Unsupported weight quant"),
        ("blocks", analysis_zoo.int4_blocks(), "int4-blocks", "partial", "does not support a standalone DQ"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hazards_of_the_table_are_real_on_the_simulator(
    tmp_path: Path, name: str, model: Any, hazard: str, status: str, reason: str
) -> None:
    result = winml("analyze", "-m", _saved(tmp_path, name, model), *NPU, "--json")
    failed(result, 5)
    target = _only(valid(result.stdout))
    assert target["status"] == status
    assert hazard in _hazards(target)
    assert any(reason in (op["reason"] or "") for op in target["ops"])


@pytest.mark.qnn
def test_what_the_ep_takes_is_no_hazard_whatever_the_table_says(tmp_path: Path) -> None:
    result = winml("analyze", "-m", _saved(tmp_path, "plain", analysis_zoo.attention(mask=False)), *NPU, "--json")
    assert _hazards(_only(valid(result.stdout))) == {}


@pytest.mark.qnn
def test_the_cpus_own_layout_is_never_called_supported_on_the_npu(zoo: Path, tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "blocked.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(zoo / "conv.onnx"), options, providers=["CPUExecutionProvider"])
    result = winml("analyze", "-m", tmp_path / "blocked.onnx", *NPU, "--json")
    failed(result, 5)
    target = _only(valid(result.stdout))
    assert "blocked-layout" in _hazards(target)
    assert not [op for op in target["ops"] if "nchwc" in op["op"] and op["status"] == "supported"]


def test_a_naive_int8_model_on_the_cpu_is_told_why_it_loses(tmp_path: Path) -> None:
    path = _saved(tmp_path, "naive", analysis_zoo.qdq_conv("int8", "int8"))
    result = winml("analyze", "-m", path, "--target", "cpu", "--no-fusions")
    assert result.returncode == 0, result.stderr
    assert "hazard slow-type-pair: 1 node quantized as int8 x int8" in result.stdout
    assert "only with uint8 activations" in result.stdout
    assert "--target cpu -p int8" in result.stdout


def test_fusion_candidates_are_found_by_running_the_passes(zoo: Path) -> None:
    value = valid(winml("analyze", "-m", zoo / "conv.onnx", "--target", "cpu", "--timeout", "500", "--json").stdout)
    passes = {row["name"]: row for row in value["fusions"]["passes"]}
    assert value["fusions"]["tried"] > 20
    assert passes["conv_activation_fusion"]["ops_delta"] == {"Conv": -3, "Relu": -3, "com.microsoft:FusedConv": 3}
    assert passes["conv_activation_fusion"]["not_for"] == []


def test_an_absent_ep_is_answered_as_far_as_anybody_knows(zoo: Path) -> None:
    result = winml("analyze", "-m", zoo / "conv.onnx", "--target", "vitisai/npu", "--no-fusions", "--json")
    assert "cannot tell: `vitisai/npu` is not available on this machine" in failed(result, 3)
    target = _only(valid(result.stdout))
    assert (target["status"], target["source"]) == ("unknown", {"kind": "none", "table": None})
    assert "vitisai" in target["absent"]
    assert {op["status"] for op in target["ops"]} == {"unknown"}


@pytest.mark.qnn
def test_a_crash_on_one_target_leaves_the_others_alone(tmp_path: Path) -> None:
    path = _saved(tmp_path, "crash", analysis_zoo.crashes_qnn())
    result = winml("analyze", "-m", path, "--all", "--no-fusions", "--json")
    failed(result, 5)
    by_name = {target["target"]: target for target in valid(result.stdout)["targets"]}
    assert by_name["cpu"]["status"] == "supported"
    assert {"qnn/npu", "qnn/gpu", "openvino/cpu", "dml/gpu", "cuda/gpu"} <= set(by_name)
    crashed = by_name["qnn/npu"]
    assert (crashed["status"], crashed["error"]["code"]) == ("failed", "worker-crashed")
    assert crashed["counts"]["unknown"] == 1


def test_a_target_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    path = _saved(tmp_path, "long", analysis_zoo.folds_for_long())
    # Long enough to read the model, which takes a second and under Wine on a busy machine ten.
    seconds = "40" if sys.platform == "win32" else "8"
    result = winml("analyze", "-m", path, "--target", "cpu", "--no-fusions", "--timeout", seconds, "--json")
    assert f"timed out after {seconds} s" in failed(result, 1)
    assert _only(valid(result.stdout))["error"]["code"] == "worker-timeout"


@pytest.mark.qnn
def test_a_compiled_model_belongs_to_its_ep(zoo: Path, tmp_path: Path) -> None:
    ep_registry.ensure_initialized(["qnn"])
    options = onnxruntime.SessionOptions()
    device = ep_registry.devices_of(catalog.BY_NAME["qnn"])[:1]
    options.add_provider_for_devices(device, {"backend_type": "htp", "soc_model": "60"})
    compiler = onnxruntime.ModelCompiler(options, str(zoo / "conv.onnx"), embed_compiled_data_into_model=True)
    compiler.compile_to_file(str(tmp_path / "compiled.onnx"))
    on_npu = valid(winml("analyze", "-m", tmp_path / "compiled.onnx", "--target", "qnn/npu", "--json").stdout)
    assert (on_npu["supported"], on_npu["fusions"], on_npu["facts"]["conv_share"]) == (True, None, None)
    result = winml("analyze", "-m", tmp_path / "compiled.onnx", "--target", "cpu", "--json")
    failed(result, 5)
    on_cpu = _only(valid(result.stdout))
    assert on_cpu["status"] == "refused"
    assert "compiled-elsewhere" in _hazards(on_cpu)


def test_wrong_requests(zoo: Path, tmp_path: Path) -> None:
    model = zoo / "conv.onnx"
    assert "did you mean `qnn`" in failed(winml("analyze", "-m", model, "--target", "qmn/npu"), 2)
    assert "`--all` cannot be combined" in failed(winml("analyze", "-m", model, "--all", "--target", "cpu"), 2)
    assert "needs one target" in failed(winml("analyze", "-m", model, "--all", "--ep-options", "a=b"), 2)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(model.read_bytes()[:1000])
    assert "broken.onnx" in failed(winml("analyze", "-m", broken, "--all"), 2)
    assert "not found" in failed(winml("analyze", "-m", tmp_path / "none.onnx"), 2)
    unknown = _saved(tmp_path, "unknown", model_zoo.text_model("g (float[1] x) => (float[1] y) { y = Nope (x) }"))
    assert "operator `Nope`" in failed(winml("analyze", "-m", unknown, "--target", "cpu", "--no-fusions"), 2)
