"""Smoothing: the same numbers in float, and more of them left in 8 bits where channels reach unequally far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import quantize_zoo
from quantize_zoo import node
from winml.modelkit.building.quantize.passes import Passes
from winml.modelkit.building.quantize.result import QuantizeReport
from winml.modelkit.building.quantize.runnable import Runnable
from winml.modelkit.building.quantize.select import NodeSelection
from winml.modelkit.building.quantize.smoothing import ADDED, ALONE, EVEN, NO_WEIGHT, smooth
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.data.samples import Sample

Quantize = Callable[..., tuple[onnx.ModelProto, QuantizeReport]]

WIDTH = 32
RNG = np.random.default_rng(0)
GAMMA = np.where(np.arange(WIDTH) % 8 == 0, 50.0, 1.0).astype(np.float32)
"""A few channels that reach fifty times as far as the others, as they do in transformers."""
WEIGHTS = {
    "gamma": GAMMA,
    "beta": RNG.standard_normal(WIDTH).astype(np.float32),
    # What reaches far is multiplied by little: the result depends on all channels alike.
    "w0": (RNG.standard_normal((WIDTH, WIDTH)) / GAMMA[:, None]).astype(np.float32),
    "w1": (RNG.standard_normal((WIDTH, WIDTH)) / GAMMA[:, None]).astype(np.float32),
}
SAMPLES = [RNG.standard_normal((4, WIDTH)).astype(np.float32) for _ in range(16)]

NORM = node("LayerNormalization", ["x", "gamma", "beta"], "h")
SPELLED = [node("Mul", ["x", "gamma"], "m"), node("Add", ["m", "beta"], "h")]
PRODUCTS = [
    node("MatMul", ["h", "w0"], "p"),
    node("Gemm", ["h", "w1"], "q", transB=0),
    node("Add", ["p", "q"], "y"),
]
GRAPHS: dict[str, tuple[list[onnx.NodeProto], int]] = {
    "a normalization that only products read": ([NORM, *PRODUCTS], 0),
    "one whose result is added later": (
        [NORM, *PRODUCTS[:2], node("Add", ["p", "q"], "s"), node("Add", ["s", "h"], "y")],
        1,
    ),
    "Mul and Add": ([*SPELLED, *PRODUCTS], 0),
    "Mul and Add that something else reads": (
        [*SPELLED, *PRODUCTS[:2], node("Add", ["p", "q"], "s"), node("Add", ["s", "h"], "y")],
        2,
    ),
    "a value that no constant goes into": (
        [node("Mul", ["x", "gamma"], "m"), node("Softsign", ["m"], "t"), node("Mul", ["t", "m"], "h"), *PRODUCTS],
        1,
    ),
}


def model(nodes: list[onnx.NodeProto], **weights: np.ndarray) -> onnx.ModelProto:
    named = [numpy_helper.from_array(values, name) for name, values in (WEIGHTS | weights).items()]
    made = quantize_zoo.model([onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes], named, [4, WIDTH])
    for number, one in enumerate(made.graph.node):
        one.name = f"{one.op_type}_{number}"
    return made


class Made:
    source = "made"

    def __len__(self) -> int:
        return len(SAMPLES)

    def __iter__(self) -> Any:
        return (Sample({"x": value}) for value in SAMPLES)


def smoothed(made: onnx.ModelProto, folder: Path, alpha: float = 0.5) -> Any:
    passes = Passes(Runnable(made, folder), ["y"], Made(), lambda done, total: None)
    return smooth(made, NodeSelection(frozenset(n.name for n in made.graph.node), {}), passes, alpha)


def run(made: onnx.ModelProto) -> np.ndarray:
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.stack([session.run(["y"], {"x": sample})[0] for sample in SAMPLES])


@pytest.mark.parametrize("name", GRAPHS)
def test_a_smoothed_model_computes_the_same_numbers(tmp_path: Path, name: str) -> None:
    nodes, added = GRAPHS[name]
    made = model(nodes)
    expected = run(made)
    found = smoothed(made, tmp_path)
    onnx.checker.check_model(made, full_check=True)
    assert found.adjustment.layers == 2
    assert found.adjustment.added_nodes == added
    np.testing.assert_allclose(run(made), expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("name", GRAPHS)
def test_more_is_left_of_the_outputs(quantize: Quantize, tmp_path: Path, name: str) -> None:
    data = tmp_path / "calibration.npz"
    np.savez(data, x=np.stack(SAMPLES))
    section = replace(
        quantize_zoo.SECTIONS["u8s8"],
        calibration=DataSection(str(data)),
        op_types=("MatMul", "Gemm"),
        reduce_range=True,
    )
    decibels = []
    for smoothing in (None, 0.5):
        _, report = quantize(model(GRAPHS[name][0]), replace(section, smoothing=smoothing))
        decibels.append(report.outcome.fidelity.outputs[0].exact_sqnr_db)
    assert decibels[1] > decibels[0] + 6.0
    assert any("smoothing moved ranges" in note for note in report.outcome.notes)


@pytest.mark.parametrize("alpha", [0.0, 1.0], ids=["rows of weights", "channels of activations"])
def test_at_either_end_one_side_reaches_equally_far(tmp_path: Path, alpha: float) -> None:
    made = model(GRAPHS["a normalization that only products read"][0])
    smoothed(made, tmp_path, alpha)
    weights = {t.name: np.abs(numpy_helper.to_array(t)) for t in made.graph.initializer}
    rows = np.max([weights[one.input[1]].max(axis=1) for one in made.graph.node[1:3]], axis=0)
    made.graph.output[0].name = "h"
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    channels = np.max([np.abs(session.run(["h"], {"x": sample})[0]).max(axis=0) for sample in SAMPLES], axis=0)
    even, uneven = (rows, channels) if alpha == 0.0 else (channels, rows)
    assert np.ptp(np.log(even)) < 1e-3
    assert np.ptp(np.log(uneven)) > 0.5


def test_what_cannot_be_smoothed_is_counted_with_its_reason(tmp_path: Path) -> None:
    even = np.ones(WIDTH, np.float32)
    nodes = [
        node("LayerNormalization", ["x", "gamma", "beta"], "h"),
        node("Tanh", ["h"], "t"),
        node("MatMul", ["t", "w0"], "p"),
        node("Transpose", ["p"], "r"),
        node("MatMul", ["p", "r"], "s"),
        node("MatMul", ["s", "w2"], "y"),
    ]
    made = model(nodes, gamma=even, w2=np.ones((4, WIDTH), np.float32))
    found = smoothed(made, tmp_path)
    assert found.adjustment.layers == 0
    assert found.adjustment.left[NO_WEIGHT] == 1
    assert set(found.adjustment.left) <= {NO_WEIGHT, ALONE, EVEN}
    assert sum(found.adjustment.left.values()) == 3


def test_an_added_node_stays_in_float(quantize: Quantize, tmp_path: Path) -> None:
    data = tmp_path / "calibration.npz"
    np.savez(data, x=np.stack(SAMPLES))
    section = replace(quantize_zoo.SECTIONS["u8s8"], calibration=DataSection(str(data)), smoothing=0.5)
    _, report = quantize(model(GRAPHS["a value that no constant goes into"][0]), section)
    assert [(left.op, left.nodes) for left in report.outcome.nodes.left if left.reason == ADDED] == [("Mul", 1)]


def test_a_model_that_cannot_be_observed_is_refused(tmp_path: Path) -> None:
    made = model(GRAPHS["Mul and Add"][0])
    made.opset_import[0].version = 10
    with pytest.raises(RequestError, match="smoothing needs opset 11"):
        smoothed(made, tmp_path)
