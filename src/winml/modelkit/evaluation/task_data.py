"""The data of a task for a model: opened by the worker that runs it, and again where a custom metric reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from winml.modelkit.core.config import DataSection
from winml.modelkit.data.dataset import Dataset, open_dataset
from winml.modelkit.evaluation.task import Task
from winml.modelkit.graph.inputs import Input


def open_task_data(
    task: Task, section: DataSection, inputs: Sequence[Input], folder: Path | None, *, custom: bool, steps: bool
) -> Dataset:
    """Samples as the task needs them; with a custom metric they have a label where the data has one.

    With `steps` a sample is a sequence, one run of the model after the other.
    """
    labels = None if custom else task.labels
    return open_dataset(section, inputs, model_folder=folder, labels=labels, form=task.form, steps=steps)
