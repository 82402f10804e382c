from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graph_values import make_facts
from winml.modelkit.core.config import SCHEMA, BuildConfig, CompileSection, OptimizeSection, QuantizeSection
from winml.modelkit.core.finding import FACTS, Action, ConfigFilter, Finding
from winml.modelkit.core.target import Target
from winml.modelkit.graph.description import GraphFacts, MACs
from winml.modelkit.knowledge.findings import Knowledge
from winml.modelkit.knowledge.rules import Advice, concerns, find_advice, find_fact

NPU = Target("qnn", "npu")
CNN = make_facts({"Conv": 4, "Relu": 4, "Add": 2})
SOFTMAX = make_facts({"MatMul": 6, "Softmax": 1})
HERE = {"onnxruntime": "1.31.1", "qnn": "2.7.0"}


@pytest.fixture(scope="module")
def findings() -> tuple[Finding, ...]:
    return Knowledge().findings


def advice(
    findings: tuple[Finding, ...], name: str, facts: GraphFacts = CNN, target: Target = NPU, **more: Any
) -> Advice:
    found = [a for a in find_advice(findings, facts, target, **more) if a.finding == name]
    assert len(found) == 1, f"{name}: {found}"
    return found[0]


def silent(
    findings: tuple[Finding, ...], name: str, facts: GraphFacts = CNN, target: Target = NPU, **more: Any
) -> bool:
    return all(a.finding != name for a in find_advice(findings, facts, target, **more))


def test_a_confirmed_hazard_prunes_and_names_its_finding(findings: tuple[Finding, ...]) -> None:
    found = advice(findings, "npu-006", versions=HERE)
    assert found.kind == "skip"
    assert found.what == ConfigFilter(passes=("conv_activation_fusion", "conv_add_activation_fusion"))
    assert "npu-006" in found.reason


def test_weak_findings_order_and_never_prune(findings: tuple[Finding, ...]) -> None:
    confirmed = {f.id for f in findings if f.status == "confirmed"}
    targets = (NPU, Target("qnn", "gpu"), Target("cpu", "cpu"), Target("dml", "gpu"))
    for target in targets:
        for found in find_advice(findings, CNN, target):
            assert found.finding in confirmed or found.kind in ("order", "boost"), found
    found = advice(findings, "gpu-003", target=Target("qnn", "gpu"))
    assert (found.place, found.what) == ("last", ConfigFilter(compile=True))


def test_a_finding_on_one_ep_says_nothing_on_another(findings: tuple[Finding, ...]) -> None:
    for target in (Target("qnn", "gpu"), Target("cpu", "cpu"), Target("openvino", "npu")):
        assert silent(findings, "npu-006", target=target)
    assert silent(findings, "cpu-102", target=NPU)


def test_an_unknown_fact_blocks_what_a_confirmed_finding_would_forbid(findings: tuple[Finding, ...]) -> None:
    found = advice(findings, "npu-006", facts=replace(CNN, compiled_for=("qnn",)), versions=HERE)
    assert found.kind == "blocked"
    assert "unknown here: 1 ≤ ops.Conv" in found.reason


def test_an_unknown_fact_never_favours(findings: tuple[Finding, ...]) -> None:
    assert advice(findings, "npu-001", families=("dinov2",)).kind == "boost"
    assert silent(findings, "npu-001")
    assert silent(findings, "npu-001", families=("vit",))


def test_a_family_that_may_be_one_of_several_is_unknown_where_they_differ(findings: tuple[Finding, ...]) -> None:
    assert silent(findings, "npu-001", families=("beit", "dinov2"))
    assert silent(findings, "npu-013", facts=SOFTMAX, families=("vit", "deit"))
    found = advice(findings, "npu-013", facts=SOFTMAX, families=("roberta", "bert"))
    assert (found.kind, found.place) == ("order", "last")
    assert "unknown here: which of bert, roberta the model is" in found.reason


def _acting() -> list[Finding]:
    return [f for f in Knowledge().findings if f.action is not None and f.status != "retracted"]


def _facts_for(finding: Finding) -> GraphFacts:
    """A graph that the finding is about."""
    names = [c.fact.removeprefix("ops.") for c in finding.scope.graph if c.fact.startswith("ops.")]
    is_dynamic = any(c.fact == "dynamic_axes" for c in finding.scope.graph)
    changes = {"dynamic_axes": {"batch": ("x[0]",)}} if is_dynamic else {}
    return make_facts(dict.fromkeys(("Conv", "MatMul", *names), 4), **changes)


