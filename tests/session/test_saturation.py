"""Whether 8-bit kernels saturate: asked of the runtime, on this processor and on an emulated one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from winml.modelkit.session import saturation
from winml.modelkit.session.notes import saturation_notes

ASK = """
import json, sys
from pathlib import Path
from winml.modelkit.core.target import Target
from winml.modelkit.session import saturation
print(json.dumps([saturation.saturates(), saturation.weights_at_risk(Path(sys.argv[1]), Target("cpu", "cpu"))]))
"""


def _product(weights: np.ndarray) -> onnx.ModelProto:
    rows, columns = weights.shape
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [2, rows])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [2, columns])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_the_model_that_is_asked_is_a_product_of_the_largest_numbers() -> None:
    weights = np.full((saturation.TERMS, 16), saturation.WEIGHT, np.int8)
    assert onnx.load_from_string(saturation.MODEL) == _product(weights)


def test_the_answer_is_that_of_the_kernels_of_this_processor() -> None:
    """Held against the sum itself, computed by the runtime for numbers that fit 16 bits and for numbers that do not."""
    import onnxruntime

    rng = np.random.default_rng(0)
    weights, x = rng.integers(100, 128, (64, 32)).astype(np.int8), rng.integers(200, 256, (2, 64)).astype(np.uint8)
    model = _product(weights).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    exact = x.astype(np.int32) @ weights.astype(np.int32)
    assert saturation.saturates() == bool((session.run(None, {"x": x})[0] != exact).any())


@pytest.mark.parametrize(("largest", "count"), [(64, 0), (65, 1), (-65, 1)])
def test_weights_beyond_7_bits_are_counted(largest: int, count: int) -> None:
    weights = np.zeros((4, 16), np.int8)
    weights[1, 1] = largest
    assert saturation.full_range_weights(_product(weights)) == count


def test_a_model_without_8_bit_weights_is_not_loaded(tmp_path: Path) -> None:
    """`import onnx` takes longer than a measurement of a small model."""
    floats = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [floats], []))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    code = f"{ASK}\nassert 'onnx' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[1] == 0


def test_perf_warns_of_them() -> None:
    assert saturation_notes(0) == []
    (warning,) = saturation_notes(3)
    assert "3 weights" in warning
    assert "--reduce-range" in warning


@pytest.mark.slow
@pytest.mark.haswell
@pytest.mark.parametrize(("largest", "risk"), [(64, 0), (127, 1)])
def test_a_processor_without_vnni_saturates(tmp_path: Path, largest: int, risk: int) -> None:
    model = tmp_path / "model.onnx"
    onnx.save(_product(np.full((4, 16), largest, np.int8)), model)
    argv = ["qemu-x86_64", "-cpu", "Haswell", sys.executable, "-c", ASK, str(model)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [True, risk]
