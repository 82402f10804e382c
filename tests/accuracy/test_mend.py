"""`winml quantize` with a limit: as few layers in float as hold it on the target."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest

import data_zoo
from winml.modelkit.accuracy import mend as mending
from winml.modelkit.accuracy.mend import Goal, quantize_within
from winml.modelkit.accuracy.mend_result import FailedMend, MendResult
from winml.modelkit.building.quantize.command import QuantizeRequest
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.render.mend import mend_text

FAULTS = Path(__file__).parents[2] / "benchmarks" / "accuracy"


@pytest.fixture(scope="module")
def faults() -> Iterator[ModuleType]:
    """The module with the networks, which is in no package."""
    sys.path.insert(0, str(FAULTS))
    yield __import__("faults")
    sys.path.remove(str(FAULTS))
    sys.modules.pop("faults")


@pytest.fixture
def model(faults: ModuleType, tmp_path: Path) -> Path:
    """A perceptron in which one layer has an outlier that spoils the scale of its weights."""
    made = faults.perceptron(np.random.default_rng(0))
    tensor = made.graph.initializer[6]
    array = onnx.numpy_helper.to_array(tensor).copy()
    array[0, :] *= 400
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    onnx.save(made, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def mend(model: Path, limit: float, **changes: object) -> MendResult:
    request = QuantizeRequest(
        str(model),
        str(model.with_name("out.onnx")),
        target="cpu",
        precision="int8",
        data=DataSection("random", limit=8),
    )
    goal = Goal(data=DataSection("random", limit=4, seed=3), min_agreement=limit)
    return quantize_within(QuantizeRequest(**{**vars(request), **changes}), goal, lambda _: None)


@pytest.fixture
def layers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What leaves every layer quantized is not tried: it has tests of its own, and costs attempts here."""
    monkeypatch.setattr(mending, "mending_levels", lambda section, ops: ())


@pytest.mark.usefixtures("layers_alone")
def test_as_few_layers_as_needed_stay_in_float(model: Path) -> None:
    result = mend(model, 0.9995)
    assert result.attempts[0].answer == "exceeded"
    held = [attempt for attempt in result.attempts if attempt.answer == "within"]
    chosen = min(held, key=lambda attempt: attempt.kept)
    assert result.kept == chosen.nodes
    assert result.layers is not None
    assert 0 < chosen.kept < result.layers
    # Without any one of its layers the limit does not hold: pruned sets with one layer less were tried.
    failed = [set(attempt.nodes) for attempt in result.attempts if attempt.answer != "within"]
    assert any(nodes < set(chosen.nodes) for nodes in failed)
    assert result.summary[0].endswith("speed to be measured with `winml compare`")
    assert "in float: cosine" in result.summary[0]
    written = onnx.load(model.with_name("out.onnx"))
    floats = {node.name for node in written.graph.node if node.op_type == "MatMul"} & set(result.kept)
    makers = {name: node.op_type for node in written.graph.node for name in node.output}
    assert floats
    for node in written.graph.node:
        if node.name in floats:
            assert makers.get(node.input[1]) is None
    assert "stay in float" in mend_text(result)


def test_a_model_that_holds_the_limit_stays_quantized(model: Path) -> None:
    result = mend(model, 0.1)
    assert [attempt.kept for attempt in result.attempts] == [0]
    assert result.kept == ()
    assert result.notes[0] == "all that the precision quantizes is quantized"
    assert result.layers is None


