"""The text of compiled models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from winml.modelkit.building.proof.proof import LeastAgreement, Proof
from winml.modelkit.render.compile import compile_text, compilers_text

COMPARISON = {"passed": True, "reason": None, "max_abs": 0.0, "cosine": 1.0, "sqnr_db": None, "limits": {}}
NEAR = {**COMPARISON, "max_abs": 0.00123, "cosine": 0.999987, "sqnr_db": 45.67}
PASSED = {"status": "passed", "reason": None, "comparisons": {"source": NEAR}}
PROOF = Proof(status="proven on target", on="qnn/npu", limit=0.95, agreement=LeastAgreement(output="y", cosine=0.98765))
ROW: dict[str, Any] = {
    "model": "m.onnx", "status": "compiled", "output": "m_ctx.onnx", "cached": False, "seconds": 1.23,
    "peak_bytes": 3 * 2**20, "binaries": [{"file": "m.bin", "bytes": 2048, "digest": "sha256:" + "0" * 64}],
    "embedded_bytes": 0, "ep_context_nodes": 2, "cpu_nodes": 1, "cpu_ops": {"Erf": 1},
    "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 4]}], "outputs": [], "validation": PASSED, "alone": None,
    "proof": PROOF,
    "compatibility": {"QNNExecutionProvider": "v2:6"},
}  # fmt: skip
FAILED = {"model": "n.onnx", "status": "failed", "error": {"message": "no luck"}}
RESULT: dict[str, Any] = {
    "target": "qnn/npu", "simulated": True, "compiler": "ort", "provider_options": {"soc_model": "60"},
    "models": [ROW, FAILED], "sharing": None,
}  # fmt: skip


def test_a_model_with_its_files_nodes_and_parity() -> None:
    assert compile_text(RESULT) == "\n".join(
        [
            "qnn/npu (simulated) · compiler ort · soc_model=60",
            "",
            "m.onnx -> m_ctx.onnx",
            "  binary   m.bin (2.0 KiB, sha256:000000000000)",
            "  nodes    2 compiled, 1 on the CPU: Erf x1",
            "  took     1.2 s, peak memory 3.0 MiB",
            "  inputs   x float32[1, 4]",
            "  outputs",
            "  parity   same target: max abs 0.0012, cosine 0.99999, SQNR 45.7 dB",
            "  proof    proven on target: `y` has a cosine of 0.9877 with the source's (least 0.95)",
            "  runs on  QNN v2:6",
            "",
            "n.onnx · failed",
            "  why  no luck",
        ]
    )


def test_what_was_not_validated_says_why_beside_how_it_is_alone() -> None:
    unknown = {"status": "not-validated", "reason": "does not load here", "comparisons": {}}
    alone = {"validation": {**PASSED, "comparisons": {"source": COMPARISON}}}
    row = {**ROW, "validation": unknown, "alone": alone, "cached": True, "proof": replace(PROOF, compiled="no")}
    text = compile_text({**RESULT, "models": [row]})
    assert "parity   not validated: does not load here" in text
    assert "alone    same target: equal" in text
    assert "took     from the cache" in text
    assert "(least 0.95); compiled form not proven" in text


def test_sharing_shows_who_points_where_and_what_it_saves() -> None:
    binaries = [{"file": "m.bin", "bytes": 1024, "models": ["a", "b"]}]
    found = {"shared": True, "binaries": binaries, "bytes": 1024, "bytes_alone": 2048, "saved_pct": 50.0}
    assert compile_text({**RESULT, "sharing": found}).endswith(
        "shared context\n  m.bin  1.0 KiB  used by a, b\n  1.0 KiB together, 2.0 KiB compiled alone: 50.0 % saved"
    )


def test_compilers_that_are_not_here_say_why() -> None:
    rows = [
        {"compiler": "ort", "summary": "one", "available": True, "default": True, "reason": None, "hint": None},
        {
            "compiler": "qairt",
            "summary": "two",
            "available": False,
            "default": False,
            "reason": "no SDK",
            "hint": "get it",
        },
    ]
    assert compilers_text({"compilers": rows}).splitlines()[1:] == [
        "ort       ready, default  one",
        "qairt     not here        two   no SDK; get it",
    ]
