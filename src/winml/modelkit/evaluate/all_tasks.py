"""THE table of tasks: one module each."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data import processor
from winml.modelkit.evaluate import (
    image_classification,
    outputs,
    question_answering,
    sentence_similarity,
    text_classification,
)
from winml.modelkit.evaluate.labels import CONFIG
from winml.modelkit.evaluate.task import Task

TASKS: dict[str, Task] = {
    "image-classification": image_classification.TASK,
    "text-classification": text_classification.TASK,
    "sentence-similarity": sentence_similarity.TASK,
    "question-answering": question_answering.TASK,
    "outputs": outputs.TASK,
}


def _by_architecture(folder: Path | None) -> Task | None:
    path = processor.find(folder, CONFIG)
    named = processor.read_object(path).get("architectures") if path else None
    for name in named if isinstance(named, list) else []:
        for task in TASKS.values():
            if str(name).endswith(task.architectures or ("\0",)):
                return task
    return None


def chosen_task(name: str | None, section: DataSection, folder: Path | None) -> Task:
    """The named task, the one of random data, or the one that the model's config.json is for."""
    if name is not None:
        if name not in TASKS:
            raise RequestError(f"unknown task `{name}`", hint=did_you_mean(name, TASKS))
        return TASKS[name]
    found = TASKS["outputs"] if section.source == RANDOM else _by_architecture(folder)
    if found is None:
        raise RequestError("what is the model for?", hint=f"name its task with `--task`: {', '.join(TASKS)}")
    return found
