"""The last step of a build: what it says of artifacts that are right, wrong, refused and slow, on real targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from onnx import numpy_helper

from winml.modelkit.building.build import BuildRequest, build
from winml.modelkit.building.compile.command import compile_multiple_onnx
from winml.modelkit.building.compile.stage import CompileStage
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.building.model_argument import model_argument
from winml.modelkit.building.proof.operations import read_inputs
from winml.modelkit.building.proof.prove import unproven
from winml.modelkit.building.result import BuildResult, failure_of
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import CheckFailed, RequestError, RunFailedError
from winml.modelkit.core.schemas import load_schema
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.graph import files
from winml.modelkit.knowledge.experiments.convolutions import quantized_conv_net
from winml.modelkit.knowledge.experiments.recorded import FOLDER as RECORDED
from winml.modelkit.session.session import WinMLSession
from winml.modelkit.worker.client import Worker

DATA = DataSection("random", limit=4)
SCHEMA = Draft202012Validator(load_schema("build") or {})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    return tmp_path


def made(folder: Path, model: Path, target: str = "cpu", word: str = "fp32", **more: Any) -> BuildResult:
    """A build without passes and analysis."""
    config = ConfigRequest(str(model), target=target, precision=word, optimize=False, data=DATA)
    result = build(BuildRequest(config, output=str(folder / "out"), analyze=False, **more), lambda event: None)
    assert not list(SCHEMA.iter_errors(to_json(result)))
    return result


def outliers(folder: Path) -> Path:
    """A product of which one input is a thousand times as large as the others and does not count."""
    weights = np.random.default_rng(0).normal(size=(16, 16)).astype(np.float32)
    weights[0] = 0
    scales = np.ones(16, np.float32)
    scales[0] = 1e5
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> m (float[4,16] x) => (float[4,16] y) '
        "{ large = Mul (x, s) y = MatMul (large, w) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(scales, "s"))
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, folder / "outliers.onnx")
    return folder / "outliers.onnx"


def test_a_build_that_computes_something_else_ends_with_5_and_the_next_thing_to_try(folder: Path) -> None:
    with pytest.raises(
        CheckFailed, match="output `y` is all zero; precision int8 must reach a cosine of 0.9"
    ) as caught:
        made(folder, outliers(folder), word="int8")
    assert "`-p dynamic`" in str(caught.value.hint)
    assert "--fallback-precision" in str(caught.value.hint)
    assert (failure_of(caught.value).proof or unproven("")).limit == 0.9
    assert failure_of(caught.value).stage == "prove"
    assert not (folder / "out").exists()


def test_a_build_may_go_on_with_the_next_precision_and_says_so(folder: Path) -> None:
    model = outliers(folder)
    result = made(folder, model, word="int8", fallback_precision=True)
    assert [entry.precision for entry in result.fallbacks] == ["int8", "dynamic"]
    assert (result.precision, result.proof.status) == ("fp32", "proven on target")
    assert "fell back from precision int8 to dynamic: on `cpu` output `y`" in result.notes[0]
    manifest = json.loads((folder / "out" / "build_manifest.json").read_bytes())
    assert manifest["fallbacks"] == to_json(result.fallbacks)
    # The same request finds its own folder.
    again = made(folder, model, word="int8", fallback_precision=True)
    assert again.proof.cache == "hit"


def test_a_build_says_that_nobody_wanted_a_proof(folder: Path) -> None:
    result = made(folder, outliers(folder), word="int8", prove=False)
    assert (result.proof.status, result.proof.reason) == ("not proven", "switched off")


def test_a_target_that_is_not_here_is_stood_in_for_by_the_cpu(folder: Path) -> None:
    proof = made(folder, outliers(folder), target="vitisai/npu").proof
    assert (proof.status, proof.on) == ("proven on cpu only (target not here)", "cpu")


def test_a_proof_that_takes_too_long_is_none_and_says_so(folder: Path) -> None:
    result = made(folder, outliers(folder), prove_timeout_s=0.001)
    assert (result.proof.status, result.proof.reason) == ("not proven", "it took longer than 0.001 s")
    assert result.warnings == ("the artifact is not proven: it took longer than 0.001 s",)


@pytest.mark.qnn
def test_what_only_the_npu_computes_wrongly_is_caught_there(folder: Path) -> None:
    model = RECORDED / "swin_w8a16.onnx"
    assert made(folder, model).proof.status == "proven on target", "the CPU computes it rightly"
    with pytest.raises(CheckFailed, match=r"on `qnn/npu` \(simulated\) output `logits`") as caught:
        made(folder, model, target="qnn/npu", overwrite=True)
    proof = failure_of(caught.value).proof
    assert proof is not None
    assert proof.agreement is not None
    assert proof.agreement.cosine is not None
    assert proof.agreement.cosine < 0.9


@pytest.mark.qnn
def test_an_artifact_that_its_target_refuses_is_an_error(folder: Path) -> None:
    files.save(quantized_conv_net(activations="uint16", weights="int4", per_channel=False), folder / "refused.onnx")
    with pytest.raises(RunFailedError, match="the artifact does not run on `qnn/npu`") as caught:
        made(folder, folder / "refused.onnx", target="qnn/npu")
    assert caught.value.exit_code == 1
    assert "--no-prove" in str(caught.value.hint)


@pytest.mark.qnn
def test_a_binary_that_the_simulator_cannot_load_is_not_proven_but_what_it_was_made_from_is(folder: Path) -> None:
    files.save(quantized_conv_net(), folder / "model.onnx")
    several = {"soc_model": "60,87"}
    config = ConfigRequest(
        str(folder / "model.onnx"), target="qnn/npu", precision="fp32", optimize=False, compile=True, ep_options=several
    )
    result = build(BuildRequest(config, output=str(folder / "out"), analyze=False), lambda event: None)
    proof = result.proof
    assert proof.status == "proven on target"
    assert str(proof.compiled).startswith("it is for several devices (soc_model=60,87): the compiled part of")
    assert f"compiled form not proven: {proof.compiled}" in result.warnings
    written = json.loads((folder / "out" / "build_config.json").read_bytes())
    assert written["compile"]["provider_options"] == several
    assert written["session"]["ep_options"] == {}, "a session that names several devices is refused"


class Damaging(Worker):
    """A process that has the EP, where compiled data is damaged before anybody opens it."""

    def call(self, op: str, args: dict[str, Any] | None = None, **options: Any) -> Any:
        if op == "compile.validate" and args is not None:
            for binary in Path(args["output"]).parent.glob("*.bin"):
                binary.write_bytes(binary.read_bytes()[: 2**10])
        return super().call(op, args, **options)


@pytest.mark.qnn
def test_a_compiled_form_that_does_not_open_is_not_delivered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator loads what was compiled for one SoC, so that not loading it counts."""
    monkeypatch.setattr(CompileStage, "_new_worker", lambda self: Damaging())
    model = folder / "model.onnx"
    files.save(quantized_conv_net(), model)
    (row,) = compile_multiple_onnx([model], folder / "compiled", {"target": "qnn/npu"})["models"]
    assert (row["status"], row["error"]["exit"]) == ("failed", 1)
    assert "does not open on `qnn/npu`" in row["error"]["message"]
    assert "--no-verify" in row["error"]["hint"]
    assert not (folder / "compiled").exists()
    config = ConfigRequest(str(model), target="qnn/npu", precision="fp32", optimize=False, compile=True)
    with pytest.raises(RunFailedError, match="does not open on `qnn/npu`") as caught:
        build(BuildRequest(config, output=str(folder / "out"), analyze=False), lambda event: None)
    assert "--no-compile" in str(caught.value.hint)
    assert not (folder / "out").exists()


