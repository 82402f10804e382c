"""`winml config` and `winml build`, on the sample and small models."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from program import DIVIDED, Done, failed, valid, winml_process
from program import winml as run

import model_zoo
from ctrl_c import Telling, press_ctrl_c, start
from winml.modelkit import sample


class Builds:
    """The program with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "cache"
        self.env = {**os.environ, "WINML_CACHE": str(self.cache)}

    def winml(self, *args: str | Path) -> Done:
        return run(*args, cwd=self.folder, env=self.env)

    def build(self, *args: str | Path) -> dict[str, Any]:
        result = self.winml("build", *args, "--json")
        assert result.returncode == 0, result.stderr
        return valid(result.stdout)

    def manifest(self, name: str) -> dict[str, Any]:
        return valid((self.folder / name / "build_manifest.json").read_text(encoding="utf-8"))


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)


INT8 = ("--sample", "--target", "cpu", "-p", "int8")


@pytest.fixture(scope="module")
def int8(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """The sample built for the CPU, once; torch cannot be imported meanwhile."""
    made = Builds(tmp_path_factory.mktemp("int8"))
    poison = made.folder / "poison"
    for name in ("torch", "transformers", "pandas", "scipy"):
        (poison / name).mkdir(parents=True)
        (poison / name / "__init__.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    path = os.pathsep.join(filter(None, [str(poison), os.environ.get("PYTHONPATH", "")]))
    words = ("build", *INT8, "-o", "out", "--json")
    done = winml_process(*words, cwd=made.folder, env={**made.env, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    valid(done.stdout)
    return made


def test_a_build_folder_holds_every_stage_and_where_it_comes_from(int8: Builds) -> None:
    names = {path.name for path in (int8.folder / "out").iterdir()}
    assert names == {
        "optimized.onnx", "quantized.onnx", "model.onnx", "build_config.json", "build_manifest.json",
        "analyze_result.json",
    }  # fmt: skip
    manifest = int8.manifest("out")
    assert [stage["stage"] for stage in manifest["stages"]] == ["optimize", "quantize"]
    assert manifest["skipped"] == ["export", "compile"]
    assert manifest["calibration"]["digest"].startswith("sha256:")
    assert manifest["stages"][1]["parent"] == manifest["stages"][0]["digest"]
    valid((int8.folder / "out" / "build_config.json").read_text())
    valid((int8.folder / "out" / "analyze_result.json").read_text())


def test_int8_for_the_cpu_is_uint8_activations_and_int8_weights_per_channel(int8: Builds) -> None:
    model = onnx.load(int8.folder / "out" / "model.onnx")
    constants = {t.name: t for t in model.graph.initializer}
    convs = [n for n in model.graph.node if n.op_type == "Conv"]
    produced = {name: n for n in model.graph.node for name in n.output}
    for conv in convs:
        weight = produced[conv.input[1]]
        assert weight.op_type == "DequantizeLinear"
        assert constants[weight.input[0]].data_type == onnx.TensorProto.INT8
        assert constants[weight.input[1]].dims == [constants[weight.input[0]].dims[0]]
        activation = produced[conv.input[0]]
        assert constants[activation.input[2]].data_type == onnx.TensorProto.UINT8
    assert convs


@pytest.mark.posix("they are copies there")
def test_files_of_a_build_are_links_to_the_store(int8: Builds) -> None:
    out = int8.folder / "out"
    assert (out / "model.onnx").stat().st_ino == (out / "quantized.onnx").stat().st_ino
    assert int8.manifest("out")["files_by"] == "link"


@pytest.mark.windows
def test_files_of_a_build_are_copies_that_share_nothing(int8: Builds) -> None:
    out = int8.folder / "out"
    assert (out / "model.onnx").stat().st_ino != (out / "quantized.onnx").stat().st_ino
    assert int8.manifest("out")["files_by"] == "copy"


def test_a_second_build_comes_from_the_cache_whole(int8: Builds) -> None:
    again = int8.build(*INT8, "-o", "again")
    assert [stage["cache"] for stage in again["stages"]] == ["hit", "hit"]
    assert again["artifact"]["digest"] == int8.manifest("out")["artifact"]["digest"]


def test_two_fresh_caches_give_the_same_bytes(int8: Builds, builds: Builds) -> None:
    shutil.copy(sample.MODEL, builds.folder / "renamed.onnx")
    builds.build(
        "-m",
        "renamed.onnx",
        "--target",
        "cpu",
        "-p",
        "int8",
        "--calibration",
        sample.CALIBRATION,
        "-o",
        "out",
        "--no-analyze",
    )
    for name in ("optimized.onnx", "quantized.onnx", "model.onnx"):
        assert (builds.folder / "out" / name).read_bytes() == (int8.folder / "out" / name).read_bytes()


def test_a_config_builds_what_the_options_built(int8: Builds) -> None:
    result = int8.winml("config", *INT8, "-o", "config.json", "--overwrite")
    assert result.returncode == 0, result.stderr
    assert "uint8" in result.stdout
    built = int8.build("-c", "config.json", "-o", "from_config")
    assert built["artifact"]["digest"] == int8.manifest("out")["artifact"]["digest"]
    assert [stage["cache"] for stage in built["stages"]] == ["hit", "hit"]


def test_a_config_goes_to_stdout_and_leaves_nothing_open(builds: Builds) -> None:
    config = valid(builds.winml("config", *INT8).stdout)
    assert config["precision"] == "int8"
    assert config["quantize"]["activation_type"] == "uint8"
    assert config["quantize"]["calibration"]["digest"].startswith("sha256:")
    assert config["optimize"]["passes"]
    whole = valid(builds.winml("config", *INT8, "--json").stdout)
    assert whole["config"] == config


def test_auto_on_the_npu_is_w8a16_with_fixed_dimensions(builds: Builds) -> None:
    result = builds.winml("config", "--sample", "--target", "qnn/npu", "--json")
    value = valid(result.stdout)
    assert value["config"]["precision"] == "w8a16"
    assert value["config"]["quantize"]["rules"] == "qnn"
    assert value["config"]["optimize"]["fixed_dims"] == {"batch": 1}
    assert any("--dim batch=N" in note for note in value["notes"])


@pytest.mark.qnn
def test_a_build_for_the_npu_runs_there_whole(builds: Builds) -> None:
    built = builds.build("--sample", "--target", "qnn/npu", "-o", "npu", "--no-analyze")
    # The EP leaves the first QuantizeLinear and the last DequantizeLinear to the CPU by a setting.
    assert built["proof"]["placement"]["by_setting"] == {"QuantizeLinear": 1, "DequantizeLinear": 1}
    perf = valid(run("perf", "-m", builds.folder / "npu", "--target", "qnn/npu", "--strict-ep", "--sessions", "1",
                     "--iterations", "2", "--warmup", "0", "--json").stdout)  # fmt: skip
    assert perf["placement"]["fallback"] is False


def test_an_ep_that_is_not_here_is_built_for_all_the_same(builds: Builds) -> None:
    built = builds.build("--sample", "--target", "vitisai/npu", "-o", "out")
    assert built["precision"] == "fp32"
    assert any("vitisai" in note for note in built["notes"])


def test_compiling_for_an_ep_that_is_not_here_fails_before_any_work(builds: Builds) -> None:
    text = failed(builds.winml("build", "--sample", "--target", "vitisai/npu", "--compile", "-o", "out"), 3)
    assert "vitisai" in text
    assert not (builds.folder / "out").exists()


def test_an_ep_nobody_has_heard_of_is_a_wrong_request(builds: Builds) -> None:
    assert "qnn" in failed(builds.winml("build", "--sample", "--target", "qnm/npu", "-o", "out"), 2)


def test_static_quantization_without_data_is_refused_with_the_way_out(builds: Builds) -> None:
    text = failed(builds.winml("build", "-m", sample.MODEL, "--target", "cpu", "-p", "int8", "-o", "out"), 2)
    assert "--calibration" in text
    assert "--calibration random" in text


def test_sizes_that_nobody_knows_are_refused_by_name_with_the_options_to_give_them(builds: Builds) -> None:
    model = model_zoo.text_model("g (float[batch,3,height,width] x) => (float[batch,3,height,width] y) { y = Relu(x) }")
    model_zoo.saved(model, builds.folder / "open.onnx")
    words = ("build", "-m", "open.onnx", "--target", "qnn/npu", "--no-quant", "-o", "out")
    text = failed(builds.winml(*words), 2)
    assert "dimensions `height`, `width` have no size" in text
    assert "--dim height=224 --dim width=224" in text
    assert "--shape INPUT=N,N" in text
    assert not (builds.folder / "out").exists()


def test_data_that_no_stage_uses_is_said(builds: Builds) -> None:
    made = builds.build("--sample", "--target", "cpu", "-p", "fp16", "--calibration", sample.CALIBRATION, "-o", "out")
    assert "the calibration data is not used: precision fp16 needs none" in made["notes"]
    assert not any("calibration" in note for note in builds.build("--sample", "--target", "cpu", "-o", "two")["notes"])


def test_what_stages_changed_and_what_speaks_against_them_is_said(builds: Builds) -> None:
    made = builds.build("--sample", "--target", "cpu", "-p", "w8a16", "-o", "out")
    assert "quantize: the opset was raised from 17 to 21: pairs of 16-bit and 4-bit types need it" in made["notes"]
    assert any("16-bit activations are slower" in warning for warning in made["warnings"])


def test_random_calibration_is_said_and_recorded(builds: Builds) -> None:
    built = builds.build("-m", sample.MODEL, "-p", "int8", "--target", "cpu", "--calibration", "random",
                         "--samples", "4", "-o", "out", "--no-analyze")  # fmt: skip
    assert any("random" in warning for warning in built["warnings"])
    assert builds.manifest("out")["calibration"]["source"] == "random"


def test_nothing_to_do_gives_the_model_itself(builds: Builds) -> None:
    builds.build("--sample", "--target", "cpu", "--no-quant", "--no-optimize", "--no-analyze", "-o", "out")
    assert (builds.folder / "out" / "model.onnx").read_bytes() == sample.MODEL.read_bytes()


def test_external_data_goes_along(builds: Builds) -> None:
    model = onnx.load(sample.MODEL)
    onnx.save(model, builds.folder / "big.onnx", save_as_external_data=True, location="big.data", size_threshold=0)
    for out, more in (("plain", ["--no-optimize"]), ("optimized", [])):
        builds.build("-m", "big.onnx", "--target", "cpu", "--no-quant", "--no-analyze", "-o", out, *more)
        perf = run("perf", "-m", builds.folder / out, "--target", "cpu", "--sessions", "1", "--iterations", "1")
        assert perf.returncode == 0, perf.stderr


def test_a_build_in_the_cache_has_a_folder_that_commands_take(builds: Builds) -> None:
    built = builds.build("--sample", "--target", "cpu", "--no-quant", "--use-cache", "--no-analyze")
    assert Path(built["folder"]).is_relative_to(builds.cache)
    assert run("inspect", "-m", built["folder"]).returncode == 0


def test_the_cache_is_explained_part_by_part(builds: Builds) -> None:
    builds.build("--sample", "--target", "cpu", "--no-quant", "--no-analyze", "--use-cache")
    again = builds.winml("build", "--sample", "--target", "cpu", "--no-quant", "--no-analyze", "--disable",
                         "conv_bn_fusion", "--use-cache", "--explain-cache")  # fmt: skip
    assert "section.passes" in again.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "winml/build-config/2"}, "winml/build-config/2"),
        ({"quantise": None}, "did you mean `quantize`?"),
        ({"optimize": {"passes": ["conv_bn_fusoin"]}}, "conv_bn_fusion"),
        ({"precision": "int9"}, "`precision` cannot be `int9`"),
        ({"session": {"ep_options": {"threads": "many"}}}, "threads"),
        ({"compile": {"compiler": "ort"}}, "cannot compile models"),
        ({"quantize": {"mode": "static"}}, "static quantization needs data"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(builds: Builds, change: dict[str, Any], message: str) -> None:
    config = {"schema": "winml/build-config/1", "model": str(sample.MODEL), "target": "cpu", **change}
    (builds.folder / "config.json").write_text(json.dumps(config))
    assert message in failed(builds.winml("build", "-c", "config.json", "-o", "out"), 2)
    assert not (builds.folder / "out").exists()


def test_data_without_a_digest_gets_one_and_no_result_of_other_data(builds: Builds) -> None:
    section = {"mode": "static", "activation_type": "uint8", "weight_type": "int8"}
    data = {"source": "few.npz"}
    config = {
        "schema": "winml/build-config/1", "model": str(sample.MODEL), "precision": "int8",
        "quantize": {**section, "calibration": data},
    }  # fmt: skip
    (builds.folder / "config.json").write_text(json.dumps(config))
    digests = set()
    with np.load(sample.CALIBRATION) as stored:
        for scale in (1, 2):
            np.savez(builds.folder / "few.npz", **{name: stored[name][:4] * scale for name in stored.files})
            made = builds.build("-c", "config.json", "--no-analyze", "-o", f"out{scale}")
            assert [stage["cache"] for stage in made["stages"]] == ["miss"]
            digests.add(builds.manifest(f"out{scale}")["calibration"]["digest"])
    assert len(digests) == 2
    assert None not in digests


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_config_may_be_in_the_encoding_of_a_windows_shell(builds: Builds, encoding: str) -> None:
    config = {"schema": "winml/build-config/1", "model": str(sample.MODEL), "target": "cpu"}
    (builds.folder / "config.json").write_text(json.dumps(config), encoding=encoding)
    builds.build("-c", "config.json", "--no-analyze", "-o", "out")


def test_an_option_beside_a_config_is_refused(builds: Builds) -> None:
    (builds.folder / "config.json").write_text("{}")
    text = failed(builds.winml("build", "-c", "config.json", "-p", "int8", "-o", "out"), 2)
    assert "cannot be combined" in text


def test_calibration_data_that_changed_since_the_config_was_made_is_refused(builds: Builds) -> None:
    data = builds.folder / "data.npz"
    shutil.copy(sample.CALIBRATION, data)
    made = builds.winml(
        "config", "-m", sample.MODEL, "--target", "cpu", "-p", "int8", "--calibration", data, "-o", "c.json"
    )
    assert made.returncode == 0, made.stderr
    images = np.load(sample.CALIBRATION)["image"]
    np.savez(data, image=images[::-1].copy())
    text = failed(builds.winml("build", "-c", "c.json", "-o", "out"), 2)
    assert "digest" in text


def test_a_folder_with_other_files_is_left_alone(builds: Builds) -> None:
    (builds.folder / "out").mkdir()
    (builds.folder / "out" / "notes.txt").write_text("mine")
    text = failed(builds.winml("build", "--sample", "--target", "cpu", "--overwrite", "-o", "out"), 2)
    assert "notes.txt" in text
    assert (builds.folder / "out" / "notes.txt").read_text() == "mine"


def test_ctrl_c_leaves_nothing_and_the_next_build_goes_on(builds: Builds) -> None:
    images = np.random.default_rng(0).random((4000, 1, 48, 48), dtype=np.float32)
    np.savez(builds.folder / "data.npz", image=images)
    args = [
        "build",
        "-m",
        str(sample.MODEL),
        "--target",
        "cpu",
        "-p",
        "int8",
        "--calibration",
        "data.npz",
        "--no-analyze",
    ]
    telling = Telling(builds.folder)
    with start(telling.argv(*args, "-o", "out"), cwd=builds.folder, env=builds.env) as process:
        telling.wait_for("calibrating", process)
        press_ctrl_c(process)
        _, text = process.communicate(timeout=60)
    assert process.returncode == 130, text
    assert not (builds.folder / "out").exists()
    assert not [p for p in builds.folder.iterdir() if p.name.startswith(".winml-tmp-")]
    built = builds.build(*args[1:-1], "--no-analyze", "--samples", "8", "-o", "out")
    assert [stage["cache"] for stage in built["stages"]] == ["hit", "miss"]
    assert builds.winml("cache", "verify").returncode == 0


def test_a_pass_that_takes_the_process_down_is_left_out(builds: Builds) -> None:
    model_zoo.saved(model_zoo.crashes_when_folded(), builds.folder / "crash.onnx")
    words = ("-m", "crash.onnx", "--target", "cpu", "--no-analyze", "-o", "out")
    # What folds in a session takes that down, too: such an artifact does not pass for a good one.
    assert "does not run on `cpu`" in failed(builds.winml("build", *words), 1)
    made = builds.build(*words, "--no-prove")
    assert any(f"skipped constant_folding: its process crashed with {DIVIDED}" in text for text in made["warnings"])


def test_an_analysis_that_crashed_is_not_kept_for_the_next_build(builds: Builds) -> None:
    model_zoo.saved(model_zoo.crashes_when_folded(), builds.folder / "crash.onnx")
    made = builds.build("-m", "crash.onnx", "--target", "cpu", "--no-optimize", "--no-prove", "-o", "out")
    assert f"crashed with {DIVIDED}" in made["warnings"][0]
    assert not list((builds.cache / "stages").glob("*.json"))


@pytest.mark.qnn
def test_a_compiled_build_runs_on_the_npu(builds: Builds) -> None:
    built = builds.build("--sample", "--target", "qnn/npu", "-p", "fp32", "--compile", "-o", "npu", "--no-analyze")
    assert [stage["stage"] for stage in built["stages"]] == ["optimize", "compile"]
    assert any("EPContext" in n.op_type for n in onnx.load(builds.folder / "npu" / "model.onnx").graph.node)
    assert {"compiled.onnx", "model.onnx"} < {path.name for path in (builds.folder / "npu").iterdir()}
    perf = run("perf", "-m", builds.folder / "npu", "--target", "qnn/npu", "--sessions", "1", "--iterations", "1")
    assert perf.returncode == 0, perf.stderr
    again = builds.build("--sample", "--target", "qnn/npu", "-p", "fp32", "--compile", "-o", "npu", "--no-analyze")
    assert [stage["cache"] for stage in again["stages"]] == ["hit", "hit"]


def test_an_ep_that_cannot_compile_is_refused_with_those_that_can(builds: Builds) -> None:
    text = failed(builds.winml("build", "--sample", "--target", "cpu", "--compile", "-o", "out"), 2)
    assert "`qnn`" in text


def test_a_build_of_a_build_folder_keeps_how_it_is_opened(builds: Builds) -> None:
    builds.build("--sample", "--target", "cpu", "--threads", "2", "--no-optimize", "--no-analyze", "-o", "first")
    for words, threads in (((), 2), (("--threads", "1"), 1)):
        made = valid(builds.winml("config", "-m", "first", "--target", "cpu", *words, "--json").stdout)
        assert made["config"]["session"]["threads"] == threads
