"""The text of `winml quantize`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quantize_zoo import SECTIONS
from winml.modelkit.building.quantize.result import (
    Calibration,
    Fidelity,
    LeftNodes,
    NodeSummary,
    OutputFidelity,
    QuantizeOutcome,
    QuantizeResult,
    Sizes,
)
from winml.modelkit.core.target import Target
from winml.modelkit.render.quantize import quantize_text
from winml.modelkit.store.stage_cache import CacheAnswer

OUTCOME = QuantizeOutcome(
    changed=True,
    mode="static",
    granularity=None,
    nodes=NodeSummary({"Conv": 3}, (LeftNodes("If", 1, "because"),)),
    calibration=Calibration(source="data/x.npz", samples=16, runs=16, seed=3, method="minmax", tensors=7, digest="d"),
    size=Sizes(before_bytes=4096, after_bytes=1024),
    fidelity=Fidelity(
        status="measured",
        source="data/x.npz",
        samples=4,
        outputs=(
            OutputFidelity(name="y", identical=False, cosine=0.99951, sqnr_db=30.04, exact_sqnr_db=None, max_abs=0.1),
        ),
    ),
    notes=(),
    warnings=(),
)


def result(section: str = "u8s8", cache: CacheAnswer = "miss", **changes: Any) -> QuantizeResult:
    return QuantizeResult(
        model="models/m.onnx",
        output="q.onnx",
        target=Target("cpu", "cpu"),
        precision="int8",
        section=SECTIONS[section],
        cache=cache,
        outcome=replace(OUTCOME, **changes),
    )


def test_a_static_result_is_told_whole() -> None:
    assert quantize_text(result()) == (
        "m.onnx -> q.onnx for cpu · 4.0 KiB -> 1.0 KiB\n"
        "precision    int8: static, uint8 activations, int8 weights per channel\n"
        "calibration  16 samples of x.npz (seed 3), minmax, 7 tensors\n"
        "\n"
        "quantized  Conv x3\n"
        "not quantized\n"
        "  If  1  because\n"
        "\n"
        "outputs compared with the original's on 4 samples (cpu)\n"
        "  y  cosine 0.99951  SQNR 30.0 dB"
    )


def test_a_result_from_the_cache_is_said() -> None:
    head = quantize_text(result(cache="hit")).splitlines()[0]
    assert head == "m.onnx -> q.onnx for cpu · 4.0 KiB -> 1.0 KiB · from the cache"


def test_no_change_and_no_comparison_say_so() -> None:
    fidelity = Fidelity(status="skipped", reason="nothing changed", source="random")
    text = quantize_text(
        result(
            changed=False,
            calibration=None,
            fidelity=fidelity,
            nodes=NodeSummary({}, ()),
            section="int4",
        )
    )
    assert text.startswith("m.onnx -> q.onnx for cpu · no change\n")
    assert "uint4 weights in blocks of 32" in text
    assert text.endswith("quantized  none\n\noutputs not compared: nothing changed")
