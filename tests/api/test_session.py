"""`wk.Session`: arrays in, arrays out, on one target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import model_zoo
import winml.modelkit as wk
from winml.modelkit.core.errors import DataError, RequestError


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    with np.load(wk.sample.TEST) as stored:
        return stored["image"][:1]


def test_outputs_are_those_of_the_runtime(image: np.ndarray) -> None:
    plain = onnxruntime.InferenceSession(str(wk.sample.MODEL), providers=["CPUExecutionProvider"])
    (expected,) = plain.run(None, {"image": image})
    with wk.Session(wk.sample.MODEL, target="cpu") as session:
        for outputs in (session.run({"image": image}), session(image), session(image=image)):
            np.testing.assert_array_equal(outputs["logits"], expected)
        assert str(session.target) == "cpu"
        assert [(one.name, one.shape) for one in session.inputs] == [("image", ("batch", 1, 48, 48))]
        assert [one.name for one in session.outputs] == ["logits"]
        assert session.placement.nodes == {"CPUExecutionProvider": 12}
        assert repr(session) == "<Session 'digits.onnx' on cpu>"


def test_numbers_get_the_type_of_the_input() -> None:
    with wk.Session(model_zoo.relu(), target="cpu") as session:
        (spec,) = session.inputs
        zeros = np.zeros([size if isinstance(size, int) else 1 for size in spec.shape])
        assert next(iter(session(zeros.tolist()).values())).dtype == np.float32
        with pytest.raises(DataError, match=f"input `{spec.name}` must be float32 but the array has float64"):
            session(zeros)


def test_a_model_in_memory_is_a_file_until_the_session_is_closed(image: np.ndarray) -> None:
    session = wk.Session(onnx.load(wk.sample.MODEL), target="cpu")
    path = session._session.path
    assert path.is_file()
    session.close()
    assert not path.exists()
    with pytest.raises(RequestError, match="the session is closed"):
        session(image)


def test_a_session_that_nobody_has_any_more_releases_its_files() -> None:
    session = wk.Session(model_zoo.relu(), target="cpu")
    path: Path = session._session.path
    del session
    assert not path.exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"images": 1}, "the model has no input `images`"),
        ({}, "the array has no array for input `image`"),
        ({"image": np.zeros((1, 1, 8, 8), np.float32)}, "must have shape"),
    ],
)
def test_wrong_inputs_are_named(given: dict[str, np.ndarray], message: str) -> None:
    with wk.Session(wk.sample.MODEL, target="cpu") as session, pytest.raises(DataError, match=message):
        session.run(given)


def test_an_input_is_given_once(image: np.ndarray) -> None:
    with wk.Session(wk.sample.MODEL, target="cpu") as session:
        with pytest.raises(DataError, match="`image` is given twice"):
            session(image, image=image)
        with pytest.raises(DataError, match="the model has 1 inputs but got 2 arrays"):
            session(image, image)


def test_a_target_that_is_not_here_is_an_error() -> None:
    with pytest.raises(wk.errors.EPUnavailableError):
        wk.Session(wk.sample.MODEL, target="vitisai/npu")


def test_a_missing_model_is_an_error() -> None:
    with pytest.raises(wk.errors.ModelFileError, match="not found"):
        wk.Session("missing.onnx", target="cpu")


@pytest.mark.qnn
def test_a_model_runs_on_the_simulated_npu_alone(
    image: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        wk.Session(wk.sample.MODEL, target="qnn/npu", strict_ep=True) as npu,
        wk.Session(wk.sample.MODEL, target="cpu") as cpu,
    ):
        assert (str(npu.target), npu.target.simulated) == ("qnn/npu", True)
        assert npu.placement.cpu_ops == {}
        assert npu.inputs[0].shape == (1, 1, 48, 48), "a batch has one sample there unless `dims` says something else"
        np.testing.assert_allclose(npu(image)["logits"], cpu(image)["logits"], atol=0.1)
    assert list(tmp_path.iterdir()) == [], "the provider wrote nothing where the user works"


@pytest.mark.qnn
def test_dims_fix_the_sizes_of_an_npu(image: np.ndarray) -> None:
    with wk.Session(wk.sample.MODEL, target="qnn/npu", dims={"batch": 2}) as session:
        assert session(np.concatenate([image, image]))["logits"].shape == (2, 10)
