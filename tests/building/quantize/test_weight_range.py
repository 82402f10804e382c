"""The range of 8-bit weights: by what the processor does, unless the section says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from quantize_zoo import GRAPHS, SECTIONS
from winml.modelkit.building import weight_range as deciding
from winml.modelkit.building.quantize import weight_range
from winml.modelkit.building.quantize.result import QuantizeReport
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.target import Target
from winml.modelkit.session import saturation

Quantize = Callable[..., tuple[onnx.ModelProto, QuantizeReport]]
DYNAMIC = QuantizeSection("dynamic", weight_type="int8", per_channel=True)


@pytest.mark.parametrize("section", [SECTIONS["u8s8"], SECTIONS["s8s8"], DYNAMIC], ids=["u8s8", "s8s8", "dynamic"])
@pytest.mark.parametrize("answer", [True, False])
def test_signed_weights_are_reduced_where_the_processor_saturates(section: QuantizeSection, answer: bool) -> None:
    found, notes = weight_range.resolve(section, lambda: answer)
    assert found == replace(section, reduce_range=answer)
    assert notes == ((weight_range.REDUCED,) if answer else ())


@pytest.mark.parametrize("words", ["u8u8", "w8a16 for qnn", "w4a16 for qnn", "fp16", "int4"])
def test_what_cannot_saturate_is_not_asked_about(words: str) -> None:
    def ask() -> bool:
        raise AssertionError("asked")

    assert weight_range.resolve(SECTIONS[words], ask) == (replace(SECTIONS[words], reduce_range=False), ())


@pytest.mark.parametrize("said", [True, False])
def test_what_the_section_says_stays(said: bool) -> None:
    section = replace(SECTIONS["u8s8"], reduce_range=said)
    assert weight_range.resolve(section, lambda: not said) == (section, ())


class _Processor:
    """A worker on a processor that saturates."""

    def ask(self, form: type[bool], operation: str, *, what: str) -> bool:
        assert operation == "session.saturation"
        return True


@pytest.mark.parametrize(("target", "reduced"), [(Target("cpu", "cpu"), True), (Target("openvino", "cpu"), False)])
def test_the_processor_decides_for_the_ep_whose_kernels_were_asked(target: Target, reduced: bool) -> None:
    section, notes = deciding.resolve(SECTIONS["u8s8"], target, _Processor())  # type: ignore[arg-type]
    assert section.reduce_range is reduced
    assert bool(notes) is reduced


@pytest.mark.parametrize("answer", [True, False])
def test_the_model_has_the_range_and_the_result_says_so(
    quantize: Quantize, monkeypatch: pytest.MonkeyPatch, answer: bool
) -> None:
    monkeypatch.setattr(saturation, "saturates", lambda: answer)
    model, report = quantize(GRAPHS["shared_bias"](), SECTIONS["u8s8"])
    weights = [numpy_helper.to_array(t) for t in model.graph.initializer if t.data_type == TensorProto.INT8]
    largest = max(int(np.abs(w.astype(np.int16)).max()) for w in weights if w.ndim > 1)
    assert largest == (64 if answer else 127)
    assert (weight_range.REDUCED in report.outcome.notes) is answer
    assert saturation.full_range_weights(model) == (0 if answer else sum(w.ndim > 1 for w in weights))
