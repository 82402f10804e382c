"""Inputs and metadata, read without onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import model_zoo
from winml.modelkit.core.errors import ModelFileError
from winml.modelkit.graph.signature import read_signature


def test_inputs_have_names_sizes_and_places_and_weights_are_none(parse: Any, tmp_path: Path) -> None:
    model = parse(
        "g (float[batch,3,?,W] x, int64[4] ids, float[2] w) => (float[batch,3,?,W] y) { y = Relu(x) }",
        w=np.ones(2, np.float32),
    )
    model.graph.input[0].type.tensor_type.shape.dim[3].dim_value = -1
    model.metadata_props.add(key="winml.inputs", value="{}")
    found = read_signature(model_zoo.saved(model, tmp_path / "m.onnx"))
    assert [(value.name, value.shape, value.whole) for value in found.inputs] == [
        ("x", ("batch", 3, "x[2]", "x[3]"), False),
        ("ids", (4,), True),
    ]
    assert found.unnamed
    assert found.is_open
    assert found.metadata == {"winml.inputs": "{}"}


@pytest.mark.parametrize("content", [b"\xff\xff\xff", b"\x3a\x7fno graph"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not an ONNX model"):
        read_signature(path)
