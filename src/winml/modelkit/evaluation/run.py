"""Worker operation: run a model over data on its target and score every sample."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from winml.modelkit.core import values
from winml.modelkit.core.config import DEFAULT, DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.dataset import Dataset, open_dataset
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.evaluation import saved_outputs
from winml.modelkit.evaluation.all_tasks import choose_task
from winml.modelkit.evaluation.report import DataFacts, ModelOpened, RunArguments, RunReport, SamplesDone
from winml.modelkit.evaluation.task import LateScorer, Scored, Scorer, Setting, Task
from winml.modelkit.graph.inputs import Arrays, InputSpec
from winml.modelkit.session import environment
from winml.modelkit.session.measure import Context
from winml.modelkit.session.opening import open_arm
from winml.modelkit.session.saturation import weights_at_risk
from winml.modelkit.session.session import WinMLSession

_EVENT_EVERY_S = 0.25
_OTHER = "hold it to a reference with `--max-drop`, or name a metric that is better when it is higher with `--metric`"


class _Data:
    """The data for the model that is being opened: its first sample decides shapes that the model leaves open."""

    def __init__(self, section: DataSection, folder: Path | None, task: Task) -> None:
        self._section = section
        self._folder = folder
        self._task = task
        self.dataset: Dataset | None = None

    def first(self, specs: Sequence[InputSpec]) -> Arrays:
        self.dataset = open_dataset(
            self._section, specs, model_folder=self._folder, labels=self._task.labels, form=self._task.form
        )
        return next(iter(self.dataset)).inputs


class _Tally:
    """Scores so far, by series."""

    def __init__(self) -> None:
        self.series: dict[str, list[Any]] = {}
        self.predictions: list[Any] = []

    def go_through(
        self, dataset: Dataset, session: WinMLSession, scorer: Scorer, writer: saved_outputs.Writer, context: Context
    ) -> None:
        next_event, total = time.monotonic() + _EVENT_EVERY_S, len(dataset) + dataset.unjudged
        for sample in dataset:
            runs = [session.run(inputs) for inputs in (sample.inputs, *sample.more)]
            self._add(scorer.score(sample, runs))
            writer.write(runs)
            if time.monotonic() >= next_event:
                context.tell(SamplesDone(done=len(self.predictions), total=total))
                next_event = time.monotonic() + _EVENT_EVERY_S
            if context.stop.is_set():
                break
        if isinstance(scorer, LateScorer):
            complete = len(self.predictions) == total
            self.series, self.predictions = {}, []
            for scored in scorer.finish(complete=complete):
                self._add(scored)

    def _add(self, scored: Scored) -> None:
        for name, value in scored.values.items():
            self.series.setdefault(name, []).append(value)
        self.predictions.append(scored.prediction)


def run(args: dict[str, Any], context: object) -> RunReport:
    """Scores of every sample, and where and with what they were measured."""
    ctx = cast("Context", context)
    asked = values.read(RunArguments, args)
    section = asked.data
    folder = Path(section.processor or asked.folder)
    task, guessed = choose_task(asked.task, section, folder)
    _check(task, asked, guessed)
    notes = (guessed,) if guessed else ()
    if section.source == DEFAULT:
        # Data that lies here needs no hub.
        from winml.modelkit.data.defaults import find_default

        section, said = find_default(section, task.name)
        notes = (*notes, said)
    data, tally = _Data(section, folder, task), _Tally()
    arm = open_arm(asked.arm, data.first)
    assert data.dataset is not None  # opening made the first inputs
    with arm.session as session, saved_outputs.Writer(None if asked.save is None else Path(asked.save)) as writer:
        names = tuple(o.name for o in session.outputs)
        scorer = task.scorer(Setting(names, folder, asked.output))
        ctx.tell(ModelOpened(total=len(data.dataset) + data.dataset.unjudged))
        tally.go_through(data.dataset, session, scorer, writer, ctx)
        return RunReport(
            task=task.name,
            metrics=tuple(m for m in task.metrics if m.series in tally.series),
            agreement=task.agreement,
            series={name: tuple(values) for name, values in tally.series.items()},
            predictions=tuple(tally.predictions),
            stopped=ctx.stop.is_set(),
            data=_data_facts(section, data.dataset),
            notes=(*notes, *data.dataset.notes, *scorer.notes),
            outputs=names,
            placement=session.placement,
            provider_options=session.provider_options,
            added_options=session.added_options,
            fixed_dims=session.section.fixed_dims,
            weights_at_risk=weights_at_risk(session.path, session.target),
            environment=environment.environment(session.target.ep, distribution_version(session.package)),
        )


def _check(task: Task, asked: RunArguments, guessed: str | None) -> None:
    """Check before anything runs that the task can answer the request."""
    if not task.metrics and not asked.reference:
        raise RequestError(
            f"task `{task.name}` needs a reference",
            hint=f"{guessed or 'it has no metric'}; name the reference with `--reference MODEL`, or another task with "
            "`--task`",
        )
    names = [m.name for m in task.metrics]
    if asked.limits and not names:
        raise RequestError(f"task `{task.name}` has no metric that could have a limit")
    if asked.metric is not None and asked.metric not in names:
        raise RequestError(f"task `{task.name}` has no metric `{asked.metric}`", hint=did_you_mean(asked.metric, names))
    judged = next((m for m in task.metrics if m.name == (asked.metric or names[0])), None)
    if asked.least and judged is not None and judged.lower:
        raise RequestError(f"`{judged.name}` is better when it is lower, so it has no minimum", hint=_OTHER)


def _data_facts(section: DataSection, dataset: Dataset) -> DataFacts:
    return DataFacts(
        source=dataset.source,
        digest=dataset.digest,
        samples=len(dataset),
        limit=section.limit,
        seed=section.seed,
        columns=dataset.columns,
    )
