"""Hugging Face folders where `-m` takes a model: inspected, exported once, built for every target."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from program import QUICK, failed, valid, winml_process
from test_build import Builds

import hf_zoo
import winml.modelkit as wk
from winml.modelkit.core.generation import read_decoder_folder
from winml.modelkit.core.target import Target
from winml.modelkit.session.composite import Composite

pytestmark = [pytest.mark.hf, pytest.mark.xdist_group("hf")]


@pytest.fixture(scope="module", autouse=True)
def _warm_exports() -> Iterator[None]:
    """Exports of all commands share a process that has imported torch; tests/building/export/test_warm.py tests it."""
    with wk.warm_exports():
        yield


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """One cache for all tests, as one user has."""
    made = Builds(tmp_path_factory.mktemp("builds"))
    made.env |= hf_zoo.ONE_THREAD
    return made


@pytest.fixture(scope="module")
def bert(builds: Builds, hf_folders: Path) -> dict[str, Any]:
    """A text classifier built for the CPU."""
    return builds.build("-m", hf_folders / "bert", "--target", "cpu", "-o", "bert")


def test_a_build_starts_from_a_folder(bert: dict[str, Any], builds: Builds) -> None:
    assert [stage["stage"] for stage in bert["stages"]] == ["export", "optimize"]
    folder = builds.folder / "bert"
    metadata = valid((folder / "export_metadata.json").read_text())
    assert metadata["parity"]["status"] == "passed"
    assert {row["output"] for row in metadata["parity"]["outputs"]} == {"logits"}
    assert {tuple(row["sizes"].values()) for row in metadata["parity"]["outputs"]} == {(2, 16), (1, 15)}
    manifest = builds.manifest("bert")
    assert manifest["skipped"] == ["quantize", "compile"]
    assert {"torch", "transformers", "onnxscript"} <= set(manifest["stages"][0]["libraries"])
    assert json.loads((folder / "config.json").read_text())["model_type"] == "bert", "the names of classes go along"


def test_a_config_of_a_folder_builds_the_same(bert: dict[str, Any], builds: Builds, hf_folders: Path) -> None:
    done = builds.winml("config", "-m", hf_folders / "bert", "--target", "cpu", "-o", "bert.json", "--overwrite")
    assert done.returncode == 0, done.stderr
    config = valid((builds.folder / "bert.json").read_text())
    assert config["export"]["task"] == "text-classification"
    again = builds.build("-c", "bert.json", "-o", "again")
    assert again["artifact"]["digest"] == bert["artifact"]["digest"]
    assert {stage["cache"] for stage in again["stages"]} == {"hit"}


def test_made_up_calibration_inputs_are_those_of_the_export(
    bert: dict[str, Any], builds: Builds, hf_folders: Path
) -> None:
    words = ("--target", "cpu", "-p", "int8", "--calibration", "random", "--json")
    made = valid(builds.winml("config", "-m", hf_folders / "bert", *words).stdout)["config"]["quantize"]["calibration"]
    assert made["ranges"] == {"input_ids": [3, 119], "attention_mask": [0, 1], "token_type_ids": [0, 1]}
    assert made["dims"] == {"batch": 1, "sequence": 16}


@pytest.mark.qnn
def test_one_export_serves_the_npu_which_takes_all_of_it(
    bert: dict[str, Any], builds: Builds, hf_folders: Path
) -> None:
    result = builds.build("-m", hf_folders / "bert", "--target", "qnn/npu", "--no-quant", "-o", "npu")
    assert result["stages"][0]["cache"] == "hit"
    counts = result["analysis"]
    assert counts["supported"] > 10
    assert (counts["partial"], counts["unsupported"], counts["unknown"]) == (0, 0, 0)
    assert "dimension sequence is fixed at 64 for qnn/npu" in " ".join(result["notes"])
    placement = builds.manifest("npu")["placement"]
    assert (placement["on_cpu"], placement["partitions"]) == (0, 1), "no GatherND splits the model in two"


@pytest.mark.qnn
def test_swin_is_right_on_the_npu_at_16_bits(builds: Builds, hf_folders: Path) -> None:
    words = ("--target", "qnn/npu", "--calibration", "random", "--samples", "4", "--no-analyze")
    built = builds.build("-m", hf_folders / "swin", *words, "-o", "swin")
    assert "npu-109" in " ".join(built["notes"])
    held = ("--reference", hf_folders / "swin", "--reference-target", "cpu", "--min-agreement", "0.95")
    data = ("--data", "random", "--samples", "4")
    on_npu = builds.winml("eval", "-m", "swin", *data, "--target", "qnn/npu", *held, "--json")
    assert valid(on_npu.stdout)["checks"][0]["answer"] == "within", on_npu.stderr


def test_commands_take_the_folder_itself(bert: dict[str, Any], builds: Builds, hf_folders: Path) -> None:
    model = hf_folders / "bert"
    dims = ("--dim", "batch=2", "--dim", "sequence=8")
    measured = builds.winml("perf", "-m", model, "--target", "cpu", *QUICK, *dims, "--json")
    assert valid(measured.stdout)["inputs"]["tensors"]["input_ids"]["shape"] == [2, 8]
    assert "exporting" not in measured.stderr, "the build has left the export in the cache"
    analyzed = builds.winml("analyze", "-m", model, "--target", "cpu", "--no-fusions", "--json")
    assert valid(analyzed.stdout)["supported"] is True


def test_a_composite_model_is_built_part_by_part_and_says_what_pytorch_says(builds: Builds, hf_folders: Path) -> None:
    words = ("-m", hf_folders / "t5", "--target", "cpu", "--no-analyze")
    result = builds.build(*words, "-o", "t5")
    assert [part["part"] for part in result["parts"]] == ["encoder", "prefill", "decode"]
    assert {part["proof"]["status"] for part in result["parts"]} == {"proven on target"}
    parts = valid((builds.folder / "t5" / "parts.json").read_text())
    assert set(parts["parts"]) == {"encoder", "prefill", "decode"}
    assert (builds.folder / "t5" / "decode" / "model.onnx").is_file()
    assert "holds another build" in failed(builds.winml("build", *words, "-o", "t5"), 2)
    with np.load(hf_folders / "t5" / hf_zoo.ANSWER) as stored:
        inputs = dict(stored)
    answer = inputs.pop("words")
    with Composite(builds.folder / "t5", target=Target("cpu", "cpu")) as composite:
        assert composite.generate(inputs, new_tokens=12).tolist() == answer.tolist()


def test_a_decoder_is_built_as_a_folder_that_generates_text(builds: Builds, hf_folders: Path) -> None:
    words = ("-m", hf_folders / "qwen2", "--target", "cpu", "--no-analyze")
    result = builds.build(*words, "-p", "int4", "-o", "qwen2")
    folder = builds.folder / "qwen2"
    assert result["proof"]["status"] == "proven on target"
    described = read_decoder_folder(folder)
    assert (described.file, described.takes_positions) == ("model.onnx", described.in_place is False)
    exported = json.loads((folder / "export_metadata.json").read_text(encoding="utf-8"))
    assert exported["parity"]["tokens"]["ties"] == 0
    perf = builds.winml("perf", "-m", folder, "--new-tokens", "4", "--sessions", "1", "--prompt-tokens", "4", "--json")
    assert valid(perf.stdout)["schema"] == "winml/perf-generation/1"


LARGE = """
import sys, torch, transformers
torch.manual_seed(0)
config = transformers.Qwen2Config(
    hidden_size=256, intermediate_size=1024, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2,
    vocab_size=16384, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
transformers.Qwen2ForCausalLM(config).save_pretrained(sys.argv[1])
"""


@pytest.mark.slow
def test_the_weights_of_a_large_decoder_are_in_files_of_their_own(builds: Builds) -> None:
    pytest.importorskip("onnxruntime_genai", reason="the extra `genai` is not installed")
    subprocess.run([sys.executable, "-c", LARGE, builds.folder / "large"], check=True, timeout=500)
    words = ("build", "-m", builds.folder / "large", "-p", "int4", "--target", "cpu", "-o", "large_int4")
    env, builds.env = builds.env, {**builds.env, "WINML_MEMORY_LIMIT": "100MiB"}
    refused = builds.winml(*words)
    builds.env = env
    assert refused.returncode == 1
    assert "MiB of memory, more than the limit of 100 MiB" in refused.stderr
    assert not (builds.folder / "large_int4").exists()
    result = builds.build(*words[1:])
    folder = builds.folder / "large_int4"
    assert result["proof"]["status"] == "proven on target"
    assert (folder / "export.onnx.data").stat().st_size > 2**24
    assert result["artifact"]["bytes"] == sum(
        (folder / name).stat().st_size for name in ("model.onnx", "quantized.onnx.data")
    )
    perf = builds.winml("perf", "-m", folder, "--new-tokens", "4", "--sessions", "1", "--prompt-tokens", "4", "--json")
    assert valid(perf.stdout)["schema"] == "winml/perf-generation/1"


@pytest.mark.slow
def test_the_parts_of_donut_fit_one_another(builds: Builds) -> None:
    made = subprocess.run([sys.executable, hf_zoo.__file__, builds.folder, "donut"], check=False, timeout=500)
    assert made.returncode == 0
    result = builds.build("-m", builds.folder / "donut", "--target", "cpu", "--no-analyze", "-o", "donut_parts")
    assert [part["proof"]["status"] for part in result["parts"]] == ["proven on target"] * 3


@pytest.mark.qnn
@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "mistral", "qwen3", "efficientnet", "swinv2"])
def test_families_that_were_wrong_on_the_npu_are_proven_there(family: str, builds: Builds) -> None:
    """The table of docs/building.md."""
    made = subprocess.run([sys.executable, hf_zoo.__file__, builds.folder, family], check=False, timeout=500)
    assert made.returncode == 0
    words = ("--target", "qnn/npu", "-p", "w8a16", "--calibration", "random", "--samples", "8", "--no-analyze")
    result = builds.build("-m", builds.folder / family, *words, "-o", f"{family}_npu")
    for part in result.get("parts", [result]):
        assert part["proof"]["status"] == "proven on target"
        assert part["proof"]["agreement"]["cosine"] >= 0.95


@pytest.mark.qnn
@pytest.mark.slow
def test_a_decoder_for_the_npu_reads_prompts_in_pieces_and_its_graphs_share_their_weights(
    builds: Builds, hf_folders: Path
) -> None:
    sizes = ("--dim", "batch=2", "--dim", "sequence=4", "--dim", "total=24")
    words = ("--target", "qnn/npu", "-p", "fp16", *sizes, "--no-analyze")
    result = builds.build("-m", hf_folders / "qwen2", *words, "-o", "qwen2_npu")
    assert [part["proof"]["placement"]["cpu_ops"] for part in result["parts"]] == [{}, {}]
    folder = builds.folder / "qwen2_npu"
    with np.load(hf_folders / "qwen2" / hf_zoo.ANSWER) as stored:
        inputs = dict(stored)
    expected = inputs.pop("words")
    assert inputs["input_ids"].shape[1] > 4
    with Composite(folder, target=Target("qnn", "npu", simulated=True)) as composite:
        made = composite.generate(inputs, new_tokens=12)
    assert made[0].tolist() == expected[0].tolist(), "the text with padding"
    # At the ninth token of the other text PyTorch rates two alike: they are 0.00003 apart, of 1.5 between most.
    assert made[1, :8].tolist() == expected[1, :8].tolist()
    compiled = builds.winml("compile", "-m", folder, "--target", "qnn/npu", "--output-dir", "qwen2_ctx", "--json")
    sharing = valid(compiled.stdout)["sharing"]
    weights = sum(
        math.prod(weight.dims) * 2 for weight in onnx.load(folder / "decode" / "model.onnx").graph.initializer
    )
    saved = sharing["bytes_alone"] - sharing["bytes"]
    assert sharing["shared"] is True
    assert saved > 0.5 * weights, "stored once, not in each of the graphs"


def test_inspect_reads_a_folder_without_torch(hf_folders: Path, tmp_path: Path) -> None:
    for name in ("torch", "transformers", "numpy", "onnx"):
        (tmp_path / "poison" / name).mkdir(parents=True)
        (tmp_path / "poison" / name / "__init__.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    path = os.pathsep.join(filter(None, [str(tmp_path / "poison"), os.environ.get("PYTHONPATH", "")]))
    words = ("inspect", "-m", hf_folders / "t5")
    env = {**os.environ, "PYTHONPATH": path}
    value = valid(winml_process(*words, "--json", env=env).stdout)
    assert (value["architecture"], value["task"]) == ("T5ForConditionalGeneration", "text2text-generation")
    assert [part["part"] for part in value["parts"]] == ["encoder", "prefill", "decode"]
    assert value["parameters"] == 41_216
    text = winml_process(*words, env=env).stdout
    assert "part decode" in text


def broken(source: Path, folder: Path, **config: Any) -> Path:
    """A copy of a model folder with another config."""
    shutil.copytree(source, folder)
    value = json.loads((source / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(value))
    return folder


def test_what_cannot_be_exported_is_one_error_with_a_hint(hf_folders: Path, tmp_path: Path) -> None:
    builds, source = Builds(tmp_path), hf_folders / "bert"

    def refused(model: Path | str, *words: str, exit_code: int = 2) -> str:
        return failed(builds.winml("export", "-m", model, "-o", "out", *words), exit_code)

    code = broken(source, tmp_path / "code", auto_map={"AutoModel": "modeling.Mine"})
    text = refused(code)
    assert "needs code that comes with it (`modeling.Mine`)" in text
    assert "--trust-remote-code" in text
    newer = {"model_type": "berd", "architectures": ["BerdForSequenceClassification"]}
    text = refused(broken(source, tmp_path / "berd", **newer))
    assert "has no class `BerdForSequenceClassification`, which saved the model" in text
    assert "`pip install -U transformers`" in text
    empty = tmp_path / "empty"
    empty.mkdir()
    shutil.copy(source / "config.json", empty)
    assert f"`{empty}` has no weights" in refused(empty)
    (empty / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    assert "is a Git LFS pointer, not the file itself" in failed(builds.winml("inspect", "-m", empty), 2)
    assert "17<=x<=24" in refused(source, "--opset", "16")
    assert "has no axis or input `sequenze`" in refused(source, "--shape", "sequenze=8")
    assert "unknown task `fill-masks`" in refused(source, "--task", "fill-masks")
    assert "has no part `encoder` for text-classification" in refused(source, "--part", "encoder")
    assert not (tmp_path / "out").exists()


def test_a_missing_extra_names_what_to_install(
    hf_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the program sees where torch is not installed."""
    here = metadata.version

    def without_torch(name: str) -> str:
        if name == "torch":
            raise metadata.PackageNotFoundError(name)
        return here(name)

    monkeypatch.setattr(metadata, "version", without_torch)
    text = failed(Builds(tmp_path).winml("export", "-m", hf_folders / "bert", "-o", "out"), 3)
    assert "needs the Python package `torch`" in text
    assert "pip install 'winml-modelkit[hf]'" in text


def test_an_export_tells_that_the_tokenizer_is_of_another_model(
    bert: dict[str, Any], builds: Builds, hf_folders: Path
) -> None:
    model = shutil.copytree(hf_folders / "bert", builds.folder / "other-tokenizer")
    tokenizer = {"added_tokens": [{"id": 7777}], "model": {"vocab": {}}}
    (model / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    done = builds.winml("export", "-m", model, "-o", "other-onnx", "--json")
    assert done.returncode == 0, done.stderr
    said = "the tokenizer has tokens up to number 7777"
    assert any(said in warning for warning in valid(done.stdout)["warnings"])
    assert f"warning: {said}" in done.stderr
    assert any(said in warning for warning in builds.manifest("other-onnx")["warnings"])


def test_a_hub_model_that_is_not_cached_says_so_offline(tmp_path: Path) -> None:
    builds = Builds(tmp_path)
    builds.env |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    text = failed(builds.winml("perf", "-m", "some-org/some-model", "--revision", "v1"), 3)
    assert "`some-org/some-model` at `v1` is not in the hub's cache on this machine" in text
