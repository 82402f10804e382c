"""Time series: the values that follow, a class, or a number per series."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data.samples import Sample
from winml.modelkit.data.series import PAST, numbers_of
from winml.modelkit.evaluation.classification import ClassScorer
from winml.modelkit.evaluation.labels import class_names
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task, plain

Floats = npt.NDArray[np.float64]


def forecast_errors(predicted: Floats, right: Floats, past: Floats) -> dict[str, float]:
    """Errors of moments x channels, beside those of repeating the last value and of the steps in the past."""
    error = np.abs(predicted - right)
    naive = np.abs(past[-1:] - right)
    size = np.abs(predicted) + np.abs(right)
    relative = np.divide(2 * error, size, out=np.zeros_like(error), where=size > 0)
    return {
        "error": float(error.mean()),
        "step": float(np.abs(np.diff(past, axis=0)).mean()),
        "gain": float(naive.mean() - error.mean()),
        "naive": float(naive.mean()),
        "relative": float(relative.mean()),
    }


@dataclass(frozen=True)
class ForecastScorer:
    """Judges the moments that follow those the model saw."""

    output: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        right = numbers_of(sample.label, f"the values that follow {sample.where}")
        right = right[:, None] if right.ndim == 1 else right
        past = next((v for name, v in sample.inputs.items() if name == PAST), next(iter(sample.inputs.values())))
        seen = np.asarray(past[0], np.float64).reshape(past.shape[1], -1)
        predicted = np.asarray(runs[0][self.output], np.float64)
        if right.ndim != 2 or predicted.size != right.size or seen.shape[1] != right.shape[1] or len(seen) < 2:
            raise DataError(
                f"output `{self.output}` has shape {list(predicted.shape)} and the past {list(past.shape)}; "
                f"{sample.where} has {' x '.join(map(str, right.shape))} values to predict",
                hint="name the output with the values: `--output-name NAME`",
            )
        values = forecast_errors(predicted.reshape(right.shape), right, seen)
        if not np.isfinite(predicted).all():
            return Scored({**values, "error": None, "gain": None, "relative": None}, None)
        return Scored(values, predicted.reshape(right.shape).tolist())


@dataclass(frozen=True)
class NumberScorer:
    """Judges one number, or several, per series."""

    output: str
    notes: tuple[str, ...]

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        right = numbers_of(sample.label, f"the label of {sample.where}").reshape(-1)
        predicted = plain(runs[0][self.output])
        if predicted.size != right.size:
            raise DataError(
                f"output `{self.output}` has {predicted.size} numbers but {sample.where} has {right.size}",
                hint="name the output with the numbers: `--output-name NAME`",
            )
        if not np.isfinite(predicted).all():
            return Scored({"pairs": [[float(r), None] for r in right], "error": None}, None)
        pairs = [[float(r), float(p)] for r, p in zip(right, predicted, strict=True)]
        return Scored({"pairs": pairs, "error": float(np.abs(predicted - right).mean())}, predicted.tolist())


def _forecast_scorer(setting: Setting) -> ForecastScorer:
    output, note = setting.pick("prediction_outputs", "predictions", "mean_predictions", "sequences")
    return ForecastScorer(output, (note,) if note else ())


def _class_scorer(setting: Setting) -> ClassScorer:
    output, note = setting.pick("prediction_logits", "prediction_outputs", "logits")
    return ClassScorer(output, class_names(setting.folder), (1,), (note,) if note else ())


def _number_scorer(setting: Setting) -> NumberScorer:
    output, note = setting.pick("regression_outputs", "prediction_outputs", "logits")
    return NumberScorer(output, (note,) if note else ())


FORECASTING = Task(
    name="time-series-forecasting",
    summary="the values that follow, per window of a series",
    metrics=(
        Metric("skill", "ratio", "gain", ("naive",)),
        Metric("mase", "ratio", "error", ("step",), lower=True),
        Metric("smape", "number", "relative", lower=True),
        Metric("mae", "number", "error", lower=True),
    ),
    scorer=_forecast_scorer,
    form="series",
    agreement=False,
)
CLASSIFICATION = Task(
    name="time-series-classification",
    summary="one class per series",
    metrics=(Metric("accuracy", "share", "top1"),),
    scorer=_class_scorer,
    form="series",
)
REGRESSION = Task(
    name="time-series-regression",
    summary="one number or several per series",
    metrics=(Metric("r2", "r2", "pairs"), Metric("mae", "number", "error", lower=True)),
    scorer=_number_scorer,
    form="series",
    agreement=False,
)
