"""Every default data set in the layout it has on the hub, recorded small, through an evaluation with `default`."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
import model_zoo
import task_cases
import task_zoo
from parquet_zoo import class_feature, file_type, parquet, png, stored
from task_zoo import Case
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.data import defaults
from winml.modelkit.data.defaults import DEFAULTS, MAIN
from winml.modelkit.evaluation import run as plain_run
from winml.modelkit.evaluation.generation import run as generation_run
from winml.modelkit.evaluation.metrics import estimate
from winml.modelkit.evaluation.report import RunArguments, RunReport
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.store import digest

pytestmark = [pytest.mark.hf, pytest.mark.parquet]

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SEEN_BEFORE = ("text-classification", "zero-shot-classification", "retrieval", "fill-mask", "time-series-forecasting")
"""Layouts that tests/data/test_defaults.py and the tests of tasks run."""


def _rows(case: Case) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(case.data).read_text(encoding="utf-8").splitlines()]


def _gz(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


def _cifar(path: Path, shades: dict[str, list[tuple[int, int, int]]]) -> None:
    """`img` and a number in `label`, whose name is in the file's own description."""
    names = list(shades)
    rows = [{"img": stored(png(shade)), "label": names.index(name)} for name, ones in shades.items() for shade in ones]
    features = {"img": {"_type": "Image"}, "label": class_feature(*names)}
    parquet(path, rows, types={"img": file_type()}, features=features)


def _images(folder: Path, file: Path) -> Case:
    """The model numbers its classes in another order than the data."""
    model = model_zoo.text_model(
        """g (float[batch,3,height,width] pixel_values) => (float[batch,3] logits)
        <int64[2] axes = {2, 3}> { logits = ReduceMean<keepdims = 0>(pixel_values, axes) }"""
    )
    data_zoo.image_processor(folder)
    (folder / "config.json").write_text(json.dumps({"id2label": {"0": "Red_One", "1": "green", "2": "blue"}}))
    _cifar(file, {"blue": [(0, 0, 255), (9, 0, 99)], "red one": [(255, 0, 0)], "green": [(99, 0, 0)]})
    return Case(model_zoo.saved(model, folder / "model.onnx"), file, {"accuracy": 0.75})


def _prompted_images(folder: Path, file: Path) -> Case:
    made = task_zoo._zero_shot_image(folder)
    _cifar(file, {"good": [(255, 0, 0), (9, 0, 99)], "bad": [(0, 0, 255)], "dull": [(90, 90, 90)]})
    return made


def _features(folder: Path, file: Path) -> Case:
    made = task_cases.CASES["image-feature-extraction"](folder)
    _cifar(file, {"red": [(255, 0, 0), (200, 10, 0), (0, 90, 100)], "blue": [(0, 0, 255), (0, 20, 200)]})
    return made


def _squad(folder: Path, file: Path) -> Case:
    made, rows = task_zoo._question_answering(folder), []
    for number, row in enumerate(_rows(made)):
        given = row["answers"]
        texts = given["text"] if isinstance(given, dict) else [given] if isinstance(given, str) else given
        answers = {"text": texts, "answer_start": [0] * len(texts)}
        rows.append({"id": str(number), "title": "T", **row, "answers": answers})
    parquet(file, rows)
    return made


def _conll(folder: Path, file: Path) -> Case:
    """Tags are numbers in the order of the data, which the model has in another."""
    made, names = task_zoo._token_classification(folder), ["O", "I-PER", "B-PER"]
    model = ["O", "B-PER", "I-PER"]
    rows = [
        {
            "id": str(number),
            "tokens": row["tokens"],
            "ner_tags": [names.index(tag if isinstance(tag, str) else model[tag]) for tag in row["ner_tags"]],
        }
        for number, row in enumerate(_rows(made))
    ]
    parquet(file, rows, features={"ner_tags": {"feature": class_feature(*names), "_type": "Sequence"}})
    return made


def _similarity(folder: Path, file: Path) -> Case:
    made = task_zoo._sentence_similarity(folder)
    _gz(file, [{"split": "test", "genre": "main-news", **row} for row in _rows(made)])
    return made


def _reranking(folder: Path, file: Path) -> Case:
    made = task_cases.CASES["reranking"](folder)
    _gz(file, _rows(made))
    return made


def _hellaswag(folder: Path, file: Path) -> Case:
    made, rows = task_cases.CASES["multiple-choice"](folder), []
    for row in _rows(made):
        label = row["label"] if isinstance(row["label"], int) else row["choices"].index(row["label"])
        rows.append({"ind": 1, "ctx": row["text"], "endings": row["choices"], "split": "val", "label": str(label)})
    parquet(file, rows)
    return made


def _asked(folder: Path, file: Path) -> Case:
    made = task_cases.CASES["visual-question-answering"](folder)
    rows = [
        {"image": stored(png((255, 0, 0))), "question": "who did it", "answer": "red"},
        {"image": stored(png((0, 0, 255))), "question": "who", "answer": "Blue."},
        {"image": stored(png((0, 0, 255))), "question": "who", "answer": "red"},
    ]
    parquet(file, rows, types={"image": file_type()})
    return replace(made, metrics={"vqa_accuracy": 2 / 3})


