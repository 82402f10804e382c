"""Audio classification: top-1 and top-5 accuracy of recordings."""

from __future__ import annotations

from winml.modelkit.evaluation.classification import class_scorer
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Task

TASK = Task(
    name="audio-classification",
    summary="one class per recording",
    metrics=(Metric("accuracy", "share", "top1"), Metric("top5_accuracy", "share", "top5")),
    scorer=lambda setting: class_scorer(setting, top=(1, 5)),
)
