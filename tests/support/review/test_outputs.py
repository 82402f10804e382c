"""Outputs that were kept, held against the distances that are claimed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from winml.modelkit.core.values import to_json
from winml.modelkit.evaluation.distances import distance
from winml.modelkit.evaluation.saved_outputs import Writer
from winml.modelkit.support.review.outputs import check
from winml.modelkit.support.review.outputs_question import OutputsAnswer

LARGE = np.random.default_rng(0).standard_normal(50_000).astype(np.float32)


def _made(folder: Path, candidate: Any, reference: Any) -> dict[str, Any]:
    """What `review.outputs` is asked about two runs of a model and its reference."""
    folder.mkdir()
    sides = {}
    for side, value in (("candidate", candidate), ("reference", reference)):
        with Writer(folder / side) as writer:
            for scale in (1, 2):
                writer.write([{"y": value * np.float32(scale)}])
        sides[side] = {"path": str(folder / side), "outputs": ["y"]}
    file = folder / "outputs.npz"
    found = to_json(distance({**sides, "samples": 2, "keep": str(file)}, None))
    return {"file": str(file), "again": None, "arrays": found["kept"]["arrays"], "distance": found["outputs"]}


@pytest.mark.parametrize("value", [np.float32([1, 2, 3]), LARGE])
def test_what_was_kept_gives_what_is_claimed(tmp_path: Path, value: Any) -> None:
    args = _made(tmp_path / "a", value + np.float32(0.1), value)
    assert check(args, None) == OutputsAnswer(problems=())
    assert check({**args, "again": args["file"]}, None) == OutputsAnswer(problems=())


def test_a_large_output_whose_chosen_values_are_further_apart_is_caught(tmp_path: Path) -> None:
    args = _made(tmp_path / "a", LARGE + np.float32(0.1), LARGE)
    args["distance"][0]["max_abs"]["max"] = 0.01
    assert "further apart" in check(args, None).problems[0]


def test_outputs_that_another_run_does_not_give_are_caught(tmp_path: Path) -> None:
    """A forger's outputs that agree with each other, and with nothing that was computed."""
    honest = _made(tmp_path / "a", LARGE, LARGE)
    forged = _made(tmp_path / "b", LARGE[::-1].copy(), LARGE[::-1].copy())
    problems = check({**forged, "again": honest["file"]}, None).problems
    assert len(problems) == 4
    assert "differs from another run" in problems[0]


def test_a_description_of_another_form_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    args = _made(tmp_path / "a", LARGE, LARGE)
    args["arrays"]["candidate.0.0"] = {"dtype": "no such type", "shape": [1], "whole": True, "digest": ""}
    assert "is not saved as required" in check(args, None).problems[0]
