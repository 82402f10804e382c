"""What a task is: which data it takes, how a sample is scored, which metrics follow from the scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.samples import Form, Sample
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.session.output_arrays import as_array

Outputs = Mapping[str, Any]
"""Values by output: arrays; lists where the model has sequences, as ZipMap does."""


@dataclass(frozen=True)
class Scored:
    """The score of one sample."""

    values: Mapping[str, Any]
    """One number, or one record of classes, per series of the task."""
    prediction: Any
    """What the model predicted, as JSON holds it; None when that was unusable."""


class Scorer(Protocol):
    """Scores samples of one model."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided by default."""
        ...

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored: ...


@runtime_checkable
class LateScorer(Scorer, Protocol):
    """Scores samples when all of them are there, because one is judged by the others, or only they say how."""

    def finish(self, *, complete: bool) -> Sequence[Scored]:
        """The score of each sample that is judged, in their order; `complete` unless the run was stopped."""
        ...


@dataclass(frozen=True)
class Setting:
    """What a scorer needs of the model."""

    outputs: tuple[str, ...]
    folder: Path | None
    """The folder of its config.json."""
    output: str | None = None
    """The output to judge, when the user named it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What the user decided with `--task-option`."""
    steps: bool = False
    """Whether the runs of a sample are the steps of a sequence."""

    def pick(self, *names: str) -> tuple[str, str | None]:
        """The output to judge: the named one, one with a usual name, the only one, or the first with a note."""
        if self.output is not None:
            if self.output not in self.outputs:
                raise DataError(
                    f"the model has no output `{self.output}`", hint=did_you_mean(self.output, self.outputs)
                )
            return self.output, None
        usual = next((name for name in names if name in self.outputs), None)
        if usual is not None or len(self.outputs) == 1:
            return usual or self.outputs[0], None
        listed = ", ".join(self.outputs)
        return self.outputs[0], f"output `{self.outputs[0]}` is judged, the first of {listed}; `--output-name` names it"


@dataclass(frozen=True)
class Task:
    """A row of the table of tasks."""

    name: str
    summary: str
    metrics: tuple[Metric, ...]
    """The first is the one that limits are for."""
    scorer: Callable[[Setting], Scorer]
    form: Form = "joined"
    labels: bool = True
    agreement: bool = True
    """Whether two models can predict the same for a sample."""
    options: tuple[str, ...] = ()
    """What `--task-option` may decide."""
    comparison: tuple[Metric, ...] = ()
    """Numbers about a model and its reference together."""
    generates: bool = False
    """Whether it is for models that generate text, which are run step by step (`generation/`)."""


def plain(values: Any) -> npt.NDArray[np.float64]:
    """An output with batch 1 as a row of numbers."""
    found = as_array(values)
    if found.dtype.kind in "OUS":
        raise DataError("the output that is judged holds text", hint="name one with numbers: `--output-name NAME`")
    row: npt.NDArray[np.float64] = found.astype(np.float64).reshape(-1)
    return row
