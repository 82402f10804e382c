"""WinMLSession on the real runtime: CPU here, QNN on its simulator."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import model_zoo
from winml.modelkit.core.build_folder import PartEntry, PartsFile
from winml.modelkit.core.errors import (
    CheckFailed,
    EPUnavailableError,
    ModelFileError,
    ModelkitError,
    PlacementError,
    RequestError,
)
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import options
from winml.modelkit.session.composite import Composite
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.store import digest

CPU = Target("cpu", "cpu")
NPU = Target("qnn", "npu", simulated=True)


def test_runs_a_model_and_names_its_inputs_and_outputs(zoo: Path) -> None:
    with WinMLSession(zoo / "relu.onnx", target=CPU) as session:
        out = session.run({"x": np.array([[-1, 2, -3, 4]], np.float32)})
        assert [i.name for i in session.inputs] == ["x"]
        assert session.inputs[0].shape == ("batch", 4)
    np.testing.assert_array_equal(out["y"], [[0, 2, 0, 4]])


def test_placement_counts_every_node(zoo: Path) -> None:
    with WinMLSession(zoo / "conv.onnx", target=CPU) as session:
        assert session.placement.nodes == {"CPUExecutionProvider": 8}
        assert session.placement.partitions == {}
        assert not session.placement.fell_back


def test_bound_runs_write_the_outputs_of_the_first_run_again(zoo: Path) -> None:
    with WinMLSession(zoo / "relu.onnx", target=CPU) as session:
        run, bound = session.bind_run({"x": np.ones((1, 4), np.float32)})
        run()
        run()
        assert bound


def test_strings_are_run_without_io_binding(tmp_path: Path) -> None:
    model = model_zoo.text_model("g (string[2] x) => (string[2] y) { y = Identity(x) }")
    with WinMLSession(model_zoo.saved(model, tmp_path / "s.onnx"), target=CPU) as session:
        run, bound = session.bind_run({"x": np.array(["a", "b"], dtype=object)})
        run()
        assert not bound


def test_spaces_and_other_scripts_in_a_path_work(tmp_path: Path) -> None:
    folder = tmp_path / "mödels 模型"
    folder.mkdir()
    with WinMLSession(model_zoo.saved(model_zoo.relu(), folder / "re lu.onnx"), target=CPU) as session:
        assert session.placement.total == 1


def _with(change: str) -> onnx.ModelProto:
    model = model_zoo.conv_net()
    if change == "ir":
        model.ir_version = 99
    elif change == "opset":
        model.opset_import[0].version = 99
    elif change == "op":
        model.graph.node[0].op_type = "Nope"
    elif change == "external":
        tensor = model.graph.initializer[0]
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.ClearField("raw_data")
        for key, value in {"location": "gone.data", "offset": "0", "length": "1728"}.items():
            tensor.external_data.add(key=key, value=value)
    return model


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("ir", r"IR version 99; this onnxruntime reads up to \d+"),
        ("opset", r"needs opset 99; this onnxruntime reads up to \d+"),
        ("op", "operator `Nope`, which does not exist in version 21"),
        ("external", r"external data of .* is missing: .*gone\.data"),
    ],
)
def test_a_model_that_cannot_be_opened_is_refused_with_its_reason(tmp_path: Path, change: str, message: str) -> None:
    path = model_zoo.saved(_with(change), tmp_path / "m.onnx")
    with pytest.raises(ModelFileError, match=message):
        WinMLSession(path, target=CPU)


@pytest.mark.parametrize(
    "content", [b"hello world\n" * 20, b"\x00" * 50, model_zoo.conv_net().SerializeToString()[:300]]
)
def test_bytes_that_are_no_model_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not an ONNX model, or it is truncated"):
        WinMLSession(path, target=CPU)


def test_an_unknown_optimization_level_is_refused(zoo: Path) -> None:
    with pytest.raises(RequestError, match="`fast`"):
        WinMLSession(zoo / "relu.onnx", target=CPU, section=SessionSection(optimization_level="fast"))


def test_wrong_inputs_are_our_error(zoo: Path) -> None:
    with WinMLSession(zoo / "relu.onnx", target=CPU) as session, pytest.raises(ModelkitError, match="running"):
        session.run({"x": np.ones((1, 5), np.float32)})


def test_an_ep_that_is_not_installed_is_unavailable(zoo: Path) -> None:
    with pytest.raises(EPUnavailableError, match="execution provider `vitisai` is not available: "):
        WinMLSession(zoo / "relu.onnx", target=Target("vitisai", "npu"))


@pytest.mark.qnn
def test_a_quantized_model_goes_to_the_npu_with_its_edges_on_the_cpu(conv_w8a8: Path) -> None:
    with WinMLSession(conv_w8a8, target=NPU) as session:
        placement = session.placement
    assert placement.nodes["QNNExecutionProvider"] >= 20
    assert placement.partitions == {"QNNExecutionProvider": 1}
    assert placement.cpu_ops == placement.by_setting == {"QuantizeLinear": 1, "DequantizeLinear": 1}
    assert placement.fell_back == {}
    assert session.added_options == {"backend_type": "htp", "soc_model": "60"}


@pytest.mark.qnn
def test_fused_convolutions_stay_on_the_cpu_and_are_named(zoo: Path) -> None:
    with WinMLSession(zoo / "fused.onnx", target=NPU) as session:
        assert session.placement.fell_back == {"com.microsoft:FusedConv": 3}
    with pytest.raises(CheckFailed, match="com.microsoft:FusedConv x3"):
        WinMLSession(zoo / "fused.onnx", target=NPU, strict_ep=True)


@pytest.mark.qnn
def test_outputs_of_the_simulator_are_near_those_of_the_cpu(conv_w8a8: Path) -> None:
    feed = {"x": np.random.default_rng(1).random((1, 3, 16, 16), dtype=np.float32)}
    with WinMLSession(conv_w8a8, target=NPU) as npu, WinMLSession(conv_w8a8, target=CPU) as cpu:
        np.testing.assert_allclose(npu.run(feed)["y"], cpu.run(feed)["y"], atol=0.05)


@pytest.mark.qnn
def test_an_option_that_moves_everything_to_the_cpu_is_an_error(conv_w8a8: Path) -> None:
    with pytest.raises(PlacementError, match="took none of the"):
        WinMLSession(conv_w8a8, target=NPU, section=SessionSection(ep_options={"soc_model": "9999"}))


@pytest.mark.qnn
@pytest.mark.parametrize("option", ["bogus_option=1", "vtcm_mb=abc", "profiling_level=zzz", "htp_arch=99"])
def test_options_the_ep_would_ignore_are_refused(conv_w8a8: Path, option: str) -> None:
    key, _, value = option.partition("=")
    with pytest.raises(RequestError, match=key):
        WinMLSession(conv_w8a8, target=NPU, section=SessionSection(ep_options={key: value}))


@pytest.mark.qnn
def test_a_device_the_ep_does_not_have_here_is_unavailable(conv_w8a8: Path) -> None:
    with pytest.raises(EPUnavailableError, match="no gpu on this machine"):
        WinMLSession(conv_w8a8, target=Target("qnn", "gpu"))


@pytest.mark.parametrize("name", ["../secret.bin", "/etc/passwd", "a/../../b.bin", "C:\\secret.bin", "..\\b.bin"])
def test_a_compiled_part_that_names_a_file_outside_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    node = onnx.helper.make_node("EPContext", ["x"], ["y"], domain="com.microsoft", embed_mode=0, ep_cache_context=name)
    values = [onnx.helper.make_tensor_value_info(value, 1, [1]) for value in "xy"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:]))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match="which is outside the model's folder"):
        WinMLSession(tmp_path / "m.onnx", target=CPU, lazy=False)


@pytest.mark.parametrize(("folder", "file"), [("../other", "model.onnx"), ("a", "/m.onnx")])
def test_parts_of_a_composite_model_lie_below_its_folder(tmp_path: Path, folder: str, file: str) -> None:
    entry = PartEntry(folder=folder, file=file, digest=digest.of_bytes(b""))
    parts = PartsFile(model="m", target="cpu", parts={"decode": entry})
    (tmp_path / "parts.json").write_text(json.dumps(to_json(parts)))
    with pytest.raises(ModelFileError, match="which is outside its folder"):
        Composite(tmp_path, target=CPU)


AFFINITY = '{"op_type":{"GroupQueryAttention":"htp"}}'


@pytest.mark.qnn
@pytest.mark.parametrize("form", ["text", "file"])
def test_op_affinity_places_attention_on_the_npu(tmp_path: Path, form: str) -> None:
    """The EP keeps GroupQueryAttention off the NPU unless it is told otherwise."""
    path = model_zoo.saved(model_zoo.grouped_attention(), tmp_path / "gqa.onnx")
    (tmp_path / "affinity.json").write_text(AFFINITY)
    value = AFFINITY if form == "text" else str(tmp_path / "affinity.json")
    given = options.check_options(NPU, {"op_affinity": value})
    assert given == {"op_affinity": AFFINITY}
    with WinMLSession(path, target=NPU, section=SessionSection(ep_options=given)) as session:
        assert session.placement.nodes == {"QNNExecutionProvider": 1}
        assert session.provider_options["op_affinity"] == AFFINITY


@pytest.mark.qnn
def test_without_op_affinity_attention_stays_on_the_cpu(tmp_path: Path) -> None:
    path = model_zoo.saved(model_zoo.grouped_attention(), tmp_path / "gqa.onnx")
    with WinMLSession(path, target=NPU, asking=True) as session:
        assert session.placement.nodes == {"CPUExecutionProvider": 1}
