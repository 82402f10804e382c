"""`winml eval` of folders that generate text, as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from program import failed, valid, winml

import data_zoo
import generation_zoo
import task_cases

CPU = ("--target", "cpu", "--threads", "1")


def evaluated(*args: str | Path) -> dict[str, Any]:
    result = winml("eval", *args, *CPU, "--json")
    assert result.returncode == 0, result.stderr
    return valid(result.stdout)


def test_perplexity_with_a_reference_has_the_divergence_and_limits_for_it(tmp_path: Path) -> None:
    case = task_cases.CASES["perplexity"](tmp_path)
    table = generation_zoo.random_table()
    rounded = generation_zoo.decoder(tmp_path / "rounded", np.round(table * 4) / 4)
    args = ("-m", rounded, "--reference", case.model, "--data", case.data)
    value = evaluated(*args, "--metric", "kl_divergence", "--max-metric", "0.5", "-o", tmp_path / "r.json")
    assert value["task"] == "perplexity"
    assert value["reference"]["metrics"]["perplexity"]["value"] == pytest.approx(case.metrics["perplexity"], rel=1e-5)
    found = value["comparison"]
    assert 0 < found["kl_divergence"]["value"] < 0.5
    assert found["kl_divergence"]["interval"]["low"] < found["kl_divergence"]["value"]
    ratio = value["metrics"]["perplexity"]["value"] / value["reference"]["metrics"]["perplexity"]["value"]
    assert found["perplexity_ratio"]["value"] == pytest.approx(ratio)
    assert 0.5 < found["same_next_token"]["value"] <= 1.0
    assert value["generation"]["window"] == 32
    assert value["checks"][0]["answer"] == "within"
    assert value["distance"][0]["output"] == "logits"
    message = failed(
        winml("eval", *args, *CPU, "--metric", "kl_divergence", "--max-metric", "0.000001", "--judge", "value"), 5
    )
    assert "kl_divergence is" in message
    page = tmp_path / "r.html"
    assert winml("report", tmp_path / "r.json", "-o", page).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "Generated text beside the reference" in text
    assert "the loop of winml" in text


def test_answers_of_two_equal_models_are_equal(tmp_path: Path) -> None:
    case = task_cases.CASES["text-generation"](tmp_path)
    args = ("-m", case.model, "--reference", case.model, "--data", case.data, "--runtime", "onnxruntime", *CPU)
    result = winml("eval", *args)
    assert result.returncode == 0, result.stderr
    assert "same generated tokens" in result.stdout
    assert "run by onnxruntime" in result.stdout
    value = valid(winml("eval", *args, "--json").stdout)
    assert value["comparison"]["equal_tokens"]["value"] == 1.0
    assert value["agreement"]["value"] == 1.0
    assert {n: m["value"] for n, m in value["metrics"].items()} == pytest.approx(case.metrics, rel=1e-5)
    assert value["samples"]["candidate"]["predictions"][0] == "wrote it did ada"


def test_parts_are_judged_by_their_answers(tmp_path: Path) -> None:
    case = task_cases.CASES["translation"](tmp_path)
    value = evaluated("-m", case.model, "--data", case.data, "--task", "translation", "--min-metric", "0.3")
    assert value["metrics"]["bleu"]["value"] == pytest.approx(0.75)
    assert value["placement"]["nodes"]["CPUExecutionProvider"] > 3


def test_bad_requests_are_one_sentence(tmp_path: Path) -> None:
    case = task_cases.CASES["perplexity"](tmp_path)
    data = ("--data", case.data)
    plain = case.model / "model.onnx"
    assert "is for folders that generate text" in failed(winml("eval", "-m", plain, *data, "--new-tokens", "4"), 2)
    assert "does not generate text" in failed(winml("eval", "-m", case.model, *data, "--reference", plain), 2)
    assert "needs a reference" in failed(winml("eval", "-m", plain, *data, "--task", "perplexity"), 2)
    other = generation_zoo.decoder(tmp_path / "other", generation_zoo.random_table())
    config = (other / "tokenizer.json").read_text(encoding="utf-8")
    swapped = json.loads(config)
    vocabulary = swapped["model"]["vocab"]
    vocabulary["good"], vocabulary["bad"] = vocabulary["bad"], vocabulary["good"]
    (other / "tokenizer.json").write_text(json.dumps(swapped), encoding="utf-8")
    message = failed(winml("eval", "-m", other, "--reference", case.model, *data, *CPU), 2)
    assert "different tokens" in message
    (case.model / "tokenizer.json").unlink()
    assert "there is no tokenizer.json" in failed(winml("eval", "-m", case.model, *data, *CPU), 2)
    empty = data_zoo.jsonl(tmp_path / "e.jsonl", [{"words": ["a"]}])
    assert "no column for `text`" in failed(winml("eval", "-m", other, "--data", empty, *CPU), 2)


def test_tokens_have_their_own_limit(tmp_path: Path) -> None:
    case = task_cases.CASES["text-generation"](tmp_path)
    args = ("-m", case.model, "--reference", case.model, "--data", case.data, "--task", "text-generation")
    message = failed(winml("eval", *args, "--min-agreement", "0.9"), 2)
    assert "compares tokens" in message
    assert "--metric equal_tokens --min-metric" in message
