"""What every task promises, on a small real model each."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
import task_cases
import task_zoo
from task_zoo import Case
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.data.dataset import open_dataset
from winml.modelkit.evaluation.all_tasks import TASKS, choose_task
from winml.modelkit.evaluation.metrics import GOLD, Metric, estimate
from winml.modelkit.evaluation.report import RunArguments, RunReport
from winml.modelkit.evaluation.run import run
from winml.modelkit.evaluation.task import LateScorer, Setting
from winml.modelkit.evaluation.task_data import open_task_data
from winml.modelkit.session.arm import arm_arguments
from winml.modelkit.session.opening import CPU
from winml.modelkit.session.session import WinMLSession

CASES = {**task_zoo.CASES, **task_cases.CASES}
RUN_ONCE = {name: task for name, task in TASKS.items() if not task.generates}
"""Tasks of models that generate are tried in `generation/test_generation.py`."""


class Context:
    """Collects events."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.events: list[object] = []

    def tell(self, event: object) -> None:
        self.events.append(event)


def arguments(case: Case, task: str | None, **more: Any) -> dict[str, Any]:
    arm = Arm(artifact=str(case.model), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    given: dict[str, Any] = {"reference": True, "task_options": case.options, **more}
    asked = RunArguments(
        arm=arm_arguments(arm, None),
        data=DataSection(str(case.data)),
        folder=str(case.model.parent),
        task=task,
        **given,
    )
    found: dict[str, Any] = to_json(asked)
    return found


@pytest.fixture(params=RUN_ONCE, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def case(name: str, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return CASES[name](tmp_path_factory.mktemp(name))


@pytest.fixture(scope="module")
def report(name: str, case: Case) -> RunReport:
    return run(arguments(case, name), Context())


def test_every_task_has_its_own_name_and_a_case_here() -> None:
    assert list(TASKS) == [task.name for task in TASKS.values()]
    assert set(TASKS) == set(CASES)


def test_a_task_gives_the_metrics_its_model_deserves(case: Case, report: RunReport) -> None:
    made = {m.name: estimate(m, report.series) for m in report.metrics}
    assert {n: found.value for n, found in made.items()} == pytest.approx(case.metrics, abs=0.001)
    for found in made.values():
        assert found.n == len(report.predictions) == report.data.samples
        assert found.value is not None
        assert found.interval is not None
        assert found.interval.low <= found.value <= found.interval.high


def test_what_a_worker_says_is_read_as_it_was(report: RunReport) -> None:
    assert to_json(read(RunReport, json.loads(json.dumps(to_json(report))))) == to_json(report)


def test_every_metric_is_made_of_a_series_the_task_gives(name: str, report: RunReport) -> None:
    task, series = TASKS[name], report.series
    # A metric of several forms is made of the series of one.
    assert {m.name for m in report.metrics} == {m.name for m in task.metrics}
    assert {name for m in report.metrics for name in (m.series, *m.over)} <= set(series)
    assert (GOLD in series) == any(m.kind in ("pearson", "spearman") for m in task.metrics)
    assert len({len(values) for values in series.values()}) <= 1


def test_a_custom_metric_sees_the_labels_that_the_task_sees(name: str, case: Case) -> None:
    task, folder, section = TASKS[name], case.model.parent, DataSection(str(case.data))
    if not task.labels:
        pytest.skip("the task has no labels")
    with WinMLSession(case.model, target=CPU) as session:
        own, custom = (
            open_task_data(task, section, session.inputs, folder, custom=custom, steps=False)
            for custom in (False, True)
        )
    labels = [sample.label for sample in own]
    assert any(label is not None for label in labels)
    np.testing.assert_equal([sample.label for sample in custom], labels)
    # The files that labels are read from are part of the data.
    assert custom.digest == own.digest


def _first_sample(name: str, case: Case) -> Iterator[Any]:
    with WinMLSession(case.model, target=CPU) as session:
        task = TASKS[name]
        data = open_dataset(
            DataSection(str(case.data)), session.inputs, model_folder=case.model.parent, labels=task.labels,
            form=task.form,
        )  # fmt: skip
        sample = next(iter(data))
        runs = [session.run(inputs) for inputs in (sample.inputs, *sample.more)]
        yield task.scorer(Setting(tuple(runs[0]), case.model.parent, None, case.options)), sample, runs


def _without_numbers(value: Any) -> Any:
    """The same form of output with nothing but NaN: an array, or the maps of a classifier."""
    return [dict.fromkeys(row, np.nan) for row in value] if isinstance(value, list) else np.full_like(value, np.nan)


def test_outputs_that_are_not_numbers_count_as_wrong_and_are_no_prediction(name: str, case: Case) -> None:
    for scorer, sample, runs in _first_sample(name, case):
        broken = [{output: _without_numbers(value) for output, value in one.items()} for one in runs]
        scored = scorer.score(sample, broken)
        if isinstance(scorer, LateScorer):
            scored = scorer.finish(complete=True)[0]
        assert scored.prediction is None
        series = {series: [value] for series, value in scored.values.items()}
        for metric in TASKS[name].metrics:
            if metric.series in series and GOLD not in series:
                assert estimate(metric, series).value in _worst(metric)


def _worst(metric: Metric) -> tuple[float | None, ...]:
    """What a metric is when no sample gave a number: no number on its own scale, and the worst on a fixed one."""
    if metric.kind == "perplexity":
        return (pytest.approx(1 / np.finfo(np.float32).tiny),)
    if metric.name == "mase" or metric.kind == "number":
        return (None,)
    return (1.0,) if metric.lower else (0.0, None)


@pytest.mark.parametrize("labelled", [task.name for task in RUN_ONCE.values() if task.labels])
def test_a_label_that_means_nothing_is_an_error_with_the_sample(labelled: str, tmp_path: Path) -> None:
    for scorer, sample, runs in _first_sample(labelled, CASES[labelled](tmp_path)):
        for label in (None, [None], {"a": 1}):
            with pytest.raises(DataError, match=re.escape(sample.where)):
                scorer.score(replace(sample, label=label), runs)


def test_a_stop_gives_what_there_is(name: str, case: Case) -> None:
    context = Context()
    context.stop.set()
    report = run(arguments(case, name), context)
    assert report.stopped
    # Nothing was searched before all texts are there.
    assert len(report.predictions) == (0 if name == "retrieval" else 1)


def test_the_task_is_the_named_one_or_that_of_the_model(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="unknown task `image-clasification`") as caught:
        choose_task("image-clasification", DataSection("x.npz"), None)
    assert "`image-classification`" in (caught.value.hint or "")
    with pytest.raises(RequestError, match="the task of the model is unknown"):
        choose_task(None, DataSection("x.npz"), tmp_path)
    (tmp_path / "config.json").write_text('{"architectures": ["BertForQuestionAnswering"]}')
    task, note = choose_task(None, DataSection("x.npz"), tmp_path)
    assert task.name == "question-answering"
    assert note == "task `question-answering`, because config.json names `BertForQuestionAnswering`"
    assert choose_task(None, DataSection("random"), tmp_path)[0].name == "outputs"
    assert choose_task("outputs", DataSection("x.npz"), tmp_path)[1] is None


@pytest.mark.parametrize(
    ("architecture", "task"),
    [
        ("RobertaForTokenClassification", "token-classification"),
        ("YolosForObjectDetection", "object-detection"),
        ("SegformerForSemanticSegmentation", "image-segmentation"),
        ("Wav2Vec2ForCTC", "automatic-speech-recognition"),
        ("CLIPModel", "zero-shot-image-classification"),
    ],
)
def test_architectures_are_for_their_task(architecture: str, task: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    assert choose_task(None, DataSection("x.npz"), tmp_path)[0].name == task


@pytest.mark.parametrize(
    ("architecture", "task"),
    [("MistralForCausalLM", "text-generation"), ("OddForCloudSpotting", "cloud-spotting"), ("X", "feature-extraction")],
)
def test_a_task_without_a_metric_is_judged_by_its_outputs_and_says_so(
    architecture: str, task: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    found, note = choose_task(None, DataSection("x.npz"), tmp_path)
    assert found.name == "outputs"
    assert note is not None
    why = "its metrics are for folders that generate text" if task in TASKS else "there is no metric for it here"
    assert note.startswith(f"task `{task}`, because config.json names `{architecture}`; {why}")
    named, said = choose_task(task, DataSection("x.npz"), tmp_path)
    assert (named.name, (said or "").partition(";")[0]) == ("outputs", f"task `{task}`")


def test_what_has_no_metric_and_no_reference_says_which_task_that_is(tmp_path: Path) -> None:
    case = CASES["outputs"](tmp_path)
    data = data_zoo.jsonl(tmp_path / "x.jsonl", [{"x": [1, 2, 3, 4]}])
    (tmp_path / "config.json").write_text('{"architectures": ["OddForCloudSpotting"]}')
    with pytest.raises(RequestError, match="needs a reference") as caught:
        run(arguments(replace(case, data=data), None, reference=False), Context())
    assert "task `cloud-spotting`, because config.json names `OddForCloudSpotting`" in (caught.value.hint or "")


def test_a_model_of_an_unknown_task_runs_for_a_comparison_of_its_outputs(tmp_path: Path) -> None:
    case = CASES["outputs"](tmp_path)
    data = data_zoo.jsonl(tmp_path / "x.jsonl", [{"x": [1, 2, 3, 4]}, {"x": [0, 0, 0, 1]}])
    (tmp_path / "config.json").write_text('{"architectures": ["OddForCloudSpotting"]}')
    found = run(arguments(replace(case, data=data), None), Context())
    assert (found.task, len(found.predictions), found.metrics) == ("outputs", 2, ())
    assert "only the outputs are compared" in found.notes[0]


@pytest.mark.parametrize(
    ("task", "asked", "refused"),
    [
        ("image-to-image", {"min_metric": 30.0, "max_drop": 2.0}, None),
        ("image-to-image", {"metric": "ssim", "max_drop": 1.0}, None),
        ("depth-estimation", {"metric": "rmse", "max_metric": 4.0}, None),
        ("time-series-forecasting", {"metric": "mase", "max_metric": 1.5}, None),
        ("fill-mask", {"metric": "pseudo_perplexity", "max_metric": 40.0}, None),
        ("automatic-speech-recognition", {"metric": "wer", "max_drop": 1.0}, None),
        ("automatic-speech-recognition", {"min_metric": 90.0}, "`--min-metric` of `word_accuracy` is a fraction"),
        ("depth-estimation", {"min_metric": -1.5}, "`--min-metric` of `delta1` is a fraction from -1 to 1 but got"),
        ("multiple-choice", {"max_drop": 1.0}, "`--max-drop` of `accuracy` is a fraction from 0 to 1 but got 1"),
    ],
)
def test_limits_are_in_the_unit_of_the_metric(
    tmp_path: Path, task: str, asked: dict[str, Any], refused: str | None
) -> None:
    case = CASES[task](tmp_path)
    if refused is None:
        assert run(arguments(case, task, **asked), Context()).predictions
        return
    with pytest.raises(RequestError, match=refused):
        run(arguments(case, task, **asked), Context())


def test_what_cannot_be_answered_is_refused_before_anything_runs(tmp_path: Path) -> None:
    case = CASES["outputs"](tmp_path)
    with pytest.raises(RequestError, match="needs a reference"):
        run(arguments(case, None, reference=False), Context())
    with pytest.raises(RequestError, match="no metric that could have a limit"):
        run(arguments(case, None, max_drop=0.01), Context())
    with pytest.raises(RequestError, match="no metric `f1`"):
        run(arguments(case, "text-classification", metric="f1"), Context())
    with pytest.raises(RequestError, match="`wer` is better when it is lower"):
        run(arguments(case, "automatic-speech-recognition", metric="wer", min_metric=0.1), Context())
