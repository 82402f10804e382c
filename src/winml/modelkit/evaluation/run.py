"""Worker operation: run a model over data on its target and score every sample."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from winml.modelkit.core import values
from winml.modelkit.core.config import DEFAULT, RANDOM, DataSection
from winml.modelkit.core.errors import RequestError, SessionError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.data.dataset import Dataset, list_columns
from winml.modelkit.ep.discovery import distribution_version
from winml.modelkit.evaluation import saved_outputs
from winml.modelkit.evaluation.all_tasks import choose_task
from winml.modelkit.evaluation.metrics import check_direction, check_range
from winml.modelkit.evaluation.outputs import CUSTOM
from winml.modelkit.evaluation.report import DataFacts, ModelInput, ModelOpened, RunArguments, RunReport, SamplesDone
from winml.modelkit.evaluation.state import State, check_outputs, find_state, given_state, zero_state
from winml.modelkit.evaluation.task import LateScorer, Scored, Scorer, Setting, Task
from winml.modelkit.evaluation.task_data import open_task_data
from winml.modelkit.graph.inputs import Arrays, InputSpec
from winml.modelkit.session import environment
from winml.modelkit.session.measure import Context
from winml.modelkit.session.opening import CPU, open_arm
from winml.modelkit.session.saturation import weights_at_risk
from winml.modelkit.session.session import WinMLSession

_EVENT_EVERY_S = 0.25


class _Data:
    """The data for the model that is being opened: its first sample decides shapes that the model leaves open."""

    def __init__(self, asked: RunArguments, folder: Path, task: Task) -> None:
        self._asked = asked
        self._folder = folder
        self._task = task
        self.dataset: Dataset | None = None
        self.state = State({})
        self.inputs: tuple[InputSpec, ...] = ()

    def first(self, specs: Sequence[InputSpec]) -> Arrays:
        state = self._state(specs)
        self.inputs = tuple(spec for spec in specs if spec.name not in state.pairs)
        self.dataset = open_task_data(
            self._task, self._asked.data, self.inputs, self._folder, custom=self._asked.custom, steps=bool(state.pairs)
        )
        inputs = next(iter(self.dataset)).inputs
        zeros = zero_state(state.pairs, specs, inputs, self._asked.data.dims) if state.pairs else {}
        self.state = replace(state, zeros=zeros)
        return {**inputs, **zeros}

    def _state(self, specs: Sequence[InputSpec]) -> State:
        """The state that the user named, or that inputs are which ready data lacks."""
        asked = self._asked
        if asked.state:
            return given_state(asked.state, specs)
        if asked.data.source == RANDOM or self._task.form != "joined":
            return State({})
        columns = list_columns(asked.data)
        missing = [spec for spec in specs if asked.data.columns.get(spec.name, spec.name) not in columns]
        if not missing or len(missing) == len(specs):
            return State({})  # nothing is missing, or the data holds texts or images and not inputs
        outputs = self._outputs()
        # Without an output of their kind, inputs are simply missing: the data says so.
        return State({}) if outputs is None else find_state(missing, outputs)

    def _outputs(self) -> tuple[InputSpec, ...] | None:
        """The outputs of the model before it is opened on its target; None for one that opens only there."""
        try:
            section = SessionSection(optimization_level="disable")
            with WinMLSession(self._asked.arm.model, target=CPU, section=section) as session:
                return session.outputs
        except SessionError:
            return None


class _Tally:
    """Scores so far, by series."""

    def __init__(self) -> None:
        self.series: dict[str, list[Any]] = {}
        self.predictions: list[Any] = []

    def add(self, scored: Scored) -> None:
        for name, value in scored.values.items():
            self.series.setdefault(name, []).append(value)
        self.predictions.append(scored.prediction)

    def go_through(
        self, data: _Data, session: WinMLSession, scorer: Scorer, writer: saved_outputs.Writer, context: Context
    ) -> None:
        dataset = data.dataset
        assert dataset is not None
        next_event, total = time.monotonic() + _EVENT_EVERY_S, len(dataset) + dataset.unjudged
        for sample in dataset:
            runs = data.state.run(session, sample)
            self.add(scorer.score(sample, runs))
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
                self.add(scored)


def run(args: dict[str, Any], context: object) -> RunReport:
    """Scores of every sample, and where and with what they were measured."""
    ctx = cast("Context", context)
    asked = values.read(RunArguments, args)
    section = asked.data
    folder = Path(section.processor or asked.folder)
    task, guessed = choose_task(asked.task or (CUSTOM.name if asked.custom else None), section, folder)
    check_request(task, asked, guessed)
    notes = (guessed,) if guessed else ()
    if section.source == DEFAULT:
        # Data that lies here needs no hub.
        from winml.modelkit.data.defaults import find_default

        section, said = find_default(section, task.name)
        notes = (*notes, said)
        asked = replace(asked, data=section)
    data, tally = _Data(asked, folder, task), _Tally()
    arm = open_arm(asked.arm, data.first)
    assert data.dataset is not None  # opening made the first inputs
    with arm.session as session, saved_outputs.Writer(None if asked.save is None else Path(asked.save)) as writer:
        names = tuple(o.name for o in session.outputs)
        check_outputs(data.state.pairs, session.inputs, session.outputs)
        setting = Setting(names, folder, asked.output, asked.task_options, bool(data.state.pairs))
        # A custom metric judges the outputs afterwards; the task says only what a sample is.
        scorer = (CUSTOM if asked.custom else task).scorer(setting)
        ctx.tell(ModelOpened(total=len(data.dataset) + data.dataset.unjudged))
        tally.go_through(data, session, scorer, writer, ctx)
        return RunReport(
            task=task.name,
            metrics=tuple(m for m in task.metrics if m.series in tally.series),
            agreement=task.agreement,
            series={name: tuple(values) for name, values in tally.series.items()},
            predictions=tuple(tally.predictions),
            stopped=ctx.stop.is_set(),
            data=data_facts(section, data.dataset),
            notes=(*notes, *data.dataset.notes, *data.state.notes, *scorer.notes),
            outputs=names,
            placement=session.placement,
            provider_options=session.provider_options,
            added_options=session.added_options,
            fixed_dims=session.section.fixed_dims,
            weights_at_risk=weights_at_risk(session.path, session.target),
            environment=environment.environment(session.target.ep, distribution_version(session.package)),
            inputs=tuple(ModelInput(name=i.name, type=i.type, shape=i.shape) for i in data.inputs),
            state=data.state.pairs,
        )


def check_request(task: Task, asked: RunArguments, guessed: str | None) -> None:
    """Check before anything runs that the task can answer the request."""
    for name in asked.task_options:
        if asked.custom or name not in task.options:
            known = did_you_mean(name, task.options) if task.options and not asked.custom else None
            who = "a custom metric" if asked.custom else f"task `{task.name}`"
            raise RequestError(f"{who} has no option `{name}`", hint=known or "drop `--task-option`")
    if asked.custom:
        return
    if task is CUSTOM:
        raise RequestError("task `custom` needs a custom metric", hint="name it with `--metric my_metric.py:score`")
    if not task.metrics and not asked.reference:
        raise RequestError(
            f"task `{task.name}` needs a reference",
            hint=f"{guessed or 'it has no metric'}; name the reference with `--reference MODEL`, or another task with "
            "`--task`",
        )
    # Numbers about both models are known where there are two.
    judgeable = (*task.metrics, *(task.comparison if asked.reference else ()))
    names = [m.name for m in judgeable]
    limits = {"--min-metric": asked.min_metric, "--max-metric": asked.max_metric, "--max-drop": asked.max_drop}
    if any(limit is not None for limit in limits.values()) and not names:
        raise RequestError(f"task `{task.name}` has no metric that could have a limit")
    if asked.metric is not None and asked.metric not in names:
        raise RequestError(f"task `{task.name}` has no metric `{asked.metric}`", hint=did_you_mean(asked.metric, names))
    judged = next((m for m in judgeable if asked.metric in (None, m.name)), None)
    if judged in task.comparison and asked.max_drop is not None:
        raise RequestError(
            f"`{asked.metric}` is about both models, so it cannot drop",
            hint="its limit is `--max-metric` or `--min-metric`",
        )
    if judged is not None:
        check_range(judged, limits)
        check_direction(judged, least=asked.min_metric is not None, most=asked.max_metric is not None)


def data_facts(section: DataSection, dataset: Dataset) -> DataFacts:
    return DataFacts(
        source=dataset.source,
        digest=dataset.digest,
        samples=len(dataset),
        limit=section.limit,
        seed=section.seed,
        columns=dataset.columns,
    )
