"""Changes that make a quantized model lose less: which are offered, in which order, and where they apply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import quantize_zoo
from winml.modelkit.building.quantize.adjusting import note
from winml.modelkit.building.quantize.command import QuantizeRequest, quantize
from winml.modelkit.building.quantize.knobs import knobs
from winml.modelkit.building.quantize.mending import mending_levels
from winml.modelkit.building.quantize.result import Adjustment
from winml.modelkit.core import values
from winml.modelkit.core.config import QuantizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.target import Target

U8S8 = quantize_zoo.SECTIONS["u8s8"]
WIDE = quantize_zoo.SECTIONS["w8a16 for qnn"]
TRANSFORMER = ("Add", "LayerNormalization", "MatMul", "Softmax")


def keys(section: QuantizeSection, *ops: str) -> list[str]:
    return [key for level in mending_levels(section, ops) for key in level.changes]


def test_what_costs_nothing_comes_first_and_floats_last() -> None:
    assert keys(U8S8, *TRANSFORMER) == ["bias_correction", "calibration_method", "smoothing", "op_types"]


def test_products_alone_are_those_that_the_model_has() -> None:
    assert mending_levels(U8S8, ("Conv", "Relu", "Add"))[-1].changes == {"op_types": ("Conv", "Relu")}


@pytest.mark.parametrize(
    ("section", "ops", "expected"),
    [
        (U8S8, ("Conv", "Relu"), ["bias_correction", "calibration_method"]),
        (U8S8, ("Relu",), ["calibration_method"]),
        (WIDE, TRANSFORMER, ["bias_correction", "smoothing"]),
        (quantize_zoo.SECTIONS["dynamic"], TRANSFORMER, []),
        (quantize_zoo.SECTIONS["int4"], TRANSFORMER, []),
        (quantize_zoo.SECTIONS["fp16"], TRANSFORMER, []),
        (replace(U8S8, exclude_nodes=("n",)), TRANSFORMER, ["bias_correction", "calibration_method", "smoothing"]),
    ],
    ids=["convolutions alone", "no product", "16 bits", "dynamic", "weights", "fp16", "the user chose nodes"],
)
def test_only_what_applies_is_offered(section: QuantizeSection, ops: tuple[str, ...], expected: list[str]) -> None:
    assert keys(section, *ops) == expected


def test_what_the_user_chose_is_not_changed() -> None:
    chosen = replace(U8S8, bias_correction=False, calibration_method="entropy", smoothing=0.3, op_types=("MatMul",))
    assert mending_levels(chosen, TRANSFORMER) == ()


def test_every_level_makes_a_section_that_can_be_read() -> None:
    section = U8S8
    for level in mending_levels(U8S8, TRANSFORMER):
        section = replace(section, **level.changes)
        assert values.read(QuantizeSection, values.to_json(section), "quantize") == section


def test_a_section_without_them_is_written_as_it_was_before() -> None:
    written = values.to_json(U8S8)
    assert not {"bias_correction", "smoothing"} & set(written)
    assert values.read(QuantizeSection, written, "quantize") == U8S8


def test_a_search_has_them_as_levels() -> None:
    found = {knob.name: knob for knob in knobs(Target("cpu", "cpu"))}
    assert found["quantize.calibration_method"].names == ("default", "percentile", "entropy", "mse", "best")
    assert found["quantize.bias_correction"].level("on").sets == {"quantize.bias_correction": True}
    smoothing = found["quantize.smoothing"].level("0.5")
    assert smoothing.sets == {"quantize.smoothing": 0.5}
    assert smoothing.ops == ("MatMul",)
    assert all(found[name].when["quantize.mode"] == ("static",) for name in found if name.endswith("ing"))


@pytest.mark.parametrize("key", ["bias_correction", "smoothing"])
def test_a_precision_that_has_no_use_for_them_refuses_them(key: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(quantize_zoo.gemm().SerializeToString())
    request = QuantizeRequest(
        str(path), str(tmp_path / "out.onnx"), target="cpu", precision="dynamic", changes={key: 1}
    )
    with pytest.raises(RequestError, match=f"`{key}` does not apply to precision `dynamic`"):
        quantize(request, lambda event: None)


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(RequestError, match="smoothing"):
        values.read(QuantizeSection, {**values.to_json(U8S8), "smoothing": 1.5}, "quantize")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            Adjustment(name="smoothing", layers=8, left={"even": 2}, added_nodes=3),
            "smoothing moved ranges of activations into the weights of 8 products, with 3 nodes more; "
            "2 were left: even",
        ),
        (
            Adjustment(name="bias_correction", layers=5, left={}, without_db=37.12, with_db=41.88),
            "bias correction shifted 5 products; the outputs have 41.9 dB, without it 37.1 dB",
        ),
    ],
)
def test_a_note_says_what_was_done_and_what_it_changed(found: Adjustment, expected: str) -> None:
    assert note(found) == expected
