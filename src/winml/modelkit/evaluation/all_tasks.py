"""THE table of tasks that have a metric: one module each. What a class is for is in `core/tasks.py`."""

from __future__ import annotations

from pathlib import Path

from winml.modelkit.core.config import RANDOM, DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import near_names
from winml.modelkit.core.tasks import TASKS as CORE_TASKS
from winml.modelkit.core.tasks import find_task
from winml.modelkit.data import processor
from winml.modelkit.evaluation import (
    audio_classification,
    binary_classification,
    depth_estimation,
    document_question_answering,
    fill_mask,
    image_classification,
    image_features,
    image_to_image,
    keypoint_detection,
    mask_generation,
    multiple_choice,
    object_detection,
    outputs,
    question_answering,
    reranking,
    retrieval,
    segmentation,
    sentence_similarity,
    speech_recognition,
    tabular_classification,
    text_classification,
    text_recognition,
    text_to_audio,
    time_series,
    token_classification,
    universal_segmentation,
    video_classification,
    visual_question_answering,
    zero_shot,
)
from winml.modelkit.evaluation.generation import tasks as generation
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
    "zero-shot-object-detection": object_detection.ZERO_SHOT_TASK,
    "audio-classification": audio_classification.TASK,
    "video-classification": video_classification.TASK,
    "fill-mask": fill_mask.TASK,
    "multiple-choice": multiple_choice.TASK,
    "reranking": reranking.TASK,
    "retrieval": retrieval.TASK,
    "depth-estimation": depth_estimation.TASK,
    "image-to-image": image_to_image.TASK,
    "image-feature-extraction": image_features.TASK,
    "time-series-forecasting": time_series.FORECASTING,
    "time-series-classification": time_series.CLASSIFICATION,
    "time-series-regression": time_series.REGRESSION,
    "text-to-audio": text_to_audio.TASK,
    "instance-segmentation": universal_segmentation.INSTANCE_TASK,
    "panoptic-segmentation": universal_segmentation.PANOPTIC_TASK,
    "mask-generation": mask_generation.TASK,
    "keypoint-detection": keypoint_detection.TASK,
    "document-question-answering": document_question_answering.TASK,
    "visual-question-answering": visual_question_answering.TASK,
    "binary-classification": binary_classification.TASK,
    "text-recognition": text_recognition.TASK,
    "tabular-classification": tabular_classification.TASK,
    "perplexity": generation.TASKS["perplexity"],
    "text-generation": generation.TASKS["text-generation"],
    "translation": generation.TASKS["translation"],
    "summarization": generation.TASKS["summarization"],
    "text2text-generation": generation.TASKS["text2text-generation"],
    "outputs": outputs.TASK,
}
"""Models that generate have rows of their own for `multiple-choice` and speech (`generation/tasks.py`)."""


_ALL = "docs/evaluate.md lists all tasks, and `outputs` compares any model with a reference"


def find_own_class(folder: Path | None) -> str | None:
    """The class that saved the model, as its config.json names it."""
    path = processor.find(folder, CONFIG)
    named = processor.read_object(path).get("architectures") if path else None
    return str(named[0]) if isinstance(named, list) and named else None


def choose_task(name: str | None, section: DataSection, folder: Path | None) -> tuple[Task, str | None]:
    """The named task, the one of random data, or the one of the model's class, with a note.

    A task without a metric here is judged by its outputs alone, which the note says.
    """
    if name == outputs.CUSTOM.name:
        return outputs.CUSTOM, None
    if name is None and section.source == RANDOM:
        return TASKS["outputs"], None
    if name in TASKS and not TASKS[name].generates:  # whatever lies beside the model
        return TASKS[name], None
    own = find_own_class(folder)
    if name is None and own is None:
        raise RequestError(
            "the task of the model is unknown",
            hint=f"name its task with `--task`, for example `image-classification`; {_ALL}",
        )
    own_task = None if own is None else find_task(own)
    task = name or own_task or ""
    reason = f", because {CONFIG} names `{own}`" if name is None else ""
    if task in TASKS and not TASKS[task].generates:
        return TASKS[task], f"task `{task}`{reason}"
    if task not in TASKS and task not in CORE_TASKS and task != own_task:
        known = (*TASKS, *(other for other in CORE_TASKS if other not in TASKS))
        near = near_names(task, known)
        raise RequestError(f"unknown task `{task}`", hint=f"{near} {_ALL}" if near else _ALL)
    missing = "there is no metric for it here"
    if task in TASKS:
        missing = "its metrics are for folders that generate text, with genai_config.json or parts.json"
    note = f"task `{task}`{reason}; {missing}, so that only the outputs are compared with those of a reference"
    return TASKS["outputs"], note