@pytest.mark.qnn
def test_the_simulator_is_told_which_device_an_artifact_was_compiled_for(folder: Path) -> None:
    files.save(quantized_conv_net(), folder / "model.onnx")
    config = {
        "schema": "winml/build-config/1", "model": str(folder / "model.onnx"), "target": "qnn/npu",
        "compile": {"provider_options": {"soc_model": "87"}},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    request = BuildRequest(str(folder / "config.json"), output=str(folder / "out"), analyze=False)
    proof = build(request, lambda event: None).proof
    assert (proof.status, proof.compiled) == ("proven on target", None)


@pytest.mark.qnn
def test_a_compiled_artifact_passes_its_own_gate(folder: Path) -> None:
    """What QNN leaves to the CPU by a setting, at the border of the model, counts against nobody."""
    files.save(quantized_conv_net(), folder / "model.onnx")
    config = ConfigRequest(str(folder / "model.onnx"), target="qnn/npu", precision="fp32", optimize=False, compile=True)
    result = build(BuildRequest(config, output=str(folder / "out"), analyze=False), lambda event: None)
    placement = result.proof.placement
    assert placement is not None
    assert placement.by_setting == placement.cpu_ops == {"QuantizeLinear": 1}
    assert not placement.fallback
    for name in ("model.onnx", "out/model.onnx"):
        WinMLSession(folder / name, target=Target("qnn", "npu", simulated=True), strict_ep=True).close()
    (binary,) = (folder / "out").glob("*.bin")
    model_argument(str(folder / "out"))
    binary.unlink()
    binary.write_bytes(b"another")
    with pytest.raises(RequestError, match=f"{binary.name}` was changed after the build"):
        model_argument(str(folder / "out"))


def test_a_size_of_minus_one_is_open(tmp_path: Path) -> None:
    """As Paddle writes it."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }'
    )
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    onnx.save(model, tmp_path / "m.onnx")
    (found,) = read_inputs(tmp_path / "m.onnx")
    assert found.shape == (None, 3)
