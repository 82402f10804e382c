"""The text of `winml quantize`."""

from __future__ import annotations

from typing import Any

from quantize_zoo import SECTIONS
from winml.modelkit.core import sections
from winml.modelkit.render.quantize import quantize_text


def result(**changes: Any) -> dict[str, Any]:
    entry = {
        "name": "y",
        "identical": False,
        "cosine": 0.99951,
        "sqnr_db": 30.04,
        "exact_sqnr_db": None,
        "max_abs": 0.1,
    }
    return {
        "model": "models/m.onnx",
        "output": "q.onnx",
        "target": "cpu",
        "precision": "int8",
        "section": sections.plain(SECTIONS["u8s8"]),
        "changed": True,
        "nodes": {"quantized": {"Conv": 3}, "left": [{"op": "If", "nodes": 1, "reason": "because"}]},
        "calibration": {
            "source": "data/x.npz", "samples": 16, "runs": 16, "seed": 3, "method": "minmax", "tensors": 7,
            "digest": "d",
        },
        "size": {"before_bytes": 4096, "after_bytes": 1024},
        "fidelity": {"status": "measured", "reason": None, "source": "data/x.npz", "samples": 4, "outputs": [entry]},
        **changes,
    }  # fmt: skip


def test_a_static_result_is_told_whole() -> None:
    assert quantize_text(result()) == (
        "m.onnx -> q.onnx for cpu · 4.0 KiB -> 1.0 KiB\n"
        "precision    int8: static, uint8 activations, int8 weights per channel\n"
        "calibration  16 samples of x.npz (seed 3), minmax, 7 tensors\n"
        "\n"
        "quantized  Conv x3\n"
        "left\n"
        "  If  1  because\n"
        "\n"
        "outputs against the original's on 4 samples (cpu)\n"
        "  y  cosine 0.99951  SQNR 30.0 dB"
    )


def test_no_change_and_no_comparison_say_so() -> None:
    fidelity = {"status": "skipped", "reason": "nothing changed", "source": "random", "samples": 0, "outputs": []}
    text = quantize_text(
        result(
            changed=False,
            calibration=None,
            fidelity=fidelity,
            nodes={"quantized": {}, "left": []},
            section=sections.plain(SECTIONS["int4"]),
        )
    )
    assert text.startswith("m.onnx -> q.onnx for cpu · no change\n")
    assert "uint4 weights in blocks of 32" in text
    assert text.endswith("quantized  none\n\noutputs not compared: nothing changed")
