"""Outputs are compared as strictly as their type allows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import model_zoo
import pass_zoo
from winml.modelkit.building.optimize import verify
from winml.modelkit.building.optimize.result import SeededInputs, Verification


def _saved(model: onnx.ModelProto, folder: Path, name: str = "m") -> Path:
    return model_zoo.saved(model, folder / f"{name}.onnx")


def _compared(before: onnx.ModelProto, after: onnx.ModelProto, folder: Path) -> Verification:
    reference = verify.reference(_saved(before, folder, "a"), seed=0, dims={})
    return verify.compare(reference, _saved(after, folder, "b"), tolerance=verify.ROUNDING)


def _times(factor: float) -> onnx.ModelProto:
    return pass_zoo.graph("(float[n,4] x) => (float[n,4] y) { y = Mul(x, k) }", k=pass_zoo.scalar(factor))


def test_symbolic_dimensions_are_tried_with_two_sizes(tmp_path: Path) -> None:
    found = _compared(_times(1), _times(1), tmp_path)
    assert found.status == "passed"
    assert list(found.runs) == [
        SeededInputs({"n": size}, numbers) for size in (2, 3) for numbers in ("0 to 1", "-1 to 1")
    ]


def test_a_difference_beyond_rounding_is_found(tmp_path: Path) -> None:
    assert _compared(_times(1), _times(1.0005), tmp_path).status == "passed"
    assert _compared(_times(1), _times(1.01), tmp_path).status == "failed"


def test_mixed_numbers_find_what_positive_ones_hide(tmp_path: Path) -> None:
    plain = pass_zoo.graph("(float[4] x) => (float[4] y) { y = Identity(x) }")
    relu = pass_zoo.graph("(float[4] x) => (float[4] y) { y = Relu(x) }")
    assert _compared(plain, relu, tmp_path).status == "failed"


def test_whole_numbers_must_be_equal(tmp_path: Path) -> None:
    one, other = (
        pass_zoo.graph("(int64[4] x) => (int64[4] y) { y = Add(x, k) }", k=np.array(k, np.int64)) for k in (1, 2)
    )
    found = _compared(one, other, tmp_path)
    assert (found.status, found.max_abs) == ("failed", None)


def test_nan_where_there_was_nan_is_no_difference(tmp_path: Path) -> None:
    root = pass_zoo.graph("(float[4] x) => (float[4] y) { y = Sqrt(x) }")
    assert _compared(root, root, tmp_path).status == "passed"


def test_sequences_are_compared_item_by_item(tmp_path: Path) -> None:
    def split(factor: float) -> onnx.ModelProto:
        return pass_zoo.graph(
            "(float[4] x) => (seq(float[2]) y) { m = Mul(x, k)  y = SplitToSequence(m, n) }",
            k=pass_zoo.scalar(factor), n=np.array(2, np.int64),
        )  # fmt: skip

    assert _compared(split(1), split(1), tmp_path).status == "passed"
    assert _compared(split(1), split(2), tmp_path).status == "failed"


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (pass_zoo.graph("(float[4] x) => (float[4] y) { y = RandomNormalLike(x) }"), "change from run to run"),
        (
            pass_zoo.graph("(float[4] x) => (float[3] y) { y = Reshape(x, s) }", s=pass_zoo.i64(3)),
            "the model",
        ),
    ],
    ids=["random", "fails"],
)
def test_what_cannot_be_compared_says_why(model: onnx.ModelProto, reason: str, tmp_path: Path) -> None:
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = _compared(model, model, tmp_path)
    assert found.status == "not run"
    assert reason in str(found.reason)
    assert str(tmp_path) not in str(found.reason)


def test_parts_of_a_decoder_are_compared_at_the_sizes_they_were_made_for(tmp_path: Path) -> None:
    model = pass_zoo.graph(
        "(float[b,past,4] cache, float[b,total,4] mask, int64[b] at) => (float[b,total,4] y)"
        " { p = Gather(table, at)  q = Unsqueeze(p, one)  c = Concat<axis = 1>(cache, q)  y = Add(c, mask) }",
        table=np.ones((40, 4), np.float32),
        one=np.array([1]),
    )
    unsaid = verify.reference(_saved(model, tmp_path, "unsaid"), seed=0, dims={})
    assert [sample.seeded.dims["past"] for sample in unsaid.samples] == [1, 1]  # all that runs, by broadcasting
    noted = {"sizes": {"b": 1, "past": 5, "total": 6}, "ranges": {"at": [30, 39]}}
    model.metadata_props.add(key="winml.inputs", value=json.dumps(noted))
    found = verify.reference(_saved(model, tmp_path), seed=0, dims={})
    assert [sample.seeded.dims for sample in found.samples[::2]] == [
        {"b": 2, "past": 5, "total": 6},
        {"b": 3, "past": 5, "total": 6},
    ]
    assert all(sample.inputs["at"].min() >= 30 for sample in found.samples)
