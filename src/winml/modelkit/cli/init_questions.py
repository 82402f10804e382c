"""The questions of `winml init` on a terminal: one for everything that no option answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from winml.modelkit.building.init_command import needs_calibration
from winml.modelkit.core import model_ref, plain_text
from winml.modelkit.core.config import DEFAULT, HUB, RANDOM
from winml.modelkit.core.errors import RequestError
from winml.modelkit.ep import precision, targets

SAMPLE = "sample"


def ask(given: dict[str, Any]) -> dict[str, Any]:
    """The options with answers for those that were not given; answers are checked as they are typed."""
    found = dict(given)
    if found["model"] is None and not found["sample"]:
        answer = _ask("Model: an ONNX file, a Hugging Face folder, ORG/NAME, or `sample`", _find_model(), _check_model)
        found["sample"] = answer == SAMPLE
        found["model"] = None if found["sample"] else answer
    if not found["targets"]:
        answer = _ask("Targets, with commas: cpu, qnn/npu, openvino/cpu, dml/gpu, ...", "cpu", _check_targets)
        found["targets"] = tuple(answer.split(","))
    if found["precision"] is None:
        names = ", ".join(precision.precision_names())
        found["precision"] = _ask(f"Precision: auto, {names}", precision.AUTO, precision.parse_precision)
    is_calibrated = needs_calibration(found["targets"], found["precision"])
    if found["calibration"] is None and not found["sample"] and is_calibrated:
        text = (
            "Calibration data: .npz, folder of images, .txt, .csv, .jsonl, .parquet, or `random`, which costs accuracy"
        )
        found["calibration"] = _ask(text, None, _check_data)
    if found["data"] is None and not found["sample"]:
        text = "Labelled data to measure accuracy on (Enter for none: outputs are compared instead)"
        found["data"] = _ask(text, "", lambda word: word and _check_data(word)) or None
    if found["data"] is not None and found["task"] is None:
        found["task"] = _ask("Task of the model, such as image-classification", None, _check_task)
    if found["max_drop"] is None and (found["data"] is not None or found["sample"]):
        found["max_drop"] = float(_ask("Largest accepted drop of the metric", "0.01", _check_drop))
    return found


def _ask(text: str, default: str | None, check: Callable[[str], str]) -> str:
    """An answer that passed its check; a wrong one is asked for again with the reason."""

    def check_word(word: str) -> str:
        try:
            return check(word.strip())
        except RequestError as error:
            hint = f"; {error.hint}" if error.hint else ""
            raise click.BadParameter(plain_text.one_line(error.message + hint)) from error

    answer: str = click.prompt(text, default=default, value_proc=check_word, err=True, show_default=bool(default))
    return answer


def _find_model() -> str:
    """The one ONNX file here, or the sample."""
    files = sorted(path.name for path in Path.cwd().glob("*.onnx"))
    only = files[0] if len(files) == 1 else SAMPLE
    return only if plain_text.one_line(only) == only else SAMPLE


def _check_model(word: str) -> str:
    ref = model_ref.parse(word)
    if word != SAMPLE and ref.kind == "file" and not Path(word).is_file():
        raise RequestError(f"model file not found: `{word}`")
    return word


def _check_targets(word: str) -> str:
    names = [name.strip() for name in word.split(",") if name.strip()]
    for name in names:
        targets.parse_target(name)
    if not names:
        raise RequestError("name at least one target")
    return ",".join(names)


def _check_data(word: str) -> str:
    if word not in (RANDOM, DEFAULT) and not word.startswith(HUB) and not Path(word).exists():
        raise RequestError(f"data not found: `{word}`")
    return word


def _check_task(word: str) -> str:
    from winml.modelkit.core.suggest import did_you_mean
    from winml.modelkit.core.tasks import TASKS as CORE_TASKS
    from winml.modelkit.evaluation.all_tasks import TASKS

    if word not in TASKS and word not in CORE_TASKS:
        raise RequestError(f"unknown task `{word}`", hint=did_you_mean(word, {**CORE_TASKS, **TASKS}))
    return word


def _check_drop(word: str) -> str:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise RequestError(f"a drop must be from 0 to 1 but got `{word}`")
    return word
