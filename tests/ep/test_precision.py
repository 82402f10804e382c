from __future__ import annotations

import pytest

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog, precision

EVERY_TARGET = [Target(info.name, device) for info in catalog.TABLE for device in info.devices]


@pytest.mark.parametrize(
    ("target", "word"),
    [
        (Target("qnn", "npu"), "w8a16"),
        (Target("qnn", "gpu"), "fp32"),
        (Target("cpu", "cpu"), "fp32"),
        (Target("openvino", "npu"), "fp32"),
        (Target("vitisai", "npu"), "fp32"),
        (Target("dml", "gpu"), "fp32"),
    ],
)
def test_auto_comes_from_the_table(target: Target, word: str) -> None:
    assert precision.resolve(target, "AUTO") == word


@pytest.mark.parametrize("target", EVERY_TARGET, ids=str)
def test_auto_gives_a_section_on_every_target(target: Target) -> None:
    section = precision.quantize_section(target, precision.AUTO)
    assert (section is None) == (precision.resolve(target, precision.AUTO) == precision.UNQUANTIZED)


def test_int8_on_the_cpu_is_uint8_activations_with_int8_weights_whose_scales_are_chosen_by_agreement() -> None:
    section = precision.quantize_section(Target("cpu", "cpu"), "int8")
    assert section is not None
    assert (section.activation_type, section.weight_type, section.per_channel) == ("uint8", "int8", None)


def test_4_bit_weights_are_per_channel_because_qnn_refuses_them_per_tensor() -> None:
    section = precision.quantize_section(Target("qnn", "npu"), "w4a16")
    assert section is not None
    assert section.per_channel
    assert section.rules == "qnn"


def test_qnn_gpu_is_never_handed_a_quantized_model() -> None:
    with pytest.raises(RequestError, match="gpu-004"):
        precision.quantize_section(Target("qnn", "gpu"), "int8")
    assert precision.quantize_section(Target("qnn", "gpu"), "fp32") is None


def test_an_unknown_word_gets_a_suggestion() -> None:
    with pytest.raises(RequestError) as caught:
        precision.resolve(Target("cpu", "cpu"), "w8a15")
    assert "did you mean `w8a1" in (caught.value.hint or "")


@pytest.mark.parametrize("word", precision.PRECISIONS)
def test_every_precision_says_how_near_it_stays_and_leads_to_known_ones(word: str) -> None:
    row = precision.PRECISIONS[word]
    assert 0.5 < row.agreement < 1.0
    assert set(row.then) <= set(precision.PRECISIONS) - {word}


@pytest.mark.parametrize(
    ("target", "word", "data", "found"),
    [
        ("qnn/npu", "int8", True, ["w8a16", "fp16", "int16"]),
        ("qnn/npu", "dynamic", False, ["fp16"]),
        ("qnn/npu", "fp32", False, []),
        ("cpu/cpu", "int8", True, ["dynamic", "fp32"]),
        ("cpu/cpu", "w4a16", True, ["fp32"]),
        ("qnn/gpu", "fp16", True, ["fp32"]),
    ],
)
def test_what_comes_next_ends_and_never_comes_twice(target: str, word: str, data: bool, found: list[str]) -> None:
    where = Target(*target.split("/"))  # type: ignore[arg-type]
    tried = [word]
    while (after := precision.next_precision(where, tried[-1], data=data, tried=tried)) is not None:
        tried.append(after)
    assert tried[1:] == found


def test_an_npu_that_computes_floats_in_16_bits_is_held_to_that() -> None:
    assert precision.agreement(Target("cpu", "cpu"), "fp32") == 0.9999
    assert precision.agreement(Target("qnn", "npu"), "fp32") == precision.agreement(Target("qnn", "npu"), "fp16")
