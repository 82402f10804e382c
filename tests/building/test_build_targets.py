"""A build folder supplies its target, and parts of a composite model are measured one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import model_zoo
from winml.modelkit.building.model_argument import model_argument
from winml.modelkit.core.config import BuildConfig
from winml.modelkit.core.errors import EPUnavailableError, ModelFileError, RequestError, UnavailableError
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import probing as targets
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.sizes import INPUTS_KEY, Size
from winml.modelkit.measuring.compare_arms import CompareRequest, arms_of
from winml.modelkit.measuring.perf import PerfRequest
from winml.modelkit.measuring.perf_parts import PerfParts, perf_model
from winml.modelkit.measuring.sessions import AskedProtocol, PerfProtocol
from winml.modelkit.render.perf import parts_text

IMAGE = "image (float[batch,3,height,width] x) => (float[batch,3,height,width] y) { y = Relu(x) }"
FIXED = "image (float[1,3,8,16] x) => (float[1,3,8,16] y) { y = Relu(x) }"


def silent(event: dict[str, Any]) -> None:
    """Nobody listens."""


def build(folder: Path, target: str, text: str = FIXED, sizes: dict[str, int] | None = None) -> str:
    folder.mkdir()
    model = model_zoo.text_model(text)
    if sizes:
        model.metadata_props.add(key=INPUTS_KEY, value=json.dumps({"sizes": sizes}))
    model_zoo.saved(model, folder / "model.onnx")
    (folder / "build_config.json").write_text(json.dumps(to_json(BuildConfig(target=target))))
    return str(folder)


@pytest.mark.qnn
def test_a_build_runs_on_its_own_target_and_says_when_it_does_not(tmp_path: Path) -> None:
    built_for = model_argument(build(tmp_path / "npu", "qnn/npu")).target
    assert built_for == "qnn/npu"
    own = targets.choose(built_for, None, None, None)
    assert (str(own.resolved.target), own.resolved.target.simulated, own.notes) == ("qnn/npu", True, [])
    other = targets.choose(built_for, "cpu", None, None)
    assert (str(other.resolved.target), other.notes) == (
        "cpu",
        ["it was built for qnn/npu and runs on cpu, as requested"],
    )


def test_a_build_for_a_target_that_is_not_here_is_refused_with_another_way() -> None:
    with pytest.raises(
        EPUnavailableError, match="it was built for migraphx/gpu, which is not available on this machine"
    ) as caught:
        targets.choose("migraphx/gpu", None, None, None)
    assert "--target" in str(caught.value.hint)


@pytest.mark.qnn
def test_builds_for_different_targets_are_not_compared_on_targets_nobody_named(tmp_path: Path) -> None:
    models = (build(tmp_path / "npu", "qnn/npu"), build(tmp_path / "cpu", "cpu"))
    with pytest.raises(RequestError, match="different targets: .*npu` for qnn/npu, .*cpu` for cpu"):
        arms_of(CompareRequest(models), silent)
    arms = arms_of(CompareRequest(models, targets=("cpu",)), silent)
    assert [str(spec.arm.target) for spec in arms.specs] == ["cpu", "cpu"]
    assert arms.notes == (f"`{models[0]}`: it was built for qnn/npu and runs on cpu, as requested",)


@pytest.mark.qnn
def test_a_simulated_target_among_several_is_left_out_and_alone_refused(tmp_path: Path) -> None:
    model = build(tmp_path / "cpu", "cpu")
    with pytest.raises(UnavailableError, match="simulated"):
        arms_of(CompareRequest((model,), targets=("cpu", "qnn/npu")), silent)
    arms = arms_of(CompareRequest((model,), targets=("cpu", "qnn/npu", "cpu")), silent)
    assert [spec.label for spec in arms.specs] == ["cpu", "cpu"]
    assert "qnn/npu is skipped: it is simulated on this machine, and its times say nothing about a device" in arms.notes


def test_an_arm_takes_the_size_that_another_one_fixes(tmp_path: Path) -> None:
    opened = str(model_zoo.saved(model_zoo.text_model(IMAGE), tmp_path / "open.onnx"))
    fixed = str(model_zoo.saved(model_zoo.text_model(FIXED), tmp_path / "fixed.onnx"))
    asked = InputSettings(dims={"width": 16})
    arms = arms_of(CompareRequest((opened, fixed), targets=("cpu",), inputs=asked), silent)
    sizes = arms.specs[0].inputs.sizes or {}
    assert {name: (size.size, size.source) for name, size in sizes.items()} == {
        "batch": (1, "batch"),
        "height": (8, "other arm"),
        "width": (16, "given"),
    }
    with pytest.raises(RequestError, match="no symbolic dimension `widht`"):
        arms_of(CompareRequest((opened, fixed), inputs=InputSettings(dims={"widht": 3})), silent)


def test_a_simulator_is_run_a_few_times_unless_more_are_asked_for() -> None:
    simulated, cpu = Target("qnn", "npu", simulated=True), Target("cpu", "cpu")
    assert AskedProtocol().on(cpu) == PerfProtocol(iterations=100, warmup=10, sessions=3)
    assert AskedProtocol().on(simulated) == PerfProtocol(iterations=3, warmup=1, sessions=1)
    assert AskedProtocol(iterations=50, sessions=2).on(simulated) == PerfProtocol(iterations=50, warmup=1, sessions=2)


@pytest.fixture
def composite(tmp_path: Path) -> Path:
    folder = tmp_path / "composite"
    folder.mkdir()
    build(folder / "encoder", "cpu", IMAGE, {"height": 8, "width": 4})
    build(folder / "decode", "cpu", FIXED)
    (folder / "parts.json").write_text(json.dumps({"schema": "winml/parts/1", "parts": {"encoder": {}, "decode": {}}}))
    return folder


def test_every_part_of_a_composite_model_is_measured_at_the_sizes_it_was_made_for(composite: Path) -> None:
    protocol = AskedProtocol(iterations=2, warmup=0, sessions=1)
    inputs = InputSettings(dims={"width": 5})
    result = perf_model(PerfRequest(str(composite), protocol=protocol, inputs=inputs), silent)
    assert isinstance(result, PerfParts)
    shapes = {part.part: part.result.inputs.tensors["x"].shape for part in result.parts}
    assert shapes == {"encoder": (1, 3, 8, 5), "decode": (1, 3, 8, 16)}
    assert result.parts[0].result.inputs.sizes["height"] == Size(8, "metadata", "from the metadata of the model")
    rows = parts_text(result).splitlines()
    assert rows[0] == "composite on cpu"
    assert [row.split()[0] for row in rows[2:]] == ["encoder", "decode"]


def test_commands_for_one_model_name_the_parts_of_a_composite_one(composite: Path) -> None:
    with pytest.raises(ModelFileError, match="is a composite of several: encoder, decode") as caught:
        model_argument(str(composite))
    assert f"-m {composite / 'decode'}" in str(caught.value.hint)
    with pytest.raises(RequestError, match="no part of the model has a symbolic dimension `depth`"):
        perf_model(PerfRequest(str(composite), inputs=InputSettings(dims={"depth": 2})), silent)
