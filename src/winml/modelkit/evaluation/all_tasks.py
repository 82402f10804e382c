"""THE table of tasks: one module each."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data import processor
from winml.modelkit.evaluation import (
    image_classification,
    object_detection,
    outputs,
    question_answering,
    segmentation,
    sentence_similarity,
    speech_recognition,
    tabular_classification,
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
    "tabular-classification": tabular_classification.TASK,
    "outputs": outputs.TASK,
}


def _guess_task(folder: Path | None) -> tuple[Task, str]:
    """The task of the architecture that the model's config.json names, and why."""
    path = processor.find(folder, CONFIG)
    named = processor.read_object(path).get("architectures") if path else None
    names = [str(name) for name in named] if isinstance(named, list) else []
    for name in names:
        for task in TASKS.values():
            if name.endswith(task.architectures or ("\0",)):
                return task, f"task `{task.name}`, because {CONFIG} names `{name}`"
    raise RequestError(
        f"architecture `{names[0]}` belongs to no known task" if names else "the task of the model is unknown",
        hint=f"name its task with `--task`: {', '.join(TASKS)}",
    )


def choose_task(name: str | None, section: DataSection, folder: Path | None) -> tuple[Task, str | None]:
    """The named task, the one of random data, or the one of the model's config.json, with a note."""
    if name is not None:
        if name not in TASKS:
            raise RequestError(f"unknown task `{name}`", hint=did_you_mean(name, TASKS))
        return TASKS[name], None
    return (TASKS["outputs"], None) if section.source == RANDOM else _guess_task(folder)
