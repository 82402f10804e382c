"""THE table of tasks that have a metric: one module each. What a class is for is in `core/tasks.py`."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.tasks import TASKS as CORE_TASKS
from winml.modelkit.core.tasks import find_task
from winml.modelkit.data import processor
from winml.modelkit.evaluation import (
    image_classification,
    object_detection,
    outputs,
    question_answering,
    segmentation,
    sentence_similarity,
    speech_recognition,
    text_classification,
    token_classification,
    zero_shot,
)
from winml.modelkit.evaluation.labels import CONFIG
from winml.modelkit.evaluation.task import Task

TASKS: dict[str, Task] = {
    "image-classification": image_classification.TASK,
    "text-classification": text_classification.TASK,
    "sentence-similarity": sentence_similarity.TASK,
    "question-answering": question_answering.TASK,
    "token-classification": token_classification.TASK,
    "object-detection": object_detection.TASK,
    "image-segmentation": segmentation.TASK,
    "automatic-speech-recognition": speech_recognition.TASK,
    "zero-shot-image-classification": zero_shot.IMAGE_TASK,
    "zero-shot-classification": zero_shot.TEXT_TASK,
    "outputs": outputs.TASK,
}


def _own_class(folder: Path | None) -> str | None:
    """The class that saved the model, as its config.json names it."""
    path = processor.find(folder, CONFIG)
    named = processor.read_object(path).get("architectures") if path else None
    return str(named[0]) if isinstance(named, list) and named else None


def choose_task(name: str | None, section: DataSection, folder: Path | None) -> tuple[Task, str | None]:
    """The named task, the one of random data, or the one of the model's class, with a note.

    A task without a metric here is judged by its outputs alone, which the note says.
    """
    if name is None and section.source == RANDOM:
        return TASKS["outputs"], None
    own = _own_class(folder)
    if name is None and own is None:
        raise RequestError(
            "the task of the model is unknown",
            hint=f"name its task with `--task`: {', '.join(TASKS)}",
        )
    own_task = None if own is None else find_task(own)
    task = name or own_task or ""
    reason = f", because {CONFIG} names `{own}`" if name is None else ""
    if task in TASKS:
        return TASKS[task], f"task `{task}`{reason}" if reason else None
    if task not in CORE_TASKS and task != own_task:
        known = (*TASKS, *(other for other in CORE_TASKS if other not in TASKS))
        raise RequestError(f"unknown task `{task}`", hint=did_you_mean(task, known))
    note = (
        f"task `{task}`{reason}; there is no metric for it here, so that only the outputs are compared with those of a "
        "reference"
    )
    return TASKS["outputs"], note
