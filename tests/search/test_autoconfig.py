"""A search that is resumed is judged as before, or refused in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit import __version__
from winml.modelkit.core.config import DataSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.events import ignore
from winml.modelkit.core.metric_source import MetricSource
from winml.modelkit.core.target import Target
from winml.modelkit.evaluation.custom_metric import make_metric
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.search.autoconfig import autoconfig
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.records import JOURNAL, GateLimits, Identity, StudyRecord, describe_limits
from winml.modelkit.store.journal import Journal

GATE = GateLimits(
    kind="task", data=None, task=None, min_metric=None, max_drop=2.0, min_agreement=None, judge="interval",
    digest="sha256:1",
)  # fmt: skip


def score(outputs: Any, sample: Any) -> float:
    return 1.0


OWN = make_metric(score)


def search_in(folder: Path, judged_by: MetricSource | None) -> Path:
    identity = Identity(
        model="sha256:2", targets=(Target("cpu", "cpu"),), objective="size", baseline={"target": "cpu"},
        calibration=None, gate=replace(GATE, custom_metric=judged_by), knobs={}, inputs=InputSettings(), versions={},
    )  # fmt: skip
    folder.mkdir()
    with Journal(folder / JOURNAL) as journal:
        journal.append(StudyRecord(winml=__version__, identity=identity))
        journal.append({"kind": "trial"})
    return folder


@pytest.mark.parametrize(
    ("before", "given", "message"),
    [
        (OWN.source, None, "this search is judged by the function `score`, which its journal only names"),
        (None, OWN, "this search is judged by no function of your own"),
        (replace(OWN.source, function="other"), OWN, "this search is judged by the function `other`"),
        (replace(OWN.source, digest="sha256:" + "0" * 64), OWN, "the text of `score` has changed since"),
    ],
)
def test_a_function_of_the_user_is_given_again_or_the_search_is_not_resumed(
    tmp_path: Path, before: MetricSource | None, given: Any, message: str
) -> None:
    request = AutoconfigRequest(
        "no.onnx", str(search_in(tmp_path / "s", before)), data=DataSection("test.npz"), custom=given, max_drop=2.0,
        resume=True,
    )  # fmt: skip
    with pytest.raises(RequestError, match=message):
        autoconfig(request, ignore)


def test_the_limits_of_a_function_are_told_in_a_sentence() -> None:
    own = MetricSource(function="score", file="my_metric.py", digest=None)
    assert describe_limits(replace(GATE, max_metric=0.5, custom_metric=own)) == (
        "the metric by `score` of `my_metric.py` must be at most 0.5 and may drop by at most 2"
    )
    assert describe_limits(replace(GATE, metric="f1")) == "f1 may drop by at most 2"
