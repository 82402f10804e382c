"""Models with state: which input takes over which output, and that a sample is a sequence."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_zoo
import model_zoo
import winml.modelkit as wk
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import DataError, ModelkitError, RequestError
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.data.arrays import as_steps
from winml.modelkit.evaluation.report import RunArguments
from winml.modelkit.evaluation.run import run
from winml.modelkit.evaluation.state import find_state
from winml.modelkit.graph.inputs import InputSpec
from winml.modelkit.session.arm import arm_arguments


class Context:
    """Takes no event."""

    stop = threading.Event()

    def tell(self, event: object) -> None:
        pass


# The output is the sum of everything seen so far, squeezed to a probability.
COUNTER = """g (float[batch,1] x, float[2,batch,1] state, int64 rate) => (float[batch,1] y, float[2,batch,1] stateN)
<float c = {10.0}, int64[1] first = {0}, int64 zero = {0}>
{ more = Add(state, x)  unused = Cast<to = 1>(rate)  none = Sub(unused, unused)  stateN = Add(more, none)
  one = Gather<axis = 0>(stateN, zero)  y = Div(one, c) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return model_zoo.saved(model_zoo.text_model(COUNTER), tmp_path / "model.onnx")


def _spec(name: str, *shape: int | str | None, kind: str = "float") -> InputSpec:
    return InputSpec(name, f"tensor({kind})", shape)


@pytest.mark.parametrize(
    ("state", "output"),
    [("state", "stateN"), ("h", "hn"), ("h0", "hn"), ("cell_in", "cell_out"), ("past_key", "present_key"),
     ("prevState", "newState"), ("in_cache0", "out_cache0")],
)  # fmt: skip
def test_a_state_is_found_by_its_name(state: str, output: str) -> None:
    outputs = [_spec("y", 1, 1), _spec("other", 2, 1, 8), _spec(output, None, None, None)]
    found = find_state([_spec(state, 2, "batch", 8)], outputs)
    assert found.pairs == {state: output}
    assert "by its name" in found.notes[0]


def test_a_state_is_found_by_its_shape_where_only_one_output_has_it() -> None:
    outputs = [_spec("y", 1, 1), _spec("z", 2, 1, 8)]
    assert find_state([_spec("memory", 2, 1, 8)], outputs).pairs == {"memory": "z"}
    assert find_state([_spec("memory", 2, 1, 8)], [*outputs, _spec("w", 2, 1, 8)]).pairs == {}


def test_the_only_output_and_other_types_are_no_state() -> None:
    assert find_state([_spec("b", 1, 4)], [_spec("bn", 1, 4)]).pairs == {}
    assert find_state([_spec("h", 1, 4, kind="int64")], [_spec("y", 1), _spec("hn", 1, 4)]).pairs == {}


def test_a_sequence_is_run_from_zeros_and_judged_by_step(model: Path) -> None:
    x = np.asarray([[[1], [2], [3]], [[5], [1], [1]]], np.float32)
    data = {"x": x, "rate": np.full(2, 16000), "label": np.asarray([[0, 0, 1], [0, 1, 1]])}
    result = wk.evaluate(model, data=data, task="binary-classification", target="cpu", progress=False)
    # 0.1, 0.3, 0.6 and 0.5, 0.6, 0.7: one of six steps is wrong at 0.5.
    assert result.metrics["accuracy"].value == pytest.approx(5 / 6)
    assert result.state == {"state": "stateN"}
    assert result.samples.candidate.series["numbers"][0] == pytest.approx([0.1, 0.3, 0.6])
    assert any("`state` takes over output `stateN`" in note for note in result.notes)


def test_one_label_judges_the_last_step_or_what_the_user_says(model: Path) -> None:
    x = np.asarray([[[9], [-8]], [[1], [6]]], np.float32)
    data = {"x": x, "rate": np.full(2, 16000), "label": np.asarray([1, 1])}
    asked: dict[str, Any] = {"data": data, "task": "binary-classification", "target": "cpu", "progress": False}
    last = wk.evaluate(model, **asked)
    assert last.metrics["accuracy"].value == 0.5
    assert any("judged by its last step" in note for note in last.notes)
    assert wk.evaluate(model, **asked, task_options={"over": "max"}).metrics["accuracy"].value == 1.0
    assert wk.evaluate(model, **asked, task_options={"over": "max", "threshold": 0.8}).metrics["accuracy"].value == 0.5


def test_a_custom_metric_gets_the_outputs_of_all_steps(model: Path, tmp_path: Path) -> None:
    rows = [{"x": [[1], [2]], "rate": 8000, "label": 3}, {"x": [[1], [1], [1]], "rate": 8000, "label": 3}]
    data = data_zoo.jsonl(tmp_path / "data.jsonl", rows)  # of different lengths

    def last(outputs: Any, sample: Any) -> bool:
        assert outputs["y"].shape == (1 + len(sample.more), 1, 1)
        return bool(abs(10 * outputs["y"][-1].item() - sample.label) < 1e-5)

    result = wk.evaluate(model, data=data, metric=last, target="cpu", progress=False, state={"state": "stateN"})
    assert result.metrics["last"].value == 1.0


def test_a_sequence_in_data_for_a_model_with_state_is_refused() -> None:
    specs = [_spec("x", "batch", 1), InputSpec("parts", "seq(tensor(float))", ())]
    given: dict[str, Any] = {"x": np.ones((3, 1), np.float32), "parts": [np.ones(2, np.float32)]}
    with pytest.raises(DataError, match="input `parts` is a sequence, which a model with state cannot have in data"):
        as_steps(given, specs, "sample 0")
    assert len(as_steps(given, specs[:1], "sample 0")) == 3


@pytest.mark.parametrize(
    ("changed", "state", "error", "says"),
    [
        ({}, {"stat": "stateN"}, RequestError, "input `stat`, which the model lacks"),
        ({}, {"state": "stateM"}, RequestError, "output `stateM`, which the model lacks"),
        ({}, {"state": "y"}, RequestError, "cannot be the next value of input `state`"),
        ({"x": np.ones(2, np.float32)}, {}, DataError, "is not a sequence"),
        ({"x": np.ones((2, 2, 1), np.float32)}, {}, DataError, "has 3 labels for 2 numbers"),
        ({"x": None}, {}, DataError, "no array for input `x`"),
    ],
)
def test_wrong_states_and_sequences_are_refused(
    model: Path, changed: dict[str, Any], state: dict[str, str], error: type[ModelkitError], says: str
) -> None:
    good = {"x": np.ones((2, 3, 1), np.float32), "rate": np.full(2, 1), "label": np.zeros((2, 3), int)}
    data = model.with_name("data.npz")
    np.savez(data, **{name: value for name, value in {**good, **changed}.items() if value is not None})
    arm = Arm(artifact=str(model), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    asked = RunArguments(
        arm=arm_arguments(arm, None), data=DataSection(str(data)), folder=str(model.parent),
        task="binary-classification", reference=False, state=state,
    )  # fmt: skip
    with pytest.raises(error, match=says):
        run(to_json(asked), Context())
