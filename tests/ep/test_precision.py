from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from winml.modelkit.cli.commands import build, quantize
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
class TestEveryRow:
    def test_says_how_near_it_stays_and_leads_to_known_ones(self, word: str) -> None:
        row = precision.PRECISIONS[word]
        assert row.meaning
        assert 0.5 < row.agreement < 1.0
        assert set(row.then) <= set(precision.PRECISIONS) - {word}

    def test_has_a_section_of_one_mode_on_every_target_or_is_refused_there_with_a_reason(self, word: str) -> None:
        row = precision.PRECISIONS[word]
        for target in EVERY_TARGET:
            if row.mode not in (None, "fp16") and target.device in catalog.BY_NAME[target.ep].unquantized:
                with pytest.raises(RequestError, match="cannot be used on"):
                    precision.quantize_section(target, word)
                continue
            section = precision.quantize_section(target, word)
            assert (None if section is None else section.mode) == row.mode

    def test_can_be_searched_for_unless_it_changes_nothing_or_is_another_word(self, word: str) -> None:
        row = precision.PRECISIONS[word]
        assert bool(row.schemes) == (row.mode is not None and row.same_as is None)

    def test_is_found_again_by_what_its_models_compute_in(self, word: str) -> None:
        assert {precision.precision_for(found) for found in (word, *precision.PRECISIONS[word].computed)} == {word}

    def test_is_in_the_help_of_the_commands_that_take_it(self, word: str) -> None:
        row = precision.PRECISIONS[word]
        for command, shown in ((build.command, True), (quantize.command, row.mode is not None)):
            help_text = next(str(o.help) for o in command.params if isinstance(o, click.Option) and "-p" in o.opts)
            words = re.findall(r"\w+", help_text.partition("(")[0])
            assert (word in words) == (shown and row.same_as is None)

    def test_is_explained_on_the_page_about_quantizing(self, word: str) -> None:
        page = (Path(__file__).parents[2] / "docs" / "quantize.md").read_text(encoding="utf-8")
        row = precision.PRECISIONS[word]
        assert f"`{word}`" in page or row.mode is None or row.same_as is not None

    def test_another_word_for_a_row_differs_in_its_meaning_alone(self, word: str) -> None:
        row = precision.PRECISIONS[word]
        if row.same_as is not None:
            other = precision.PRECISIONS[row.same_as]
            assert (row.section, row.agreement, row.then, row.useless_on) == (
                other.section, other.agreement, other.then, other.useless_on,
            )  # fmt: skip


def test_no_two_schemes_of_a_search_have_one_name_or_one_place() -> None:
    found = [scheme for _, scheme in precision.schemes()]
    assert len({scheme.name for scheme in found}) == len({scheme.rank for scheme in found}) == len(found)


@pytest.mark.parametrize(
    ("word", "quantized", "float_types", "answer"),
    [
        ("fp32", False, {"fp32", "fp64"}, True),
        ("fp32", False, {"fp16", "fp32"}, False),
        ("fp32", True, {"fp32"}, False),
        ("fp16", False, {"fp16", "fp32"}, True),
        ("fp16", False, {"fp32"}, False),
        ("int8", True, {"fp32"}, True),
        ("int8", False, {"fp32"}, False),
        ("w3a5", False, {"fp32"}, False),
    ],
)
def test_the_number_types_of_a_file_fit_its_precision_or_not(
    word: str, quantized: bool, float_types: set[str], answer: bool
) -> None:
    assert precision.fits(word, quantized=quantized, float_types=float_types) == answer


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


def test_a_decoder_in_float16_has_its_cache_in_float16_and_a_pair_keeps_its_types() -> None:
    half = precision.quantize_section(Target("cpu", "cpu"), "fp16")
    assert half is not None
    assert half.keep_io_types
    decoder = precision.fit_cache(half, ("input_ids", "attention_mask", "past_0_key"))
    assert decoder is not None
    assert not decoder.keep_io_types
    assert precision.fit_cache(half, ("input_ids", "past_0_decoder_key", "past_0_encoder_key")) == half
    assert precision.fit_cache(half, ("input_ids",)) == half
    blocks = precision.quantize_section(Target("cpu", "cpu"), "int4")
    assert precision.fit_cache(blocks, ("past_key_values.0.key",)) == blocks
    assert precision.fit_cache(None, ("past_key_values.0.key",)) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("int4", ("int4", {})),
        ("int4,encoder=FP16", ("int4", {"encoder": "fp16"})),
        ("encoder=fp16, decode = int4", ("auto", {"encoder": "fp16", "decode": "int4"})),
    ],
)
def test_parts_may_have_precisions_of_their_own(text: str, found: tuple[str, dict[str, str]]) -> None:
    assert precision.split_parts(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int4,fp16", "names two for the same model: `int4` and `fp16`"),
        ("encoder=fp16,encoder=int4", "names part `encoder` twice"),
        ("encoder=fp61", "unknown precision `fp61`"),
        ("encoder=", "unknown precision ``"),
    ],
)
def test_precisions_that_contradict_or_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        precision.split_parts(text)
