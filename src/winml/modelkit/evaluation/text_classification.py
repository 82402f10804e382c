"""Text classification: accuracy; two texts of a sample are one input."""

from __future__ import annotations

from winml.modelkit.evaluation.classification import class_scorer
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Task

TASK = Task(
    name="text-classification",
    summary="one class per text or pair of texts",
    metrics=(Metric("accuracy", "share", "top1"),),
    scorer=lambda setting: class_scorer(setting, top=(1,)),
)
