"""Scales of weights per channel or per tensor, by how well the outputs agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from quantize_zoo import GRAPHS, SECTIONS
from winml.modelkit.building.quantize import fewer, fidelity, scales
from winml.modelkit.building.quantize.result import Granularity, QuantizeReport
from winml.modelkit.core.config import DataSection, QuantizeSection

Quantize = Callable[..., tuple[onnx.ModelProto, QuantizeReport]]
OPEN = replace(SECTIONS["u8s8"], per_channel=None)
EXACT = replace(OPEN, reduce_range=True)
"""Products in the reduced range are exact on every processor: without VNNI, larger ones saturate."""
PAIRS, CHANNELS = 16, 8


def _whole_numbers() -> onnx.ModelProto:
    """A product of whole numbers that nearly cancel: exact with the step of the whole tensor, not with a channel's.

    The largest number is that of the reduced range of weights.
    """
    rng = np.random.default_rng(0)
    weights = np.zeros((2 * PAIRS, CHANNELS), np.float32)
    weights[0::2, 1:] = rng.integers(10, 50, (PAIRS, CHANNELS - 1))
    weights[1::2, 1:] = -weights[0::2, 1:] + rng.choice([-1, 1], (PAIRS, CHANNELS - 1))
    weights[0, 1:], weights[1, 1:] = 50, -49
    weights[0, 0], weights[1, 0] = 64, -64
    text = '<ir_version: 8, opset_import: ["" : 17]> net (float[1,%d] x) => (float[1,%d] y) { y = MatMul(x, w) }'
    model = onnx.parser.parse_model(text % weights.shape)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


@pytest.fixture
def data(tmp_path: Path) -> DataSection:
    samples = np.random.default_rng(1).integers(0, 256, (24, PAIRS)).astype(np.float32)
    samples[0, :2] = 0, 255
    np.savez(tmp_path / "data.npz", x=np.repeat(samples, 2, axis=1))
    return DataSection(str(tmp_path / "data.npz"))


def _scale_sizes(model: onnx.ModelProto) -> set[int]:
    """How many scales the weights have."""
    sizes = {t.name: int(np.prod(t.dims)) for t in model.graph.initializer}
    weights = {t.name for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT8 and len(t.dims) > 1}
    return {sizes[node.input[1]] for node in model.graph.node if node.input[0] in weights}


def test_scales_are_per_tensor_where_that_agrees_better(quantize: Quantize, data: DataSection) -> None:
    model, report = quantize(_whole_numbers(), replace(EXACT, calibration=data))
    assert _scale_sizes(model) == {1}
    assert report.per_channel is False
    assert report.outcome.granularity.scales == "tensor"
    assert "per channel" in report.outcome.granularity.reason
    assert report.outcome.fidelity.outputs[0].cosine > fewer.POOR_COSINE
    assert report.outcome.fidelity.samples == fidelity.SAMPLES_TO_CHOOSE
    assert any(note.startswith("weights have scales per tensor: a cosine of") for note in report.outcome.notes)


@pytest.mark.parametrize(("asked", "sizes"), [(True, {CHANNELS}), (False, {1})])
def test_what_the_section_says_stays(quantize: Quantize, data: DataSection, asked: bool, sizes: set[int]) -> None:
    model, report = quantize(_whole_numbers(), replace(OPEN, calibration=data, per_channel=asked))
    assert _scale_sizes(model) == sizes
    assert report.outcome.granularity == Granularity("channel" if asked else "tensor", scales.ASKED)


@pytest.mark.parametrize(("compare", "reason"), [(True, "have a cosine of"), (False, "outputs were not compared")])
def test_scales_are_per_channel_where_the_outputs_agree_or_nobody_looks(
    quantize: Quantize, compare: bool, reason: str
) -> None:
    model, report = quantize(GRAPHS["shared_bias"](), OPEN, compare=compare)
    assert _scale_sizes(model) != {1}
    assert report.outcome.granularity.scales == "channel"
    assert reason in report.outcome.granularity.reason


@pytest.mark.parametrize(("tensor", "per_channel"), [(None, True), (0.9, True), (0.905, True), (0.92, False)])
def test_per_tensor_has_to_be_better_by_a_margin(tensor: float | None, per_channel: bool) -> None:
    assert scales.choose(0.9, tensor).per_channel is per_channel


@pytest.mark.parametrize(
    ("section", "settled"),
    [
        (OPEN, True),
        (replace(SECTIONS["w8a16 for qnn"], per_channel=None), False),
        (replace(SECTIONS["dynamic"], per_channel=None), False),
    ],
)
def test_both_ways_are_weighed_for_8_bit_pairs_on_the_cpu_alone(section: QuantizeSection, settled: bool) -> None:
    assert scales.is_measured(section) is settled
    assert scales.settle(section).per_channel is settled


def test_weights_without_scales_have_no_granularity(quantize: Quantize) -> None:
    assert quantize(GRAPHS["shared_bias"](), SECTIONS["fp16"])[1].outcome.granularity is None
