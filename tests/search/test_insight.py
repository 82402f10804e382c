from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from search_world import make_trial
from winml.modelkit.building.optimize.result import Candidate
from winml.modelkit.core.config import SCHEMA, config_from_json
from winml.modelkit.core.finding import ConfigFilter
from winml.modelkit.core.knob import Knob, Level
from winml.modelkit.core.trust import OWN_REQUEST
from winml.modelkit.knowledge import rules
from winml.modelkit.knowledge.rules import Advice
from winml.modelkit.search import insight
from winml.modelkit.search.space import Space
from winml.modelkit.search.strategy import State
from winml.modelkit.search.trial import Note

BASE = {"schema": SCHEMA, "target": "qnn/npu", "precision": "fp32", "optimize": None, "quantize": None}
INT8 = {"mode": "static", "activation_type": "uint8", "weight_type": "uint8"}

SPACE = Space(
    (
        Knob(
            "scheme",
            (
                Level("int8", {"precision": "int8", "quantize": INT8}, needs=("data",)),
                Level("fp16", {"precision": "fp16", "quantize": {"mode": "fp16"}}),
            ),
            prior=5.0,
        ),
        Knob(
            "op_types", (Level("Conv", {"quantize.op_types": ["Conv"]}, ops=("Conv",)),), when={"precision": ("int8",)}
        ),
        Knob("fuse", (Level("on", adds={"optimize.passes": ("conv_activation_fusion",)}),)),
    ),
    BASE,
)


def concerns(advice: Advice, config: Any) -> bool:
    return rules.concerns(advice.what, config_from_json(config, OWN_REQUEST))


def advice(kind: str, word: str, what: ConfigFilter, **more: Any) -> Advice:
    return Advice(kind, word, "npu-900", "it was seen (npu-900)", what, **more)  # type: ignore[arg-type]


FUSED = ConfigFilter(passes=("conv_activation_fusion",))
W8A8 = ConfigFilter(precision=("int8",))


def test_a_confirmed_finding_leaves_a_level_out_and_is_named() -> None:
    notes = insight.advice_notes(SPACE, [advice("skip", "skip", FUSED)], concerns)
    assert [(note.kind, note.option, note.source) for note in notes] == [("skip", ("fuse", "on"), "npu-900")]
    left = insight.make_insight(SPACE, notes, (), concerns).space
    assert [knob.name for knob in left.knobs] == ["scheme", "op_types"]


def test_what_is_blocked_is_left_out_too() -> None:
    notes = insight.advice_notes(SPACE, [advice("blocked", "skip", FUSED)], concerns)
    assert ("fuse", "on") not in insight.make_insight(SPACE, notes, (), concerns).space.options()


def test_a_weaker_finding_orders() -> None:
    known = insight.make_insight(
        SPACE,
        insight.advice_notes(SPACE, [advice("order", "last", W8A8), advice("boost", "first", FUSED)], concerns),
        (),
        concerns,
    )
    assert known.priority(("fuse", "on")) > known.priority(("scheme", "fp16")) > known.priority(("scheme", "int8"))
    assert set(known.space.options()) == set(SPACE.options())
    assert known.because((("fuse", "on"),))[0].source == "npu-900"


def test_a_finding_about_the_baseline_says_nothing_about_levels() -> None:
    unquantized = ConfigFilter(precision=("fp32",))
    assert insight.advice_notes(SPACE, [advice("skip", "skip", unquantized)], concerns) == []


def test_a_level_that_needs_another_one_is_not_blamed_for_it() -> None:
    notes = insight.advice_notes(SPACE, [advice("skip", "skip", W8A8)], concerns)
    assert [note.option for note in notes] == [("scheme", "int8")]


def test_after_a_collapse_of_accuracy_what_collapsed_is_not_tried_again() -> None:
    known = insight.make_insight(SPACE, (), [advice("order", "last", W8A8, after="accuracy-collapse")], concerns)
    choice = (("scheme", "int8"), ("op_types", "Conv"))
    assert known.is_allowed(choice, State())
    int8 = (("scheme", "int8"),)
    collapsed = make_trial("h1", int8, "inaccurate", config=SPACE.config(int8))
    assert not known.is_allowed(choice, State((collapsed,)))
    assert known.is_allowed((("scheme", "fp16"),), State((collapsed,)))
    assert known.is_allowed(choice, State((replace(collapsed, outcome="measured"),)))


def test_levels_that_need_data_are_left_out_with_the_reason() -> None:
    left_out = Note(kind="skip", knob="scheme", level="int8", source="data", reason="no data")
    assert insight.needs_notes(SPACE, {"data": "no data"}) == [left_out]
    assert insight.needs_notes(SPACE, {}) == []


@pytest.mark.parametrize(("ops", "kind"), [({"Relu": 3}, "skip"), (None, "blocked")])
def test_operators_that_are_absent_skip_and_those_not_known_block(ops: dict[str, int] | None, kind: str) -> None:
    assert [(note.kind, note.option) for note in insight.operator_notes(SPACE, ops)] == [(kind, ("op_types", "Conv"))]
    assert insight.operator_notes(SPACE, {"Conv": 1}) == []


def _change(status: Literal["changes", "no change", "failed"], note: str | None = None, **delta: int) -> Candidate:
    return Candidate(
        name="conv_activation_fusion",
        kind="fusion",
        what="",
        status=status,
        note=note,
        after=(),
        nodes_delta=sum(delta.values()),
        ops_delta=delta,
        seconds=0.1,
    )


def test_passes_that_change_nothing_or_fail_are_left_out_and_those_that_change_much_come_first() -> None:
    def pass_of(knob: str) -> str | None:
        return "conv_activation_fusion" if knob == "fuse" else None

    def kinds(change: Candidate) -> list[tuple[str, float]]:
        notes = insight.pass_effect_notes(SPACE, {"conv_activation_fusion": change}, pass_of)
        return [(note.kind, note.weight) for note in notes]

    assert kinds(_change("no change")) == [("skip", 0.0)]
    assert kinds(_change("failed", "no shape")) == [("skip", 0.0)]
    assert kinds(_change("changes", Conv=-3, FusedConv=3)) < kinds(_change("changes", Conv=-9, FusedConv=9))
    assert insight.pass_effect_notes(SPACE, {}, pass_of) == [], "a pass that was not run is tried"


def test_findings_that_contradict_each_other_are_named() -> None:
    def note(source: str, kind: Any, weight: float, level: str = "21") -> Note:
        return Note(kind=kind, knob="optimize.opset", level=level, source=source, reason="", weight=weight)

    notes = [
        note("npu-001", "boost", 10.0),
        note("cpu-001", "order", -10.0),
        note("npu-014", "boost", 10.0),
        note("npu-009", "boost", 10.0, level="19"),
        note("graph", "order", -1.0, level="19"),
    ]
    assert insight.describe_contradictions(notes) == (
        "findings contradict each other about optimize.opset=21: npu-001, npu-014 for it, cpu-001 against it",
    )
