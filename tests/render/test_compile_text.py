"""The text of compiled models."""

from __future__ import annotations

from dataclasses import replace

from compile_values import EQUAL, PROOF, compiled_model, passed, result
from winml.modelkit.building.compile.result import (
    CompiledAlone,
    CompilerList,
    CompilerRow,
    FailedModel,
    SharedBinary,
    Sharing,
    Validation,
)
from winml.modelkit.core.error_object import ErrorObject
from winml.modelkit.core.errors import RunFailedError
from winml.modelkit.render.compile import compile_text, compilers_text

FAILED = FailedModel(
    model="n.onnx", error=ErrorObject.of(RunFailedError("no luck")), log=(), validation=None, proof=None
)


def test_a_model_with_its_files_nodes_and_parity() -> None:
    assert compile_text(result(compiled_model(), FAILED)) == "\n".join(
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
            "  proof    proven on target: `y` has a cosine of 0.9877 with the source's (at least 0.95)",
            "  runs on  QNN v2:6",
            "",
            "n.onnx · failed",
            "  why  no luck",
        ]
    )


def test_what_was_not_validated_says_why_beside_how_it_is_alone() -> None:
    alone = CompiledAlone(binaries=(), seconds=1.0, peak_bytes=None, validation=passed(EQUAL), cached=False)
    unknown = Validation("not-validated", "does not load here")
    row = compiled_model(validation=unknown, alone=alone, cached=True, proof=replace(PROOF, compiled="no"))
    text = compile_text(result(row))
    assert "parity   not validated: does not load here" in text
    assert "alone    same target: equal" in text
    assert "took     from the cache" in text
    assert "(at least 0.95); compiled form not proven" in text


def test_sharing_shows_who_points_where_and_what_it_saves() -> None:
    binaries = (SharedBinary(file="m.bin", bytes=1024, models=("a", "b")),)
    found = Sharing(
        shared=True, binaries=binaries, bytes=1024, bytes_alone=2048, saved_pct=50.0, seconds=1.0, peak_bytes=None
    )
    assert compile_text(result(compiled_model(), sharing=found)).endswith(
        "shared context\n  m.bin  1.0 KiB  used by a, b\n  1.0 KiB together, 2.0 KiB compiled alone: 50.0 % saved"
    )


def test_compilers_that_are_not_here_say_why() -> None:
    here = CompilerRow(compiler="ort", summary="one", available=True, reason=None, hint=None, shares=True, default=True)
    absent = CompilerRow(
        compiler="qairt", summary="two", available=False, reason="no SDK", hint="get it", shares=False, default=False
    )
    assert compilers_text(CompilerList(ep="qnn", compilers=(here, absent))).splitlines()[1:] == [
        "ort       ready, default  one",
        "qairt     not available   two   no SDK; get it",
    ]
