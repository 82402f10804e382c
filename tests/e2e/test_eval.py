"""`winml eval` as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program import failed, valid, winml

import data_zoo
import model_zoo
import task_zoo
from ctrl_c import Telling, press_ctrl_c, start
from winml.modelkit import sample

CPU = ("--target", "cpu", "--threads", "1")
DIGITS = ("--data", sample.TEST, "--task", "image-classification")


def evaluated(*args: str | Path) -> dict[str, Any]:
    result = winml("eval", *args, "--json")
    assert result.returncode == 0, result.stderr
    return valid(result.stdout)


def test_the_sample_is_evaluated_with_an_interval(tmp_path: Path) -> None:
    value = evaluated("--sample", *CPU, "-o", tmp_path / "r.json")
    accuracy = value["metrics"]["accuracy"]
    assert accuracy["value"] == 0.994
    assert accuracy["interval"]["low"] < 0.994 < accuracy["interval"]["high"]
    assert value["samples"]["candidate"]["series"]["top1"].count("0") == 3
    assert value["data"]["samples"] == len(value["samples"]["candidate"]["predictions"]) == 500
    assert value["placement"]["requested"] == "CPUExecutionProvider"
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8")) == value


def test_the_text_shows_metrics_drop_and_distance() -> None:
    result = winml("eval", "--sample", *CPU, "--samples", "40", "--reference", sample.MODEL)
    assert result.returncode == 0, result.stderr
    assert "digits.onnx on cpu" in result.stdout
    assert "40 samples of test.npz" in result.stdout
    assert "+0.00 points" in result.stdout
    assert "40 of 40" in result.stdout


def test_a_model_that_lost_its_mind_fails_both_checks(tmp_path: Path) -> None:
    blind, out = task_zoo.blind_digits(tmp_path), tmp_path / "r.json"
    args = ("-m", blind, *DIGITS, *CPU, "--samples", "100", "--reference", sample.MODEL)
    result = winml("eval", *args, "--max-drop", "0.01", "--min-metric", "0.9", "-o", out, "--json")
    message = failed(result, 5)
    assert "accuracy dropped by 0.8" in message
    assert "the minimum is 0.9" in message
    value = valid(result.stdout)
    assert {c["check"]: c["answer"] for c in value["checks"]} == {"min-metric": "exceeded", "max-drop": "exceeded"}
    assert value["agreement"]["value"] < 0.2
    assert value["distance"][0]["incomparable"] == 100  # zeros have no angle
    assert json.loads(out.read_text(encoding="utf-8"))["checks"] == value["checks"]


def test_a_limit_inside_the_interval_cannot_be_told_and_the_value_alone_can() -> None:
    args = ("--sample", *CPU, "--samples", "60", "--min-metric", "0.98")
    result = winml("eval", *args, "--json")
    assert "cannot tell: accuracy is" in failed(result, 1)
    assert valid(result.stdout)["checks"][0]["answer"] == "inconclusive"
    assert evaluated(*args, "--judge", "value")["checks"][0]["answer"] == "within"


@pytest.mark.parametrize("task", [name for name in task_zoo.CASES if name != "image-classification"])
def test_every_task_runs_from_the_command_line(task: str, tmp_path: Path) -> None:
    case = task_zoo.CASES[task](tmp_path)
    options = [word for name, text in case.options.items() for word in ("--task-option", f"{name}={text}")]
    value = evaluated("-m", case.model, "--data", case.data, "--task", task, "--reference", case.model, *CPU, *options)
    assert {n: m["value"] for n, m in value["metrics"].items()} == pytest.approx(case.metrics, abs=0.01)
    assert all(d["value"] == 0.0 for d in value["drop"].values())
    assert all(d["equal"] == d["runs"] > 0 for d in value["distance"])


def test_a_folder_by_class_is_evaluated_by_the_names_of_the_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    data_zoo.image_processor(model, size=16)
    (model / "config.json").write_text(
        json.dumps({"id2label": {"0": "cat", "1": "dog"}, "architectures": ["ResNetForImageClassification"]})
    )
    model_zoo.saved(model_zoo.conv_net(), model / "model.onnx")
    photos = data_zoo.images(tmp_path / "photos", {"cat": 4, "dog": 2}, size=20)
    value = evaluated("-m", model / "model.onnx", "--data", photos, *CPU)
    assert value["task"] == "image-classification"
    assert value["data"]["samples"] == 6
    shutil.move(photos / "dog", photos / "dgo")
    message = failed(winml("eval", "-m", model / "model.onnx", "--data", photos, *CPU), 2)
    assert "no class `dgo`" in message
    assert "did you mean `dog`" in message


def test_a_build_folder_brings_its_own_evaluation(tmp_path: Path) -> None:
    shutil.copy(sample.MODEL, tmp_path / "model.onnx")
    section = {"task": "image-classification", "data": {"source": str(sample.TEST), "limit": 30}, "min_metric": 0.999}
    (tmp_path / "build_config.json").write_text(
        json.dumps({"schema": "winml/build-config/1", "session": {"threads": 1}, "eval": section})
    )
    result = winml("eval", "-m", tmp_path, "--target", "cpu", "--json")
    value = valid(result.stdout)
    assert result.returncode == 1, result.stderr
    assert value["data"]["limit"] == 30
    assert value["checks"][0]["limit"] == 0.999


def test_an_agreement_needs_something_to_agree_with() -> None:
    error = failed(winml("eval", "--sample", *CPU, "--min-agreement", "0.9"), 2)
    assert "`--min-agreement` needs a reference" in error


@pytest.mark.qnn
def test_outputs_on_the_npu_are_held_against_the_cpu(conv_w8a8: Path) -> None:
    value = evaluated(
        "-m", conv_w8a8, "--data", "random", "--samples", "3", "--target", "qnn/npu", "--reference-target", "cpu",
        "--min-agreement", "0.99",
    )  # fmt: skip
    assert [(c["check"], c["answer"]) for c in value["checks"]] == [("min-agreement", "within")]
    assert (value["target"], value["simulated"], value["reference"]["target"]) == ("qnn/npu", True, "cpu")
    assert value["distance"][0]["cosine"]["min"] > 0.99
    assert value["distance"][0]["runs"] == 3
    assert value["placement"]["nodes"]["QNNExecutionProvider"] > 0


@pytest.mark.qnn
def test_symbolic_dimensions_are_fixed_from_the_data_for_the_npu() -> None:
    value = evaluated("--sample", "--target", "qnn/npu", "--samples", "5")
    assert value["fixed_dims"] == {"batch": 1}
    assert value["metrics"]["accuracy"]["value"] == 1.0
    assert any("batch=1" in w for w in value["warnings"])


@pytest.mark.qnn
def test_a_reference_that_the_target_does_not_run_goes_to_the_cpu_and_that_is_told(
    conv_w8a8: Path, tmp_path: Path
) -> None:
    refused = model_zoo.text_model("g (double[1,3,16,16] x) => (double[1,3,16,16] y) { y = Sin(x) }")
    reference = model_zoo.saved(refused, tmp_path / "double.onnx")
    np.savez(tmp_path / "d.npz", x=np.random.default_rng(0).random((2, 3, 16, 16)))
    value = evaluated(
        "-m",
        conv_w8a8,
        "--data",
        tmp_path / "d.npz",
        "--task",
        "outputs",
        "--target",
        "qnn/npu",
        "--reference",
        reference,
    )
    assert value["reference"]["target"] == "cpu"
    assert any("the reference runs on cpu, because" in w for w in value["warnings"])


def _npz(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "d.npz", **arrays)
    return folder / "d.npz"


IMAGES = np.zeros((3, 1, 48, 48), np.float32)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"image": IMAGES, "label": np.array([0, 10, 1])}, "label 10 of sample 1"),
        ({"image": IMAGES, "label": np.array([0, -1, 1])}, "out of range"),
        ({"image": IMAGES, "label": np.array([0.5, 1, 1])}, "must be a class"),
        ({"image": IMAGES}, "has no labels"),
        ({"image": IMAGES[:0], "label": np.arange(0)}, "has no samples"),
        ({"image": IMAGES[:, :, :40], "label": np.arange(3)}, "must have shape"),
        ({"image": IMAGES * np.nan, "label": np.arange(3)}, "NaN"),
        ({"picture": IMAGES, "label": np.arange(3)}, "no array for input `image`"),
    ],
)
def test_data_that_does_not_fit_is_one_error_and_nothing_is_written(
    arrays: dict[str, Any], message: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    args = ("-m", sample.MODEL, "--data", _npz(tmp_path, **arrays), "--task", "image-classification", *CPU)
    result = winml("eval", *args, "--json", "-o", out)
    assert message in failed(result, 2)
    assert valid(result.stdout)["error"]["code"] == "invalid-data"
    assert not out.exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("-m", sample.MODEL, *CPU), "no data to evaluate on"),
        (("-m", sample.MODEL, "--data", sample.TEST, *CPU), "the task of the model is unknown"),
        (("-m", sample.MODEL, *DIGITS, *CPU, "--max-drop", "0.1"), "`--max-drop` needs a reference"),
        (("-m", sample.MODEL, *DIGITS, *CPU, "--max-drop", "1"), "max-drop"),
        (("-m", sample.MODEL, *DIGITS, *CPU, "--metric", "acuracy"), "no metric `acuracy`"),
        (("-m", sample.MODEL, "--data", "gone.npz", "--task", "image-classification", *CPU), "data not found"),
        (("-m", sample.MODEL, *DIGITS, *CPU, "--column", "label"), "--column"),
        (("-m", sample.MODEL, *CPU, "--samples", "3"), "need `--data`"),
        (("-m", sample.MODEL, "--data", "random", *CPU), "needs a reference"),
        (("-m", sample.MODEL, *DIGITS, *CPU, "--output-name", "y"), "no output `y`"),
    ],
)
def test_a_wrong_request_is_refused(args: tuple[str | Path, ...], message: str) -> None:
    assert message in failed(winml("eval", *args), 2)


def test_a_reference_that_fails_leaves_the_result_of_the_model(zoo: Path) -> None:
    result = winml(
        "eval", "-m", sample.MODEL, *DIGITS, "--samples", "5", *CPU, "--reference", zoo / "relu.onnx", "--json"
    )
    assert "no array for input `x`" in failed(result, 2)
    assert valid(result.stdout)["metrics"]["accuracy"]["n"] == 5


def test_ctrl_c_keeps_what_was_evaluated(tmp_path: Path) -> None:
    model = model_zoo.saved(model_zoo.relu(), tmp_path / "relu.onnx")
    count = 3_000_000
    data = tmp_path / "d.npz"
    np.savez_compressed(data, x=np.zeros((count, 4), np.float32), label=np.zeros(count, np.int8))
    telling = Telling(tmp_path)
    words = ("eval", "-m", model, "--data", data, "--task", "text-classification", "--target", "cpu", "--json")
    with start(telling.argv(*words)) as process:
        telling.wait_for("progress", process)
        press_ctrl_c(process)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    value = valid(stdout)
    assert 0 < value["samples"]["n"] < count
    assert value["metrics"]["accuracy"]["value"] == 1.0


def test_the_parent_of_eval_imports_neither_numpy_nor_onnx() -> None:
    code = (
        "import sys\n"
        "from winml.modelkit.cli.main import run\n"
        "assert run(['eval', '--sample', '--target', 'cpu', '--samples', '3', '--json']) == 0\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True, env=dict(os.environ)
    )
    loaded = {name.partition(".")[0] for name in result.stderr.split()}
    assert not loaded & {"numpy", "onnx", "onnxruntime", "rich", "PIL", "tokenizers"}


def test_metrics_of_all_samples_together_have_drops_and_limits(tmp_path: Path) -> None:
    case = task_zoo.CASES["object-detection"](tmp_path)
    args = ("-m", case.model, "--data", case.data, "--task", "object-detection", *CPU, "--reference", case.model)
    result = winml("eval", *args, "--min-metric", "0.99", "--judge", "value", "--json")
    assert "map is 0.7558" in failed(result, 5)
    value = valid(result.stdout)
    assert value["drop"]["map"]["value"] == 0.0
    assert value["drop"]["map"]["interval"]["high"] > 0.0


def test_the_task_that_was_guessed_is_told(tmp_path: Path) -> None:
    case = task_zoo.CASES["token-classification"](tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["BertForTokenClassification"]}))
    value = evaluated("-m", case.model, "--data", case.data, *CPU)
    assert "task `token-classification`, because config.json names `BertForTokenClassification`" in value["notes"]


def test_a_custom_metric_prints_beside_the_json_and_is_on_the_page(tmp_path: Path) -> None:
    metric, out, page = tmp_path / "my_metric.py", tmp_path / "eval.json", tmp_path / "page.html"
    metric.write_text(
        "def score(outputs, sample):\n"
        "    print('judging')\n"
        "    wrong = outputs['logits'].argmax() != sample.label\n"
        "    return {'<b>loss': 3.0 * wrong, 'prediction': int(outputs['logits'].argmax())}\n"
        "score.lower_is_better = True\n",
        encoding="utf-8",
    )
    args = ("--sample", *CPU, "--samples", "40", "--reference", sample.MODEL, "--metric", f"{metric}:score")
    result = winml("eval", *args, "--max-metric", "2", "--max-drop", "0.9", "-o", out, "--json")
    assert result.returncode == 0, result.stderr
    value = json.loads(result.stdout)  # and nothing else
    assert "judging" in result.stderr
    assert value["custom_metric"]["function"] == "score"
    assert [check["check"] for check in value["checks"]] == ["max-metric", "max-drop"]
    assert value["agreement"]["value"] == 1.0
    assert winml("report", out, "-o", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "scored by" in text
    assert value["custom_metric"]["digest"] in text
    assert "<b>loss" not in text
    failed(winml("eval", *args, "--max-metric", "-1"), 5)


def test_limits_of_metrics_of_a_task_are_fractions() -> None:
    for option in ("--min-metric", "--max-metric"):
        assert f"`{option}` of `accuracy` is a fraction" in failed(winml("eval", "--sample", *CPU, option, "99"), 2)
    assert "has no maximum" in failed(winml("eval", "--sample", *CPU, "--max-metric", "0.5"), 2)
    assert "no option `blank`" in failed(winml("eval", "--sample", *CPU, "--task-option", "blank=1"), 2)