@pytest.mark.parametrize("finding", _acting(), ids=lambda finding: finding.id)
def test_every_shipped_finding_acts_for_some_model_and_not_for_another(finding: Finding) -> None:
    """For one of its family and graph on its target, and not for another family, another graph or another EP."""
    scope = finding.scope
    target = NPU if scope.ep is None else Target(scope.ep, scope.device or "cpu")

    def acts(facts: GraphFacts, families: tuple[str, ...], on: Target) -> bool:
        return any(one.finding == finding.id for one in find_advice([finding], facts, on, families=families))

    facts, families = _facts_for(finding), scope.families[:1]
    assert acts(facts, families, target)
    if scope.families:
        assert not acts(facts, ("no_such_family",), target)
    if scope.graph:
        assert not acts(make_facts({"Relu": 3}), families, target)
    # One about measuring that names no EP is meant for all of them.
    assert acts(facts, families, Target("openvino", "gpu")) == (scope.ep is None)


def test_a_graph_the_finding_is_not_about_gets_no_advice(findings: tuple[Finding, ...]) -> None:
    assert silent(findings, "npu-006", facts=make_facts({"MatMul": 3}))


def test_another_release_of_the_runtime_weakens_a_finding(findings: tuple[Finding, ...]) -> None:
    found = advice(findings, "npu-006", versions={"onnxruntime": "1.40.0", "qnn": "2.7.0"})
    assert found.kind == "order"
    assert "not seen with onnxruntime 1.40.0" in found.reason


def test_a_retracted_finding_is_silent(findings: tuple[Finding, ...]) -> None:
    retracted = next(f for f in findings if f.id == "cpu-008")
    acting = replace(retracted, action=Action(verb="avoid", what=ConfigFilter(compile=True)))
    assert find_advice([acting], CNN, Target("cpu", "cpu"), families=()) == []


def test_the_rules_of_the_first_search_are_there_as_advice(findings: tuple[Finding, ...]) -> None:
    start, finish = advice(findings, "npu-002"), advice(findings, "npu-003")
    assert (start.place, start.what, start.after) == ("start", ConfigFilter(precision=("w8a16",)), None)
    assert (finish.place, finish.what, finish.after) == ("finish", ConfigFilter(compile=True), "convergence")
    assert advice(findings, "npu-004").after == "accuracy-collapse"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ops.Conv", 4), ("ops.Erf", 0), ("op_share.Conv", 0.4), ("opset", 17), ("dynamic_axes", 0), ("macs", None)),
        *(("nodes", 10), ("parameters", 0), ("file_bytes", None)),
    ],
)
def test_facts_by_name(name: str, value: float | None) -> None:
    assert find_fact(CNN, name) == value


def test_conditions_may_ask_for_multiplications() -> None:
    assert find_fact(replace(CNN, macs=MACs(macs=8, unknown_nodes=0, assumed={})), "macs") == 8


def test_every_fact_that_a_condition_may_name_is_one_of_a_graph() -> None:
    for name in FACTS:
        find_fact(CNN, name)


def config(**changes: Any) -> BuildConfig:
    return BuildConfig(schema=SCHEMA, **changes)


@pytest.mark.parametrize(
    ("what", "meant", "spared"),
    [
        (
            ConfigFilter(passes=("a", "b")),
            config(optimize=OptimizeSection(("b",))),
            config(optimize=OptimizeSection(("c",))),
        ),
        (ConfigFilter(compile=True), config(compile=CompileSection()), config()),
        (ConfigFilter(precision=("int8",)), config(precision="int8"), config(precision="fp16")),
        (
            ConfigFilter(quantize={"weight_type": ("int4",), "per_channel": (False,)}),
            config(quantize=QuantizeSection("static", weight_type="int4")),
            config(quantize=QuantizeSection("static", weight_type="int4", per_channel=True)),
        ),
    ],
)
def test_a_filter_means_the_configs_in_which_it_holds(
    what: ConfigFilter, meant: BuildConfig, spared: BuildConfig
) -> None:
    assert concerns(what, meant)
    assert not concerns(what, spared)


def test_an_opset_that_is_kept_is_the_models(findings: tuple[Finding, ...]) -> None:
    what = advice(findings, "cpu-001", facts=make_facts({"Transpose": 9}), target=Target("cpu", "cpu")).what
    assert concerns(what, config(), opset=21)
    assert not concerns(what, config(), opset=17)
    assert concerns(what, config()), "an unknown opset is not permitted"
