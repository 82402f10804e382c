"""Graphs as ONNX text, and weights to put into them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

from winml.modelkit.building.optimize.workspace import Workspace

HEADER = '<ir_version: 10, opset_import: ["" : 17, "com.microsoft" : 1, "local" : 1]>'

Parse = Callable[..., ModelProto]


@pytest.fixture(scope="session")
def parse() -> Parse:
    """A model from ONNX text, with one initializer per keyword."""

    def parse_model(text: str, **initializers: np.ndarray) -> ModelProto:
        model = parser.parse_model(text if text.lstrip().startswith("<") else f"{HEADER}\n{text}")
        for name, value in initializers.items():
            model.graph.initializer.append(numpy_helper.from_array(value, name))
        return model

    return parse_model


@pytest.fixture
def perceptron(parse: Parse) -> ModelProto:
    """Two layers with 5 kB of weights each."""
    values = np.arange(36 * 36, dtype=np.float32).reshape(36, 36)
    return parse(
        "g (float[N,36] x) => (float[N,36] y) { h = MatMul(x, w1)  r = Relu(h)  y = MatMul(r, w2) }",
        w1=values,
        w2=values + 1,
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Where versions of a model are written and compared."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return Workspace(folder)
