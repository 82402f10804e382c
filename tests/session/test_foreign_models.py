"""Models that others made: those that the onnx package ships with inputs and outputs, sequences and text among them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx.backend.test
import pytest
from onnx import ModelProto, SequenceProto, TensorProto, TypeProto, numpy_helper

import model_zoo
from winml.modelkit.core.errors import ModelkitError, UnavailableError
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.values import to_json
from winml.modelkit.graph.describe import describe
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.graph.inputs import fitting
from winml.modelkit.session.arm import ArmArguments, MeasureArguments
from winml.modelkit.session.measure import measure
from winml.modelkit.session.output_arrays import as_array
from winml.modelkit.session.session import WinMLSession

DATA = Path(onnx.backend.test.__file__).parent / "data"
SIMPLE = sorted(path.parent for path in (DATA / "simple").glob("*/model.onnx") if "gradient" not in path.parent.name)
"""Without those that need operators of training, which the runtime does not have."""
OTHERS = sorted(path for kind in ("pytorch-converted", "pytorch-operator") for path in (DATA / kind).rglob("*.onnx"))


class Quiet:
    """A context that nobody listens to."""

    stop = threading.Event()

    @staticmethod
    def tell(event: object) -> None:
        pass


def _read(path: Path, kind: TypeProto) -> Any:
    if kind.WhichOneof("value") == "sequence_type":
        sequence = SequenceProto.FromString(path.read_bytes())
        return [numpy_helper.to_array(tensor) for tensor in sequence.tensor_values]
    return numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))


@pytest.mark.parametrize("folder", SIMPLE, ids=lambda folder: folder.name)
def test_a_foreign_model_is_described_and_gives_the_outputs_that_its_authors_recorded(folder: Path) -> None:
    path = folder / "model.onnx"
    assert describe({"path": str(path)}, None).facts.inputs
    graph = ModelProto.FromString(path.read_bytes()).graph
    constant = {tensor.name for tensor in graph.initializer}
    taken = [value for value in graph.input if value.name not in constant]
    given, expected = (
        [_read(folder / "test_data_set_0" / f"{word}_{place}.pb", value.type) for place, value in enumerate(values)]
        for word, values in (("input", taken), ("output", graph.output))
    )
    try:
        with WinMLSession(path) as session:
            named = dict(zip((value.name for value in taken), given, strict=True))
            found = session.run(fitting(named, session.inputs, source="the data"))
    except UnavailableError as error:
        assert "locale" in error.message  # text that is normalized needs en_US.UTF-8
        return
    for value, output in zip(found.values(), expected, strict=True):
        one, other = as_array(value), as_array(output)
        assert one.shape == other.shape
        assert (one == other).all() if one.dtype.kind in "OUS" else np.allclose(one, other, rtol=1e-3, atol=1e-5)


def test_every_other_model_of_the_package_is_described_and_measured_or_refused_in_a_sentence() -> None:
    measured = 0
    for path in OTHERS:
        describe({"path": str(path)}, None)
        arm = ArmArguments(model=str(path), ep="cpu", device="cpu", simulated=False, session=SessionSection(threads=1))
        asked = MeasureArguments(arm=arm, warmup=0, iterations=1, duration_s=None, tracing=None)
        try:
            measure(to_json(asked), Quiet())
            measured += 1
        except ModelkitError as error:
            assert "\n" not in error.message
    assert measured > 0.6 * len(OTHERS)  # a third has opset 6, for which the runtime has no kernels


def test_perf_runs_a_sequence_from_data_and_lists_its_elements(tmp_path: Path) -> None:
    model = model_zoo.text_model(
        "g (seq(float[n]) parts, string[1] word) => (float[n] y, string[1] same)"
        "{ y = ConcatFromSequence<axis = 0>(parts)  same = Identity(word) }"
    )
    path = model_zoo.saved(model, tmp_path / "model.onnx")
    np.savez(
        tmp_path / "inputs.npz", **{"parts[0]": np.ones(2, np.float32), "parts[1]": np.ones(3, np.float32)}, word=["a"]
    )
    arm = ArmArguments(
        model=str(path),
        ep="cpu",
        device="cpu",
        simulated=False,
        session=SessionSection(threads=1),
        inputs=InputSettings(npz=tmp_path / "inputs.npz"),
    )
    asked = MeasureArguments(arm=arm, warmup=0, iterations=2, duration_s=None, tracing=None)
    report = measure(to_json(asked), Quiet())
    assert {name: tensor.shape for name, tensor in report.inputs.tensors.items()} == {
        "parts[0]": (2,),
        "parts[1]": (3,),
        "word": (1,),
    }
    assert (len(report.wall_ns), report.io_binding) == (2, False)