def _fleurs(folder: Path, file: Path) -> Case:
    made = task_zoo._speech(folder)
    rows = [
        {
            "id": number,
            "path": "/elsewhere/1.wav",
            "audio": stored(_float_wave(folder / row["audio"]), "1.wav"),
            "transcription": row["text"],
        }
        for number, row in enumerate(_rows(made))
    ]
    parquet(file, rows, types={"audio": file_type()})
    return made


def _float_wave(path: Path) -> bytes:
    """The recording as floats, as this data set has it."""
    import struct
    import wave

    with wave.open(str(path), "rb") as stream:
        rate_hz, frames = stream.getframerate(), stream.readframes(stream.getnframes())
    body = (np.frombuffer(frames, "<i2") / 32768).astype("<f4").tobytes()
    layout = struct.pack("<HHIIHH", 3, 1, rate_hz, rate_hz * 4, 4, 32)
    chunks = b"fmt " + struct.pack("<I", len(layout)) + layout + b"data" + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks


def _wikitext(folder: Path, file: Path) -> Case:
    """A row per line, of which many are blank."""
    made = task_cases.CASES["perplexity"](folder)
    parquet(file, [{"text": text} for row in _rows(made) for text in ("", row["text"], " \n")])
    return made


def _arithmetic(folder: Path, file: Path) -> Case:
    made = task_cases.CASES["text-generation"](folder)
    file.parent.mkdir(parents=True)
    data_zoo.jsonl(file, [{"context": row["prompt"], "completion": f" {row['label']}"} for row in _rows(made)])
    return made


def _opus(folder: Path, file: Path) -> Case:
    made = task_cases.CASES["translation"](folder)
    parquet(file, [{"translation": {"de": row["label"], "en": row["text"]}} for row in _rows(made)])
    return made


def _cnn(folder: Path, file: Path) -> Case:
    made = task_cases.CASES["summarization"](folder)
    rows = [{"article": r["document"], "highlights": r["summary"], "id": str(n)} for n, r in enumerate(_rows(made))]
    parquet(file, rows)
    return made


LAYOUTS: dict[str, Callable[[Path, Path], Case]] = {
    "image-classification": _images,
    "zero-shot-image-classification": _prompted_images,
    "image-feature-extraction": _features,
    "question-answering": _squad,
    "token-classification": _conll,
    "sentence-similarity": _similarity,
    "reranking": _reranking,
    "multiple-choice": _hellaswag,
    "visual-question-answering": _asked,
    "automatic-speech-recognition": _fleurs,
    "perplexity": _wikitext,
    "text-generation": _arithmetic,
    "translation": _opus,
    "summarization": _cnn,
}


class Quiet:
    """What an operation tells goes nowhere."""

    stop = threading.Event()

    def tell(self, event: object) -> None: ...


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the hub, which is not there."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


def _place(cache: Path, repo: str, revision: str, name: str) -> Path:
    folder = cache / f"datasets--{repo.replace('/', '--')}"
    commit = COMMIT if revision == MAIN else revision
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(commit, encoding="utf-8")
    return folder / "snapshots" / commit / name


def _evaluate(case: Case, task: str) -> RunReport:
    arm = Arm(artifact=str(case.model), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    generates = Path(case.model).is_dir()
    folder = Path(case.model) if generates else Path(case.model).parent
    asked = RunArguments(
        arm=arm_arguments(arm, None), data=DataSection("default"), folder=str(folder), task=task, reference=False,
        task_options=case.options, runtime="onnxruntime" if generates else None,
    )  # fmt: skip
    run = generation_run.run if generates else plain_run.run
    return run(to_json(asked), Quiet())


def test_every_default_has_a_recorded_layout() -> None:
    assert {*LAYOUTS, *SEEN_BEFORE} == set(DEFAULTS)


@pytest.mark.parametrize("task", list(LAYOUTS))
def test_default_data_in_its_layout_gives_the_metrics_of_the_case(
    task: str, tmp_path: Path, hub_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = DEFAULTS[task]
    name = next(iter(row.files))
    file = _place(hub_cache, row.repo, row.revision, name)
    (tmp_path / "case").mkdir()
    case = LAYOUTS[task](tmp_path / "case", file)
    if row.files[name] is not None:
        with pytest.raises(DataError, match="is not the file that it was"):
            _evaluate(case, task)
    # What is recorded here is the layout alone: the digest is that of the recorded file.
    recorded = replace(row, files={name: digest.of_file(file).removeprefix("sha256:")})
    monkeypatch.setitem(defaults.DEFAULTS, task, recorded)
    report = _evaluate(case, task)
    commit = COMMIT if row.revision == MAIN else row.revision
    assert report.data.source == f"hf:{row.repo}/{name}@{commit}"
    assert report.data.columns is not None
    found = {metric.name: estimate(metric, report.series).value for metric in report.metrics}
    assert {one: found[one] for one in case.metrics} == pytest.approx(case.metrics, abs=0.001)
