"""The report of `winml debug`."""

from __future__ import annotations

from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.accuracy.result import DebugResult, LayerNode, LayerNoise, Matching, OutputNoise
from winml.modelkit.core.target import Target
from winml.modelkit.render.debug import debug_text
from winml.modelkit.render.pages.debug import debug_page
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.markdown import page_markdown
from winml.modelkit.render.pages.page import figures


def noise(ratio: float | None, *, equal: bool = False, broken: int = 0) -> Noise:
    return Noise(sqnr_db=ratio, cosine=0.5, equal=equal, not_finite=broken)


def layer(name: str, effect: Noise | None, own: Noise | None, **changes: object) -> LayerNoise:
    nodes = (LayerNode(name=name, op="MatMul"),)
    known = {"value": f"{name}_out", "nodes": nodes, "operators": ("MatMul",), "state": "measured"}
    return LayerNoise(**{**known, "own": own, "effect": effect, **changes})  # type: ignore[arg-type]


RESULT = DebugResult(
    model="int8.onnx",
    reference="fp32.onnx",
    target=Target("qnn", "npu", simulated=True),
    data="test.npz",
    synthetic=False,
    samples=4,
    sizes={},
    method="exposed",
    outputs=(OutputNoise(output="y", noise=noise(6.02)),),
    layers=(
        layer("<b>worst</b>", noise(6.02), noise(20.0), ep="QNNExecutionProvider"),
        layer("refused", None, None, state="refused", reason="no kernel"),
        layer("broken", noise(40.0), noise(None, broken=3)),
        layer("same", None, noise(None, equal=True)),
    ),
    fused=None,
    matching=Matching(matched=4, by_structure=0, unmatched=(), unmatched_count=0),
    sessions=3,
    summary=("output y: 6.0 dB on qnn/npu", "<b>worst</b> (MatMul) alone leaves the outputs at 6.0 dB"),
    notes=(),
    warnings=("a warning",),
    seconds=1.0,
)


def test_the_page_says_what_was_found_and_draws_what_layers_do_to_the_outputs() -> None:
    page = debug_page(RESULT)
    assert page.answer == "output y: 6.0 dB on qnn/npu."
    assert page.state == "simulated"
    (figure,) = figures(page)
    assert "50 % of the outputs" in figure.sentence
    assert "worst" in figure.draw(800)
    text = page_markdown(page)
    assert "refused: no kernel" in text
    assert "a warning" in text


def test_names_of_a_model_are_no_markup() -> None:
    assert "<b>worst</b>" not in page_html(debug_page(RESULT))


def test_the_text_has_a_row_for_every_kind_of_layer() -> None:
    lines = debug_text(RESULT).splitlines()
    assert [line.split()[0] for line in lines[-4:]] == ["<b>worst</b>", "refused", "broken", "same"]
    assert "NaN" in lines[-2]
    assert "equal" in lines[-1]
    assert "and 3 more layers" in debug_text(RESULT, 1)
