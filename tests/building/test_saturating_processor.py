"""Full-range 8-bit weights on a processor whose kernels saturate: every command that runs or builds a model knows it.

The processor is stood in for where it is asked, in the worker processes; all else is real.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, numpy_helper

from winml.modelkit.building.build import BuildRequest, build
from winml.modelkit.building.config import ConfigRequest
from winml.modelkit.building.pipeline.artifact import read_source
from winml.modelkit.core import values
from winml.modelkit.core.config import SCHEMA, DataSection
from winml.modelkit.core.target import Target
from winml.modelkit.ep import precision
from winml.modelkit.ep import probing as targets
from winml.modelkit.evaluation.evaluate import EvalRequest, evaluate
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.measuring.perf import PerfRequest, perf
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.sessions import AskedProtocol
from winml.modelkit.search.gate import Gate
from winml.modelkit.search.tools import SearchSubject, Workbench
from winml.modelkit.worker.client import Worker

RANDOM = DataSection("random", limit=2)
PROCESSOR = "from winml.modelkit.session import saturation\nsaturation.saturates = lambda: True\n"
WARNING = "the 8-bit kernels of this processor saturate, and 1 weights of the model use all 8 bits"
PRODUCT = """<ir_version: 10, opset_import: ["" : 21]> net (float[2,16] x) => (float[2,8] y) {
    q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  v = DequantizeLinear(w, t)  y = MatMul(d, v) }"""
FLOAT = '<ir_version: 10, opset_import: ["" : 21]> net (float[2,16] x) => (float[2,8] y) { y = MatMul(x, w) }'


@pytest.fixture(autouse=True)
def processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every worker is on a processor that saturates."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "saturating_processor.py").write_text(PROCESSOR)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.setenv("WINML_CACHE", str(tmp_path / "cache"))
    start = Worker.__init__

    def there(self: Worker, *, preload: tuple[str, ...] = (), **more: Any) -> None:
        start(self, preload=(*preload, "saturating_processor"), **more)

    monkeypatch.setattr(Worker, "__init__", there)


def _save(folder: Path, text: str, **arrays: np.ndarray) -> Path:
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


def _quantized(folder: Path, largest: int) -> Path:
    """A product with one int8 weight of this size; the others are so small that no processor really saturates."""
    weights = np.random.default_rng(0).integers(-40, 41, (16, 8)).astype(np.int8)
    weights[0, 0] = largest
    steps = {"s": np.float32(0.02), "z": np.uint8(128), "t": np.float32(0.01)}
    return _save(folder, PRODUCT, w=weights, **{name: np.asarray(value) for name, value in steps.items()})


@pytest.mark.parametrize(("largest", "warned"), [(127, True), pytest.param(64, False, marks=pytest.mark.slow)])
def test_perf_warns(tmp_path: Path, largest: int, warned: bool) -> None:
    protocol = AskedProtocol(sessions=1, iterations=2, warmup=0)
    result = perf(PerfRequest(str(_quantized(tmp_path, largest)), target="cpu", protocol=protocol), lambda event: None)
    assert any(text.startswith(WARNING) for text in result.warnings) is warned


@pytest.mark.slow
def test_eval_warns(tmp_path: Path) -> None:
    model = str(_quantized(tmp_path, 127))
    request = EvalRequest(model, data=RANDOM, task="outputs", target="cpu", reference=model)
    warnings = evaluate(request, lambda event: None).warnings
    assert [text.startswith(WARNING) for text in warnings[:1]] == [True]


def test_a_proof_warns_and_keeps_the_count(tmp_path: Path) -> None:
    config = ConfigRequest(str(_quantized(tmp_path, 127)), target="cpu", precision="fp32", optimize=False)
    request = BuildRequest(config, output=str(tmp_path / "out"), analyze=False)
    result = build(request, lambda event: None)
    assert result.proof.weights_at_risk == 1
    assert [text.startswith(WARNING) for text in result.warnings] == [True]


def _largest(model: Path) -> int:
    tensors = [t for t in onnx.load(model).graph.initializer if t.data_type == TensorProto.INT8 and len(t.dims) > 1]
    return max(int(np.abs(numpy_helper.to_array(t).astype(np.int16)).max()) for t in tensors)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    weights = np.random.default_rng(0).standard_normal((16, 8)).astype(np.float32)
    base: dict[str, Any] = {"schema": SCHEMA, "target": "cpu", "optimize": None, "quantize": None, "session": {}}
    subject = SearchSubject(
        source=read_source(_save(tmp_path, FLOAT, w=weights), ()),
        targets={"cpu": targets.resolve("cpu", None, None)},
        baseline=base,
        calibration=RANDOM,
        inputs=InputSettings(),
        objective="size",
        protocol=PROTOCOLS["cpu"],
    )
    return Workbench(subject, cast("Gate", None), tmp_path, keep=lambda name, value: None, on_event=lambda event: None)


def test_a_search_decides_the_range_as_a_build_does(bench: Workbench) -> None:
    section = values.to_json(precision.quantize_section(Target("cpu", "cpu"), "int8"))

    def built(quantize: Mapping[str, Any]) -> Path:
        base: dict[str, Any] = {"schema": SCHEMA, "target": "cpu", "optimize": None, "session": {}}
        return Path(bench.build({**base, "precision": "int8", "quantize": quantize}).path)

    assert section["reduce_range"] is None
    try:
        assert _largest(built({**section, "reduce_range": False})) == 127
        bench._reader.close()  # as after a model that took it down
        assert _largest(built(section)) == 64
    finally:
        bench.close()
