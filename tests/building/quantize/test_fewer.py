"""Which operators are in 8 bits, by how well the outputs agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from quantize_zoo import SECTIONS
from winml.modelkit.building.quantize import fewer
from winml.modelkit.building.quantize.result import QuantizeReport
from winml.modelkit.core.config import DataSection

Quantize = Callable[..., tuple[onnx.ModelProto, QuantizeReport]]

WIDE = """<ir_version: 8, opset_import: ["" : 17]> net (float[1,16] x) => (float[1,8] y)
    { big = Mul(x, scale)  sum = Add(big, x)  back = Sub(sum, big)  y = MatMul(back, w) }"""
"""What it computes is lost where the sum has 8 bits."""


def _wide() -> onnx.ModelProto:
    model = onnx.parser.parse_model(WIDE)
    weights = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    scale = np.where(np.arange(16) % 2, 1e3, -1e3).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scale, "scale"))
    return model


def _section(folder: Path, **changes: Any) -> Any:
    samples = np.random.default_rng(1).standard_normal((8, 1, 16)).astype(np.float32)
    np.savez(folder / "data.npz", x=samples.reshape(8, 16))
    return replace(SECTIONS["u8s8"], calibration=DataSection(str(folder / "data.npz")), **changes)


def test_products_alone_are_quantized_where_all_operators_agree_poorly(quantize: Quantize, tmp_path: Path) -> None:
    _, report = quantize(_wide(), _section(tmp_path))
    assert report.outcome.nodes.quantized == {"MatMul": 1}
    assert fewer.LEFT in {entry.reason for entry in report.outcome.nodes.left}
    assert report.outcome.fidelity.outputs[0].cosine > fewer.POOR_COSINE
    assert any(note.startswith("only products and what follows them are quantized") for note in report.outcome.notes)


def test_operators_that_were_named_are_quantized_whatever_they_cost(quantize: Quantize, tmp_path: Path) -> None:
    _, report = quantize(_wide(), _section(tmp_path, op_types=("Add", "MatMul", "Mul")))
    assert report.outcome.nodes.quantized == {"Add": 1, "MatMul": 1, "Mul": 1}
    assert report.outcome.fidelity.outputs[0].cosine < fewer.POOR_COSINE


@pytest.mark.parametrize(("found", "better"), [(None, False), (0.89, False), (0.9, False), (0.905, True), (1.0, True)])
def test_fewer_are_chosen_where_they_agree_better_at_all(found: float | None, better: bool) -> None:
    assert fewer.is_better(found, 0.9) is better
    assert fewer.note(found, 0.9).startswith("only products") is better


@pytest.mark.parametrize(
    ("words", "changes", "open_"),
    [
        ("u8s8", {}, True),
        ("u8s8", {"exclude_op_types": ("Add",)}, False),
        ("u8s8", {"nodes": ("a",)}, False),
        ("w8a16 for qnn", {}, False),
        ("dynamic", {}, False),
    ],
)
def test_only_a_section_that_leaves_it_open_is_decided(words: str, changes: dict[str, Any], open_: bool) -> None:
    assert fewer.is_open(replace(SECTIONS[words], **changes)) is open_
