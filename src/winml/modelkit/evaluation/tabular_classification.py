"""Classification of rows of a table: accuracy."""

from __future__ import annotations

from winml.modelkit.evaluation.classification import class_scorer
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Task

TASK = Task(
    name="tabular-classification",
    summary="one class per row of numbers and texts, as scikit-learn models have it",
    metrics=(Metric("accuracy", "share", "top1"),),
    scorer=lambda setting: class_scorer(setting, top=(1,)),
)
