from __future__ import annotations

from typing import Any

import pytest

from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.core.ladder import finding_from_json, missing_evidence, promote
from winml.modelkit.core.values import to_json

PLACED = {"opens": True, "nodes": {"CPUExecutionProvider": 1}, "on_cpu": {"Conv": 1}, "partitions": 0}
PLACES = {"base": PLACED, "candidate": {"opens": False, "message": "refused"}}
SAMPLES = {"measurement": None, "verdict": {}, "calibration": None, "calibrations": {}, "tests": 1}


def evidence(run: str, **changes: Any) -> dict[str, Any]:
    found = {"kind": "placement", "form": "nodes", "run": run, "shows": "nodes", "data": PLACES}
    return {**found, **changes}


def samples(run: str, **changes: Any) -> dict[str, Any]:
    return evidence(run, kind="latency", form="samples", data=SAMPLES, **changes)


def value(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "winml/finding/1",
        "id": "npu-900",
        "title": "title",
        "category": "operator-support",
        "claim": "placement",
        "observation": "seen",
        "scope": {"ep": "qnn", "device": "npu"},
        "status": "draft",
        "source": "test",
        **changes,
    }


TWICE = [evidence("one"), evidence("two")]


def test_a_finding_comes_back_as_it_was_written() -> None:
    finding = finding_from_json(value(evidence=TWICE, status="confirmed", confidence="L2"))
    assert finding_from_json(to_json(finding)) == finding


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"titel": "x"}, "titel"),
        ({"status": "sure"}, "status"),
        ({"id": "NPU 1"}, "id"),
        ({"schema": "winml/finding/2"}, "schema"),
        ({"scope": {"ep": "qnn", "graph": [{"at_least": 1}]}}, r"scope.graph\[0\].fact"),
        ({"evidence": [evidence("one"), {"kind": "placement"}]}, r"evidence\[1\].form"),
        ({"evidence": [evidence("one", form="medians", data={})]}, r"evidence\[0\].data.base"),
        ({"evidence": [evidence("one", form="words")]}, r"evidence\[0\].data"),
        ({"evidence": [evidence("one", data={"base": PLACED})]}, r"evidence\[0\].data.candidate"),
        ({"action": {"verb": "avoid", "what": {"passes": "all"}}}, "action.what.passes"),
        ({"action": {"verb": "avoid", "what": {}}}, "action.what"),
    ],
)
def test_what_does_not_fit_is_named_by_its_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError, match=field):
        finding_from_json(value(**changes))


def test_confirmed_without_raw_evidence_of_two_runs_does_not_load() -> None:
    for found in ([], [evidence("one")], [evidence("one"), evidence("one")]):
        with pytest.raises(RequestError, match="`status` cannot be `confirmed`"):
            finding_from_json(value(status="confirmed", evidence=found))
    assert finding_from_json(value(status="confirmed", evidence=TWICE)).status == "confirmed"


def test_words_and_evidence_against_confirm_nothing() -> None:
    described = [evidence(run, form="words", data=None) for run in ("one", "two")]
    against = [evidence(run, speaks="against") for run in ("one", "two")]
    other_kind = [evidence(run, kind="accuracy") for run in ("one", "two")]
    for found in (described, against, other_kind):
        with pytest.raises(RequestError, match="has it from 0"):
            finding_from_json(value(status="confirmed", evidence=found))


def test_simulated_and_sequential_latency_replicates_nothing() -> None:
    pair = {
        "base": "h0",
        "candidate": "h1",
        "claim": "faster",
        "sweep": {"order": "sequential", "configs": [{"id": "h0"}, {"id": "h1"}]},
    }
    recorded = [evidence(run, kind="latency", form="medians", data=pair) for run in ("one", "two")]
    simulated = [samples(run, simulated=True) for run in ("one", "two")]
    for found in (recorded, simulated):
        assert "interleaved on a real device" in str(
            missing_evidence(finding_from_json(value(claim="latency", evidence=found)), "replicated")
        )


def test_simulated_placement_confirms_a_placement_finding() -> None:
    found = [evidence(run, simulated=True) for run in ("one", "two")]
    assert promote(finding_from_json(value(evidence=found)), "confirmed").status == "confirmed"


def test_latency_also_needs_a_mechanism_with_its_source() -> None:
    measured = value(claim="latency", evidence=[samples("one"), samples("two")])
    assert promote(finding_from_json(measured), "replicated").status == "replicated"
    with pytest.raises(CheckFailed, match="mechanism"):
        promote(finding_from_json(measured), "confirmed")
    known = {**measured, "mechanism": {"why": "kernels", "confirmed": True, "source": "profile"}}
    assert promote(finding_from_json(known), "confirmed").status == "confirmed"


def test_contested_needs_something_against_it() -> None:
    with pytest.raises(RequestError, match="no evidence against it"):
        finding_from_json(value(status="contested"))
    assert finding_from_json(value(status="retracted", falsified_by=["its own data"])).status == "retracted"


def test_an_action_binds_the_ep_it_was_seen_on() -> None:
    with pytest.raises(RequestError, match="`scope.ep` is missing"):
        finding_from_json(value(scope={}, action={"verb": "avoid", "what": {"compile": True}}))


def test_levels_ask_for_models_types_and_predictions() -> None:
    def on(*models: tuple[str, str]) -> list[dict[str, Any]]:
        return [evidence(f"run {i}", model=m, family=f) for i, (m, f) in enumerate(models)]

    assert missing_evidence(finding_from_json(value()), "L1") == "nothing was observed"
    two = finding_from_json(value(evidence=on(("a", "bert"), ("b", "vit"))))
    assert missing_evidence(two, "L2") is None
    assert "two models of one type" in str(missing_evidence(two, "L3"))
    assert missing_evidence(finding_from_json(value(evidence=on(("a", "bert"), ("b", "bert")))), "L3") is None
    three = value(evidence=on(("a", "bert"), ("b", "vit"), ("c", "resnet")))
    assert missing_evidence(finding_from_json(three), "L4") is None
    assert "held-out" in str(missing_evidence(finding_from_json(three), "L5"))
    for wrong, fine in ((0, True), (2, False)):
        held = {**three, "held_out": {"cases": 40, "false_positives": wrong}}
        assert (missing_evidence(finding_from_json(held), "L5") is None) is fine
