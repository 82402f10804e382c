"""The pages of builds: proof, agreement, times, sizes and what came from the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from build_values import DIGEST, manifest, stage
from pictures import HOSTILE, check_figures, marks
from winml.modelkit.building.proof.proof import LeastAgreement, OutputDistance, Proof
from winml.modelkit.building.result import (
    BuildPartsResult,
    BuildResult,
    BuildStage,
    BuiltArtifact,
    BuiltPart,
    Fallback,
    OperatorCounts,
)
from winml.modelkit.core import plain_text
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Target
from winml.modelkit.render.pages.build import build_page, manifest_page, parts_page, report_sizes
from winml.modelkit.render.pages.page import Facts, Figure, Notices, Page, Table, Text, figures

PLACED = Placement("QNNExecutionProvider", {"QNNExecutionProvider": 41, "CPUExecutionProvider": 2},
                   {"QNNExecutionProvider": 1}, {"Einsum": 2})  # fmt: skip
PROOF = Proof(
    status="proven on target", on="qnn/npu", agreement=LeastAgreement(output="logits", cosine=0.99995), limit=0.95,
    outputs=(OutputDistance(name="logits", is_float=True, cosine=0.99995, scale=1.001, max_abs=0.07, sqnr_db=40.2),),
    samples=4, data="data/calibration.npz", placement=PLACED, cache="miss", seconds=6.0,
)  # fmt: skip


def _stage(name: str, seconds: float, cache: Any = "miss") -> BuildStage:
    return BuildStage(stage=name, cache=cache, reason="changed: section.rules", file=f"{name}d.onnx", digest=DIGEST,
                      seconds=seconds, changes=())  # fmt: skip


def _result(**changes: Any) -> BuildResult:
    whole: dict[str, Any] = {
        "model": "models/digits.onnx",
        "target": Target("qnn", "npu", simulated=True),
        "precision": "w8a16",
        "folder": "out",
        "artifact": BuiltArtifact(path="out/model.onnx", digest=DIGEST, bytes=163_989),
        "stages": (_stage("optimize", 2.5), _stage("quantize", 4.5, "hit")),
        "analysis": OperatorCounts(supported=6, partial=0, unsupported=0, unknown=0, source="asked"),
        "proof": PROOF,
        "fallbacks": (),
        "files_by": "link",
        "seconds": 17.5,
        "notes": ("precision auto is w8a16",),
        "warnings": (),
    }
    return BuildResult(**{**whole, **changes})


def _figure(page: Page, name: str) -> Figure:
    return next(one for one in figures(page) if one.name == name)


def test_the_answer_is_the_proof_with_its_agreement() -> None:
    page = build_page(_result())
    assert page.title == "digits.onnx for qnn/npu, w8a16"
    assert page.state == "proven on target"
    assert page.answer == (
        "model.onnx (160.1 KiB): proven on target; logits has a cosine of 0.999950 to the source's (at least 0.95)."
    )
    texts = check_figures(page)
    assert list(texts) == ["agreement", "placement", "stages"]
    assert {"at least 0.95", "0.999950 ✓"} <= set(texts["agreement"])
    assert "Einsum fell back" in _figure(page, "placement").sentence
    assert Notices(("precision auto is w8a16",), "note") in page.blocks


def test_stages_are_bars_of_their_time_and_the_cache_is_an_outline() -> None:
    page = build_page(_result())
    found = _figure(page, "stages")
    assert found.sentence == (
        "The build took 17.5 s; proof took longest (6.0 s); 1 step came from the cache: outlines are what that took "
        "when it was made."
    )
    assert marks(found.draw(760)) == [
        "optimize: 2.50 s (changed: section.rules)",
        "quantize: 4.50 s, taken from the cache (changed: section.rules)",
        "proof: 6.00 s, proven on target",
        "besides stages and proof: 9.00 s",
    ]
    assert found.draw(760).count("wk-tint") == 1
    assert "from the cache" in check_figures(page)["stages"]


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (Proof(status="not proven", reason="`--no-prove`"), "not proven (`--no-prove`)"),
        (Proof(status="not proven"), "not proven (no reason is known)"),
        (replace(PROOF, status="proven on cpu only (target not here)"), "proven on cpu only (target not here); logits"),
        (
            replace(PROOF, compiled="the compiled form needs a device"),
            "; the compiled form is not proven (the compiled",
        ),
    ],
)
def test_every_proof_has_a_sentence(proof: Proof, words: str) -> None:
    page = build_page(_result(proof=proof))
    assert words in page.answer
    assert page.state == proof.status
    check_figures(page)


def test_outputs_that_equal_or_cannot_be_compared_need_no_picture() -> None:
    same = replace(PROOF, outputs=(OutputDistance(name="a", is_float=False, equal=True),), placement=None)
    page = build_page(_result(proof=same))
    assert "agreement" not in check_figures(page)
    listed = next(one for one in page.blocks if isinstance(one, Table) and one.title == "Agreement with the source")
    assert listed.note == "All outputs on qnn/npu equal the source's, over 4 samples of calibration.npz."
    odd = replace(PROOF, outputs=(OutputDistance(name="a", is_float=True, same_shape=False),))
    page = build_page(_result(proof=odd))
    listed = next(one for one in page.blocks if isinstance(one, Table) and one.title == "Agreement with the source")
    assert listed.rows[0].cells == ("a", "unknown", "another shape")


def test_an_output_below_the_limit_is_marked() -> None:
    far = OutputDistance(name="boxes", is_float=True, cosine=0.5)
    page = build_page(_result(proof=replace(PROOF, outputs=(*PROOF.outputs, far))))
    assert {"0.500000 ✗", "0.999950 ✓"} <= set(check_figures(page)["agreement"])
    assert _figure(page, "agreement").sentence.startswith("boxes on qnn/npu has a cosine of 0.500000")


def test_operators_that_the_target_leaves_are_drawn_and_others_folded() -> None:
    page = build_page(
        _result(analysis=OperatorCounts(supported=4, partial=1, unsupported=2, unknown=0, source="asked"))
    )
    assert marks(_figure(page, "operators").draw(760)) == [
        "supported: 4 types of 7", "partial: 1 type of 7", "unsupported: 2 types of 7",
    ]  # fmt: skip
    folded = next(one for one in build_page(_result()).blocks if isinstance(one, Facts) and one.title == "Operators")
    assert folded.folded == "qnn/npu takes all 6 operator types before quantization (the target was asked)"
    assert "operators" not in check_figures(build_page(_result(analysis=None)))


def test_a_precision_that_was_given_up_is_a_warning_and_no_stage_is_said() -> None:
    given_up = Fallback(precision="w8a8", then="w8a16", reason="its cosine is 0.2", identity=None)
    page = build_page(_result(fallbacks=(given_up,), stages=(), proof=replace(PROOF, cache=None)))
    assert Notices(("precision w8a8 was given up for w8a16: its cosine is 0.2",)) in page.blocks
    assert "stages" not in check_figures(page)
    assert any(isinstance(one, Facts) and one.title == "Stages" for one in page.blocks)


def test_one_ep_needs_no_picture_of_the_placement() -> None:
    alone = Placement("CPUExecutionProvider", {"CPUExecutionProvider": 37}, {}, {"Conv": 37})
    page = build_page(_result(proof=replace(PROOF, placement=alone)))
    assert "placement" not in check_figures(page)
    assert Text("All 37 nodes ran on CPU.", "Where the nodes ran") in page.blocks


def test_parts_have_their_sizes_and_pictures_with_names_of_their_own() -> None:
    small = _result(
        artifact=BuiltArtifact(path="o/d.onnx", digest=DIGEST, bytes=1024), proof=Proof(status="not proven")
    )
    parts = BuildPartsResult(
        model="m", target=Target("cpu", "cpu"), precision="fp32", folder="out", notes=(), warnings=(),
        parts=(BuiltPart(part="encoder", result=_result()), BuiltPart(part="decoder", result=small)),
    )  # fmt: skip
    page = parts_page(parts)
    texts = check_figures(page)
    assert {"parts", "encoder-agreement", "encoder-stages", "decoder-stages"} <= set(texts)
    assert {"encoder", "160.1 KiB", "decoder", "1.0 KiB"} <= set(texts["parts"])
    assert page.state == "not proven"
    assert "161.1 KiB together; 1 of them proven on cpu." in page.answer


def test_a_folder_shows_sizes_that_its_reports_know() -> None:
    reports: list[dict[str, Any]] = [
        {"files": [{"path": "a", "bytes": 600_000}]},
        {"size": {"before_bytes": 600_000, "after_bytes": 150_000}},
    ]
    stages = tuple(
        replace(stage(name, f"{name}.onnx", {f"{name}.onnx": DIGEST}), report=report)
        for name, report in zip(("optimize", "quantize"), reports, strict=True)
    )
    page = manifest_page(manifest(stages=stages, proof=PROOF, seconds=3.0))
    texts = check_figures(page)
    assert _figure(page, "sizes").sentence == "From 585.9 KiB after optimize to 146.5 KiB after quantize (0.25 times)."
    assert {"after optimize", "585.9 KiB", "after quantize", "146.5 KiB"} <= set(texts["sizes"])
    assert page.answer.startswith("model.onnx of m.onnx: proven on target; logits")
    assert manifest_page(manifest()).answer == "model.onnx of m.onnx: Nothing is known of a proof."
    assert manifest_page(manifest()).state is None


@pytest.mark.parametrize(("peak", "shown"), [(512 << 20, True), (None, False), ("much", False)])
def test_a_folder_shows_the_peak_of_memory_that_its_export_had(peak: Any, shown: bool) -> None:
    exported = replace(
        stage("export", "export.onnx", {"export.onnx": DIGEST}), report={"files": [], "peak_memory_bytes": peak}
    )
    page = manifest_page(manifest(stages=(exported,)))
    pairs = [pair for block in page.blocks if isinstance(block, Facts) for pair in block.pairs]
    assert (("memory of export, at most", "512.0 MiB") in pairs) is shown
    assert any(name.startswith("memory") for name, _ in pairs) is shown


@pytest.mark.parametrize("report", [{}, {"files": 3}, {"files": [{}]}, {"files": ["x"]}, {"size": {}}, {"size": [1]}])
def test_a_report_without_sizes_says_nothing_of_them(report: dict[str, Any]) -> None:
    assert report_sizes(report) == (None, None)


def test_hostile_names_are_inert() -> None:
    outputs = tuple(OutputDistance(name=f"{HOSTILE * 9}{n}", is_float=True, cosine=0.1 * n) for n in range(9))
    hostile = _result(
        model=HOSTILE, precision=HOSTILE, warnings=(HOSTILE,), notes=(HOSTILE,),
        artifact=BuiltArtifact(path=HOSTILE, digest=DIGEST, bytes=0),
        stages=tuple(replace(_stage(f"{HOSTILE * 9}{n}", 10.0**n), reason=HOSTILE * 9) for n in range(6)),
        proof=replace(PROOF, outputs=outputs, data=HOSTILE,
                      placement=Placement(HOSTILE, {HOSTILE: 1, "CPUExecutionProvider": 1}, {}, {HOSTILE: 1})),
    )  # fmt: skip
    check_figures(build_page(plain_text.values(hostile)))
