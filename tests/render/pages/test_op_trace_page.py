"""The page of an operator trace: values of the trace, sentences for each situation, extreme and hostile models."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pictures import HOSTILE, check_figure, check_page, marks
from traces import CPU, QNN, chain, operator, trace
from winml.modelkit.core import plain_text
from winml.modelkit.core.op_trace import OpTraceResult
from winml.modelkit.render.pages.html import page_html
from winml.modelkit.render.pages.op_trace import op_trace_blocks, op_trace_page, stretches
from winml.modelkit.render.pages.page import Cell, Facts, Figure, Page, figures


def _figures(found: OpTraceResult) -> dict[str, Figure]:
    return {one.name: one for one in op_trace_blocks(found) if isinstance(one, Figure)}


def _facts(page: Page) -> dict[str, str]:
    return next(dict(block.pairs) for block in page.blocks if isinstance(block, Facts))


SPLIT = trace(
    operator("first/Conv", "Conv", 600.0, ep=QNN),
    operator("first/Relu", "Relu", 200.0, ep=QNN),
    operator("middle/FusedConv", "FusedConv", 40.0),
    operator("middle/Cast", "Cast", 10.0),
    operator("last/Conv", "Conv", 200.0, ep=QNN, stream="1"),
    ep="qnn", device="npu", simulated=True,
    summary={"end_to_end_us": 1000.0, "unexplained_us": 100.0, "accelerator_cycles": 1100.0, "operators_cycles": 1000.0,
             "absorbed_nodes": [{"node": "x"}], "notes": ["cycles are host time"]},
)  # fmt: skip


def test_bars_hold_shares_and_cumulated_shares_of_the_trace() -> None:
    found = _figures(trace(*chain([500.0, 300.0, 200.0])))["operators"]
    texts = check_figure(found)
    assert {"50.0 %", "30.0 %", "20.0 %", "80.0 %", "100.0 %"} <= set(texts)
    said = marks(found.draw(760))
    assert said[0] == "/block.0/Conv, Conv on CPU: 500 µs on average, p90 500 µs, 50.0 %; 50.0 % with those above"
    assert said[1].endswith("30.0 %; 80.0 % with those above")
    assert found.sentence == (
        "/block.0/Conv (Conv) takes 50.0 % of the time of operators on CPU. 2 of 3 operators make up 80.0 %."
    )
    assert found.values is not None
    shares = [row.cells[5] for row in found.values.rows]
    assert [cell.sort for cell in shares if isinstance(cell, Cell)] == pytest.approx([50.0, 30.0, 20.0])


def test_operators_that_are_not_drawn_are_counted_with_their_share() -> None:
    found = _figures(trace(*chain([100.0] * 50)))["operators"]
    texts = check_figure(found)
    assert {"38 more operators", "76.0 %", "each at most 2.0 %"} <= set(texts)
    assert marks(found.draw(340))[-1] == "38 more operators: 76.0 %, each at most 2.0 %"


def test_operators_without_a_notable_share_are_not_drawn() -> None:
    texts = check_figure(_figures(trace(*chain([10_000.0, *[0.01] * 5])))["operators"])
    assert {"5 more operators", "each below 0.1 %", "100.0 %"} <= set(texts)


def test_cycles_and_time_have_pictures_of_their_own() -> None:
    page = op_trace_page(SPLIT)
    texts = check_page(page)
    assert list(texts) == ["execution", "operators", "operators-us"]
    assert "Conv · 600 cycles" in texts["operators"]
    assert not any("µs" in text for text in texts["operators"])
    assert "FusedConv · 40.0 µs" in texts["operators-us"]
    assert not any("cycles" in text for text in texts["operators-us"])
    assert page.state == "simulated"
    assert page.answer == (
        "first/Conv (Conv) takes 60.0 % of the cycles that the simulator of QNN counted. "
        "2 of 3 operators make up 80.0 %."
    )


def test_facts_say_what_is_explained_and_what_was_absorbed() -> None:
    facts = _facts(op_trace_page(SPLIT))
    assert facts["explained"] == "900 of 1,000 µs per run (90.0 %); the rest is outside of operators"
    assert facts["cycles"] == "1,000 of 1,100 that the accelerator counted"
    assert facts["absorbed"].startswith("1 node ")
    assert facts["operators"] == "3 on QNN, 2 on CPU; measured in cycles and µs"
    assert _facts(op_trace_page(replace(SPLIT, summary={})))["explained"].startswith("unknown")


def test_the_graph_summary_names_what_split_it() -> None:
    assert [(part.ep, len(part.operators)) for part in stretches(SPLIT)] == [(QNN, 2), (CPU, 2), (QNN, 1)]
    found = _figures(SPLIT)["execution"]
    texts = check_figure(found)
    assert found.sentence == "QNN ran 3 operators in 2 pieces: 1 FusedConv, 1 Cast on CPU split it."
    assert {"2 operators", "FusedConv + Cast", "1 operator", "● CPU", "■ QNN"} <= set(texts)
    assert marks(found.draw(760)) == [
        "2 operators on QNN: Conv + Relu", "2 operators on CPU: FusedConv + Cast", "1 operator on QNN: Conv",
    ]  # fmt: skip


def test_operators_before_and_after_do_not_split() -> None:
    whole = trace(
        operator("q", "QuantizeLinear", 1.0), operator("c", "Conv", 9.0, ep=QNN), operator("d", "DequantizeLinear", 1.0)
    )
    assert _figures(whole)["execution"].sentence == (
        "QNN ran 1 operator in one piece; CPU ran QuantizeLinear before it and DequantizeLinear after it."
    )


def test_partitions_of_one_ep_one_after_the_other_are_pieces_and_one_piece_has_no_picture() -> None:
    pair = trace(operator("a", "Conv", 1.0, ep=QNN), operator("b", "Conv", 1.0, ep=QNN, stream="1"))
    assert _figures(pair)["execution"].sentence == "QNN ran 2 operators in 2 pieces."
    assert "execution" not in _figures(trace(*chain([1.0, 2.0])))


def test_an_operator_of_the_runtime_is_named_by_its_neighbour() -> None:
    added = operator("Transpose_token_3", "Transpose", 5.0, onnx_op_type=None, onnx_nodes=(), origin="inserted",
                     neighbour="last/Conv")  # fmt: skip
    texts = check_figure(_figures(trace(added, *chain([1.0])))["operators"])
    assert {"Transpose before last/Conv", "inserted · 5.0 µs"} <= set(texts)


def test_types_are_summed_and_lead_where_single_operators_are_small() -> None:
    many = trace(*chain([10.0] * 40), *chain([5.0] * 40, "Relu"))
    found = _figures(many)
    assert list(found)[:2] == ["op-types", "operators"]
    assert {"40 × Conv", "66.7 %", "40 × Relu", "33.3 %"} <= set(check_figure(found["op-types"]))
    assert op_trace_page(many).answer.startswith("40 Conv operators take 66.7 % of the time of operators on CPU.")


@pytest.mark.parametrize(
    ("names", "by"),
    [
        ([f"/model/layer.{n // 8}/op{n}/Conv" for n in range(24)], "the scope in node names"),
        ([f"/model/layers.{n // 4}/{('attn', 'mlp')[n % 2]}/op{n}/Conv" for n in range(120)], "the kind of scope"),
        ([f"node_{n}" for n in range(24)], "type"),
    ],
)
def test_areas_are_grouped_by_what_tells_operators_apart(names: list[str], by: str) -> None:
    kinds = ("Conv", "Relu", "Add")
    found = _figures(trace(*(operator(name, kinds[n % 3], 10.0 + n) for n, name in enumerate(names))))["treemap"]
    texts = check_figure(found)
    assert f"grouped by {by}" in found.sentence
    expected = {"the scope in node names": "layer.2 · ", "the kind of scope": "layers.*/mlp · ", "type": "Add · "}[by]
    assert any(text.startswith(expected) for text in texts)


def test_a_small_model_has_no_areas() -> None:
    assert "treemap" not in _figures(trace(*chain([1.0] * 11)))
    assert "treemap" in _figures(trace(*chain([1.0] * 12)))


def test_ten_thousand_operators_are_aggregated_and_the_page_says_so() -> None:
    chance = random.Random(1)
    kinds = ("MatMul", "Softmax", "Gelu", "Add")
    operators = [
        operator(f"/model/layers.{n // 100}/block{n % 5}/{kinds[n % 4]}_{n}", kinds[n % 4], chance.expovariate(0.01),
                 ep=CPU if chance.random() < 0.1 else QNN, unit="us")
        for n in range(10_000)
    ]  # fmt: skip
    page = op_trace_page(trace(*operators))
    texts = check_page(page)
    assert list(texts) == ["execution", "op-types", "operators", "treemap"]
    found = {one.name: one for one in figures(page)}
    assert "equal parts, divided by EP" in found["execution"].sentence
    assert "below 1 % are drawn together by type" in found["treemap"].sentence
    assert "9988 more operators" in texts["operators"]
    assert len(page_html(page)) < 300_000
    assert found["operators"].values is not None
    assert found["operators"].values.folded == "numbers of the 100 largest of 10,000 operators; the trace has all"


def test_names_of_any_length_and_content_are_inert() -> None:
    hostile = trace(
        *(operator(f"{HOSTILE * 8}{n}", HOSTILE, 10.0 + n, ep=(CPU, HOSTILE)[n % 2], unit="us") for n in range(14)),
        model=HOSTILE, ep=HOSTILE, summary={"notes": [HOSTILE], "absorbed_nodes": 3},
    )  # fmt: skip
    check_page(op_trace_page(plain_text.values(hostile)))


def test_a_trace_without_operators_says_why_and_has_no_picture() -> None:
    empty = replace(trace(), status="no_data", error="the profile is empty")
    page = op_trace_page(empty)
    assert page.answer == "There is no operator trace (no_data): the profile is empty."
    assert page.state == "failed"
    assert check_page(page) == {}


def test_operators_without_a_time_are_unknown_not_zero() -> None:
    unknown = trace(replace(chain([1.0])[0], samples=()))
    page = op_trace_page(unknown)
    assert page.answer == "1 operator ran, and nothing is known of what they took."
    assert _facts(page)["without a value"] == "1 operator"
    assert check_page(page) == {}
