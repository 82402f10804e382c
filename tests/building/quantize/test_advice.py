"""Whether a section suits a target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quantize_zoo import SECTIONS
from winml.modelkit.building.quantize.advice import check
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog
from winml.modelkit.ep.precision import PRECISIONS, quantize_section

CPU, QNN = Target("cpu", "cpu"), Target("qnn", "npu")


def test_the_pair_that_is_slow_on_the_cpu_is_named_with_the_reason() -> None:
    assert "int8 activations with int8 weights are slow" in check(SECTIONS["s8s8"], CPU)[0]
    assert "uint8 activations with uint8 weights are slow" in check(SECTIONS["u8u8"], CPU)[0]
    assert check(SECTIONS["u8s8"], CPU) == []
    assert check(SECTIONS["s8s8"], QNN) == []


def test_what_saves_no_time_on_the_cpu_is_told() -> None:
    assert "float16 saves space, not time" in check(SECTIONS["fp16"], CPU)[0]
    assert "slower than float32" in check(SECTIONS["w8a16 for qnn"], CPU)[0]


def test_4_bit_weights_per_tensor_are_refused_for_qnn() -> None:
    with pytest.raises(RequestError, match="4-bit weights per tensor"):
        check(replace(SECTIONS["w4a16 for qnn"], per_channel=False), QNN)


@pytest.mark.parametrize("word", PRECISIONS)
@pytest.mark.parametrize("name", catalog.BY_NAME)
def test_every_precision_of_the_table_can_be_used_on_its_target(name: str, word: str) -> None:
    info = catalog.BY_NAME[name]
    target = Target(name, info.devices[0])
    section = quantize_section(target, word)
    if section is not None:
        check(section, target)
