from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

from family_zoo import dinov2, vit
from graph_values import make_facts
from model_zoo import saved
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import ignore
from winml.modelkit.core.location import knowledge_root
from winml.modelkit.core.metric_source import MetricSource
from winml.modelkit.ep.probing import resolve
from winml.modelkit.evaluation.custom_metric import make_metric
from winml.modelkit.knowledge import rules
from winml.modelkit.knowledge.findings import Knowledge
from winml.modelkit.search.prepare import AutoconfigRequest, check_request, measuring_notes, prepare


def score(outputs: Any, sample: Any) -> float:
    return 1.0


CUSTOM = make_metric(score)
UNKNOWN = MetricSource(function="score", file=None, digest=None)
DATA = DataSection("test.npz")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "image-classification"}, "a task needs labelled data"),
        ({"max_drop": 0.1}, "a limit for the metric needs labelled data"),
        ({"max_metric": 3.0}, "a limit for the metric needs labelled data"),
        ({"custom": CUSTOM, "max_drop": None}, "a metric needs labelled data"),
        ({"task_options": {"threshold": "0.5"}}, "`--task-option` needs labelled data"),
        ({"data": DATA, "custom": CUSTOM}, "a metric of your own needs a limit: nothing says how far `score` may"),
        ({"data": DATA, "custom": CUSTOM, "max_drop": -1.0}, "`--max-drop` must be a number"),
        ({"data": DATA, "custom": CUSTOM, "max_metric": 1.0}, "has no maximum"),
        (
            {"data": DATA, "custom": replace(CUSTOM, source=UNKNOWN), "max_drop": 1.0, "resume": True},
            "the text of `score` is unknown",
        ),
        ({"knowledge": "nowhere"}, "folder not found: `nowhere`"),
    ],
)
def test_what_could_not_count_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        check_request(AutoconfigRequest("model.onnx", "out", **given))


def test_a_target_that_is_named_twice_in_two_ways_is_refused() -> None:
    with pytest.raises(RequestError, match="has a target twice"):
        prepare(AutoconfigRequest("model.onnx", "out", targets=("cpu", "CPU")), ignore)


@pytest.mark.qnn
def test_what_is_known_about_taking_times_is_told_where_times_are_taken() -> None:
    target = resolve("qnn/npu", None, None).target
    findings = Knowledge(knowledge_root()).findings
    advice = rules.find_advice(findings, make_facts({"Conv": 1}), target)
    told = " ".join(measuring_notes(advice, findings, "latency"))
    assert "npu-029" in told
    assert "npu-018" not in told, "it holds on every target"
    assert measuring_notes(advice, findings, "size") == ()


@pytest.mark.qnn
@pytest.mark.parametrize(("make", "acts"), [(dinov2, True), (vit, False)])
def test_the_family_is_recognised_from_the_graph_alone(
    tmp_path: Path, make: Callable[[], onnx.ModelProto], acts: bool
) -> None:
    """The headline of the first search is tried first for a graph like DINOv2's, without any document beside it."""
    model = saved(make(), tmp_path / "model.onnx")
    start = prepare(AutoconfigRequest(str(model), "out", targets=("qnn/npu",)), ignore)
    assert start.family.source == "graph"
    assert ("dinov2" in start.family.names) == acts
    favoured = [n for n in start.insight.notes if n.source == "npu-001"]
    assert [(n.kind, n.knob, n.level) for n in favoured] == ([("boost", "optimize.opset", "21")] if acts else [])
