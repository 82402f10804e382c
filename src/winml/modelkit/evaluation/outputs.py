"""Outputs alone: no labels and no metric, only how far they are from those of a reference, or a custom metric."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.data.samples import Sample
from winml.modelkit.evaluation.task import Outputs, Scored, Setting, Task


@dataclass(frozen=True)
class NoScorer:
    """Scores nothing."""

    notes: tuple[str, ...] = ()

    def score(self, sample: Sample, runs: Sequence[Outputs]) -> Scored:
        return Scored({}, None)


def _scorer(setting: Setting) -> NoScorer:
    return NoScorer()


TASK = Task(
    name="outputs",
    summary="distance to the outputs of a reference; needs no labels",
    metrics=(),
    scorer=_scorer,
    labels=False,
    agreement=False,
)

CUSTOM = Task(
    name="custom",
    summary="outputs that a custom metric judges",
    metrics=(),
    scorer=_scorer,
    labels=False,
    agreement=False,
)
"""With a custom metric, where no task says what a sample is; not a task that could be named without one."""
