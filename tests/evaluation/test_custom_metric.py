"""Metrics of the user's own: how they are found, called, and what is said when they are wrong."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import model_zoo
import task_cases
import task_zoo
import winml.modelkit as wk
from winml.modelkit.core.config import SCHEMA, DataSection, read_config
from winml.modelkit.core.errors import CheckFailed, DataError, ModelkitError, RequestError, UnavailableError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.evaluation.custom_metric import (
    CustomMetric,
    load_metric,
    make_metric,
    names_file,
    score_outputs,
)
from winml.modelkit.evaluation.report import RunArguments, RunReport
from winml.modelkit.evaluation.run import run
from winml.modelkit.session.arm import arm_arguments


class Context:
    """Takes no event."""

    stop = threading.Event()

    def tell(self, event: object) -> None:
        pass


FILE = """\
def score(outputs, sample):
    return abs(float(outputs["y"].item()) - sample.label)

score.lower_is_better = True


def misses(outputs, sample):
    return 1 / 0


LIMIT = 3
"""


@pytest.fixture
def metric_file(tmp_path: Path) -> Path:
    path = tmp_path / "my_metric.py"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def gate(tmp_path: Path) -> dict[str, Any]:
    """A model that says the number it is given, and ten numbers with what they should be."""
    x = np.linspace(0.0, 0.9, 10, dtype=np.float32)[:, None]
    right = [0.0, 0.1, 0.2, 0.3, 0.4, 1.0, 1.0, 1.0, 1.0, 1.0]
    model = model_zoo.saved(task_zoo.gate(), tmp_path / "model.onnx")
    return {"model": model, "data": {"x": x, "label": np.asarray(right)}, "target": "cpu", "progress": False}


def _evaluate(gate: dict[str, Any], metric: Any, **more: Any) -> Any:
    return wk.evaluate(gate["model"], data=gate["data"], target="cpu", progress=False, metric=metric, **more)


def _score(gate: dict[str, Any], metric: CustomMetric, then: dict[str, Any] | None = None) -> RunReport:
    """The scores of a run in this process; `then` is what the data is when they are scored."""
    folder = gate["model"].parent
    section = DataSection(str(folder / "data.npz"))
    np.savez(section.source, **gate["data"])
    arm = Arm(artifact=str(gate["model"]), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    asked = RunArguments(
        arm=arm_arguments(arm, None), data=section, folder=str(folder), task=None, reference=False,
        save=str(folder / "outputs"), custom=True,
    )  # fmt: skip
    report = run(to_json(asked), Context())
    if then is not None:
        np.savez(section.source, **then)
    return score_outputs(metric, report, folder / "outputs", section, folder)


def test_a_value_with_a_file_is_told_from_the_name_of_a_metric() -> None:
    assert [names_file(text) for text in ("my.py:score", r"C:\x\my.py:score", "my.py", "accuracy")] == [
        True, True, True, False
    ]  # fmt: skip


def test_a_file_is_run_and_its_digest_and_function_are_kept(gate: dict[str, Any], metric_file: Path) -> None:
    result = _evaluate(gate, f"{metric_file}:score")
    assert result.metrics["score"].value == pytest.approx(0.15)
    assert result.custom_metric.function == "score"
    assert result.custom_metric.digest.startswith("sha256:")
    assert Path(result.custom_metric.file) == metric_file
    assert len(result.samples.candidate.series["score"]) == 10


def test_a_function_of_the_caller_may_be_local_and_sees_its_variables(gate: dict[str, Any]) -> None:
    seen: list[str] = []

    def local(outputs: Any, sample: Any) -> bool:
        seen.append(sample.where)
        return bool(abs(outputs["y"].item() - sample.label) < 0.05 and sample.inputs["x"].shape == (1, 1))

    result = _evaluate(gate, local)
    assert (result.metrics["local"].value, len(seen)) == (0.5, 10)
    assert result.metrics["local"].method == "wilson"
    assert result.custom_metric.function.endswith("local")
    assert _evaluate(gate, lambda outputs, sample: 2.0).metrics["custom"].value == 2.0
    assert _evaluate(gate, functools.partial(local)).metrics["partial"].value == 0.5


def test_several_numbers_have_names_and_a_prediction_gives_agreement(gate: dict[str, Any]) -> None:
    def both(outputs: Any, sample: Any) -> dict[str, Any]:
        value = outputs["y"].item()
        return {"off": abs(value - sample.label), "right": value == sample.label, "prediction": np.round(value, 1)}

    both.lower_is_better = ("off",)  # type: ignore[attr-defined]
    result = _evaluate(gate, both, reference=gate["model"], max_drop=0.9)
    assert list(result.metrics) == ["off", "right"]
    assert result.metric == "off"
    assert (result.agreement.value, result.drop["off"].value) == (1.0, 0.0)
    assert result.samples.candidate.predictions[3] == pytest.approx(0.3)


def test_less_is_better_where_the_function_says_so(gate: dict[str, Any], metric_file: Path, tmp_path: Path) -> None:
    worse = model_zoo.saved(
        model_zoo.text_model("g (float[batch,1] x) => (float[batch,1] y) <float c = {4.0}> { y = Add(x, c) }"),
        tmp_path / "worse.onnx",
    )
    asked = {**gate, "model": worse}
    with pytest.raises(CheckFailed, match="score dropped by 3.7") as caught:
        _evaluate(asked, f"{metric_file}:score", reference=gate["model"], max_drop=1.0)
    assert caught.value.result.drop["score"].value == pytest.approx(3.7)
    with pytest.raises(CheckFailed, match="the maximum is 2"):
        _evaluate(asked, f"{metric_file}:score", max_metric=2.0)
    assert _evaluate(gate, f"{metric_file}:score", max_metric=2.0).checks[0].answer == "within"
    with pytest.raises(RequestError, match="better when it is lower, so it has no minimum"):
        _evaluate(gate, f"{metric_file}:score", min_metric=0.1)


def test_one_number_of_all_samples_has_a_jackknife_interval_within_its_bounds(gate: dict[str, Any]) -> None:
    def note(outputs: Any, sample: Any) -> tuple[Any, float]:
        return outputs["y"], sample.label  # not JSON: records stay in this process

    def share(records: list[tuple[Any, float]]) -> float | None:
        return float(np.mean([value.item() == pytest.approx(label, abs=1e-6) for value, label in records]))

    note.total, note.name, note.bounds = share, "share", (0, 1)  # type: ignore[attr-defined]
    result = _evaluate(gate, note, reference=gate["model"], max_drop=0.5)
    found = result.metrics["share"]
    assert (found.value, found.method) == (0.5, "jackknife")
    assert 0.0 <= found.interval.low < 0.5 < found.interval.high <= 1.0
    assert (result.drop["share"].value, result.checks[0].answer) == (0.0, "within")
    assert result.samples.candidate.series == {}


def test_data_without_labels_has_samples_without_one(gate: dict[str, Any]) -> None:
    data = {"x": gate["data"]["x"]}
    result = _evaluate({**gate, "data": data}, lambda outputs, sample: sample.label is None)
    assert result.metrics["custom"].value == 1.0


@pytest.mark.parametrize(
    ("returns", "says"),
    [
        (lambda o, s: float("nan"), "returned nan for sample 0"),
        (lambda o, s: "good", "returned str 'good' for sample 0"),
        (lambda o, s: {"prediction": 1}, "names no number"),
        (lambda o, s: {"a": 1.0} if s.label < 0.15 else {"b": 1.0}, "called b for sample 2 .*, and a for"),
        (lambda o, s: {"a": 1.0, "prediction": object()}, "as `prediction`"),
        (lambda o: 1.0, "raised TypeError"),
    ],
)
def test_what_is_no_score_is_an_error_that_names_the_sample(
    gate: dict[str, Any], returns: Callable[..., Any], says: str
) -> None:
    with pytest.raises(RequestError, match=says):
        _score(gate, make_metric(returns))


def test_an_error_of_the_function_names_its_file_its_line_and_the_sample(
    gate: dict[str, Any], metric_file: Path
) -> None:
    with pytest.raises(
        RequestError, match=r"`misses` of `.*my_metric.py`, line 8, raised ZeroDivisionError.* sample 0"
    ):
        _score(gate, load_metric(f"{metric_file}:misses"))


def test_data_that_changes_between_the_run_and_the_scoring_is_noticed(gate: dict[str, Any]) -> None:
    def change(outputs: Any, sample: Any) -> float:
        return 1.0

    with pytest.raises(DataError, match="changed while it was evaluated"):
        _score(gate, make_metric(change), then={**gate["data"], "label": np.ones(10)})


@pytest.mark.parametrize(
    ("text", "content", "error", "says"),
    [
        ("other.py:score", None, RequestError, "metric file not found"),
        ("my_metric.py", None, RequestError, "names no function"),
        ("my_metric.py:scor", None, RequestError, "has no function `scor`"),
        ("my_metric.py:LIMIT", None, RequestError, "must be a function but is of type `int`"),
        ("my_metric.py:score", "def score(:", RequestError, "line 1, is not Python"),
        ("my_metric.py:score", "x = 1\nraise OSError('full')", RequestError, "line 2, raised OSError: full"),
        ("my_metric.py:score", "exit()", RequestError, "raised SystemExit"),
        ("my_metric.py:score", "import no_such_package", UnavailableError, "imports `no_such_package`"),
        (
            "my_metric.py:score",
            "def score(o, s): ...\nscore.total = 3",
            RequestError,
            "`total` of .* must be a function",
        ),
        ("my_metric.py:score", "def score(o, s): ...\nscore.lower_is_better = 'x'", RequestError, "`lower_is_better`"),
        ("my_metric.py:score", "def score(o, s): ...\nscore.bounds = (1, 0)", RequestError, "`bounds` of"),
    ],
)
def test_a_file_that_has_no_metric_is_an_error_before_anything_runs(
    metric_file: Path, text: str, content: str | None, error: type[ModelkitError], says: str
) -> None:
    if content is not None:
        metric_file.write_text(content, encoding="utf-8")
    with pytest.raises(error, match=says):
        load_metric(str(metric_file.parent / text))


def test_no_document_can_name_a_metric(tmp_path: Path) -> None:
    section = {"task": "binary-classification", "data": {"source": "x.npz"}}
    assert read_config({"schema": SCHEMA, "eval": section}).eval is not None
    for key in ("metric", "custom", "custom_metric"):
        with pytest.raises(RequestError, match=key):
            read_config({"schema": SCHEMA, "eval": {**section, key: "evil.py:score"}})


def test_a_metric_must_be_callable() -> None:
    with pytest.raises(RequestError, match="must be a function but is of type `int`"):
        make_metric(3)


def test_a_module_beside_the_file_can_be_imported(metric_file: Path) -> None:
    (metric_file.parent / "beside_the_metric.py").write_text("HALF = 0.5", encoding="utf-8")
    metric_file.write_text("import beside_the_metric\ndef score(o, s): return beside_the_metric.HALF", encoding="utf-8")
    assert load_metric(f"{metric_file}:score").function({}, None) == 0.5


def test_a_metric_in_decibels_has_a_limit_in_decibels(tmp_path: Path) -> None:
    case = task_cases.CASES["image-to-image"](tmp_path)
    asked: dict[str, Any] = {"data": case.data, "task": "image-to-image", "target": "cpu", "progress": False}
    found = wk.evaluate(case.model, **asked, min_metric=15.0, judge="value")
    assert (found.checks[0].answer, found.checks[0].limit) == ("within", 15.0)
    with pytest.raises(RequestError, match="must be a number that a metric can have"):
        wk.evaluate(case.model, **asked, min_metric=float("inf"))