def test_a_limit_that_nothing_holds_is_said_and_nothing_is_written(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With products quantized whatever happens, outputs are never equal."""
    monkeypatch.setattr(mending, "_may_stay", lambda layer: "MatMul" not in layer.operators)
    with pytest.raises(CheckFailed, match="not even with all") as raised:
        mend(model, 1.0)
    assert isinstance(raised.value.result, FailedMend)
    tried = [attempt for attempt in raised.value.result.attempts if not attempt.kept]
    assert [attempt.mending for attempt in tried[:2]] == [(), ("bias correction",)]
    assert len(tried) == 5  # the best ranges, smoothing and products alone as well, on top of what helped
    assert len(raised.value.result.attempts) > len(tried)
    assert not model.with_name("out.onnx").exists()


def test_an_output_that_exists_is_an_error_before_the_work(model: Path) -> None:
    model.with_name("out.onnx").write_bytes(b"")
    with pytest.raises(RequestError, match="exists"):
        mend(model, 0.9)


@pytest.mark.usefixtures("layers_alone")
def test_nodes_without_names_can_stay_in_float(faults: ModuleType, tmp_path: Path) -> None:
    """Debug and quantizer know them by the same names, which a Constant node before them does not shift."""
    made = faults.perceptron(np.random.default_rng(0))
    tensor = made.graph.initializer[6]
    array = onnx.numpy_helper.to_array(tensor).copy()
    array[0, :] *= 400
    constant = onnx.helper.make_node("Constant", [], [tensor.name], value=onnx.numpy_helper.from_array(array, "v"))
    del made.graph.initializer[6]
    made.graph.node.insert(0, constant)
    for node in made.graph.node:
        node.name = ""
    onnx.save(made, tmp_path / "model.onnx")
    result = mend(tmp_path / "model.onnx", 0.9995)
    assert result.kept
    floats = {node.name: node for node in onnx.load(tmp_path / "out.onnx").graph.node if node.name in result.kept}
    constants = {one.name for one in onnx.load(tmp_path / "out.onnx").graph.initializer}
    weights = {name: node.input[1] for name, node in floats.items() if node.op_type == "MatMul"}
    assert weights
    # A product that stays in float reads its weight as it is.
    assert set(weights.values()) <= constants
    assert result.model == str(tmp_path / "model.onnx")


@pytest.mark.qnn
@pytest.mark.slow
def test_on_the_npu_layers_get_16_bits_before_they_stay_in_float(faults: ModuleType, tmp_path: Path) -> None:
    """A transformer in 8 bits; the limit lies between what it has and what 16 bits have."""
    onnx.save(faults.transformer(np.random.default_rng(0)), tmp_path / "model.onnx")
    request = QuantizeRequest(
        str(tmp_path / "model.onnx"), str(tmp_path / "out.onnx"), target="qnn/npu", precision="int8",
        data=DataSection("random", limit=4),
    )  # fmt: skip
    goal = Goal(data=DataSection("random", limit=2, seed=3), min_agreement=0.9995)
    result = quantize_within(request, goal, lambda _: None)
    assert result.attempts[0].answer == "exceeded"
    assert result.raised
    assert result.kept == ()
    assert "16-bit activations" in result.summary[0]
    assert "speed not known (simulated)" in result.summary[0]
    kinds = {tensor.data_type for tensor in onnx.load(tmp_path / "out.onnx").graph.initializer}
    assert {onnx.TensorProto.UINT16, onnx.TensorProto.UINT8} <= kinds
    assert "16-bit activations:" in mend_text(result)


@pytest.mark.usefixtures("layers_alone")
def test_texts_are_read_as_the_model_beside_them_reads_them(tmp_path: Path) -> None:
    """Nodes have no names, so that attempts and the model with names are in a folder without the tokenizer."""
    graph = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 20]>
        g (int64[batch, sequence] input_ids) => (float[batch, 4] sentence_embedding) {
            words = Gather(table, input_ids)
            mean = ReduceMean<keepdims = 0>(words, axes)
            sentence_embedding = MatMul(mean, weights)
        }
    """)
    rng = np.random.default_rng(0)
    for name, shape in (("table", (len(data_zoo.IDS), 8)), ("weights", (8, 4))):
        graph.graph.initializer.append(onnx.numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name))
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "axes"))
    onnx.save(graph, data_zoo.tokenizer(tmp_path) / "model.onnx")
    rows = [("good film", "dull", 1.0), ("bad film", "dull", 2.0), ("good film", "film", 3.0)]
    texts = data_zoo.jsonl(
        tmp_path / "texts.jsonl", [{"text": one, "text_pair": two, "score": score} for one, two, score in rows]
    )
    data = DataSection(str(texts), length=6)
    request = QuantizeRequest(
        str(tmp_path / "model.onnx"), str(tmp_path / "out.onnx"), target="cpu", precision="int8", data=data
    )
    result = quantize_within(request, Goal(data=data, task="sentence-similarity", min_agreement=0.9), lambda _: None)
    assert result.evaluation.samples.n == 3
    assert result.quantized.section.calibration.length == 6
