"""Misspelt words are wrong requests, never findings about a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit import sample
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.recipe import BuildPart
from winml.modelkit.ep.precision import PRECISIONS
from winml.modelkit.support.batch import produce_all
from winml.modelkit.support.probe import ProbeRequest, probe
from winml.modelkit.support.produce import ProduceRequest
from winml.modelkit.support.review.derive import COSINE


def _never(event: object) -> None:
    raise AssertionError(event)


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"targets": ("cpu", "foo")}, "unknown execution provider `foo`"),
        ({"build": BuildPart(precision="fp17")}, "unknown precision `fp17`"),
    ],
)
def test_produce_refuses_words_it_does_not_know_before_anything_runs(
    tmp_path: Path, words: dict[str, object], told: str, models: int
) -> None:
    model = str(sample.MODEL)
    request = ProduceRequest(model, str(tmp_path / "out"), **words)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=told):
        produce_all(request, (model,) * models, _never)
    assert not (tmp_path / "out").exists()


def test_probe_does_not_blame_the_model_for_a_misspelt_target() -> None:
    with pytest.raises(RequestError, match="unknown execution provider `foo`"):
        probe(ProbeRequest(str(sample.MODEL), ("foo",)), _never)


def test_every_precision_that_can_be_built_has_a_threshold() -> None:
    assert set(COSINE) == set(PRECISIONS)
