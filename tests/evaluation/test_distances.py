from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from winml.modelkit.evaluation.distance_report import DistanceReport, MostSpread
from winml.modelkit.evaluation.distances import distance
from winml.modelkit.evaluation.saved_outputs import Writer

Runs = list[dict[str, Any]]


def written(path: Path, samples: list[Runs]) -> dict[str, Any]:
    with Writer(path) as writer:
        for runs in samples:
            writer.write([{name: np.asarray(value) for name, value in run.items()} for run in runs])
    return {"path": str(path), "outputs": list(samples[0][0])}


def apart(folder: Path, candidate: list[Runs], reference: list[Runs]) -> DistanceReport:
    sides = {"candidate": written(folder / "c", candidate), "reference": written(folder / "r", reference)}
    return distance({**sides, "samples": len(candidate), "keep": None}, None)


def test_the_worst_and_the_median_of_all_runs_are_kept(tmp_path: Path) -> None:
    reference: list[Runs] = [[{"y": np.float32([3, 4])}], [{"y": np.float32([3, 4])}], [{"y": np.float32([3, 4])}]]
    candidate: list[Runs] = [[{"y": np.float32([3, 4])}], [{"y": np.float32([3, 4.5])}], [{"y": np.float32([4, 3])}]]
    (found,) = apart(tmp_path, candidate, reference).outputs
    assert (found.runs, found.equal, found.incomparable) == (3, 1, 0)
    assert found.cosine.min == pytest.approx(24 / 25)
    assert found.max_abs == MostSpread(max=1.0, median=0.5)
    assert found.sqnr_db.min == pytest.approx(10 * np.log10(25 / 2))


def test_equal_outputs_have_no_noise_to_compare_with(tmp_path: Path) -> None:
    samples: list[Runs] = [[{"y": np.float32([1, 2])}]]
    (found,) = apart(tmp_path, samples, samples).outputs
    assert (found.equal, found.sqnr_db, found.max_abs.max) == (1, None, 0.0)


def test_what_cannot_be_compared_is_counted(tmp_path: Path) -> None:
    reference: list[Runs] = [[{"y": np.float32([1, 2])}], [{"y": np.float32([1, 2])}, {"y": np.float32([1, 2])}]]
    candidate: list[Runs] = [[{"y": np.float32([np.nan, 2])}], [{"y": np.float32([1, 2])}]]
    (found,) = apart(tmp_path, candidate, reference).outputs
    assert (found.runs, found.equal, found.incomparable) == (3, 1, 2)


def test_outputs_are_matched_by_name_and_by_position_only_without_any(tmp_path: Path) -> None:
    value = np.float32([1, 2])
    named = apart(tmp_path, [[{"b": value, "a": value, "x": value}]], [[{"a": value, "b": 5 * value}]])
    assert [(d.output, d.equal) for d in named.outputs] == [("b", 0), ("a", 1)]
    assert "only one of the two models has are not compared: x" in named.notes[0]
    placed = apart(tmp_path, [[{"c": value}]], [[{"a": value}]])
    assert placed.outputs[0].equal == 1
    assert "by position" in placed.notes[0]


def test_classes_and_texts_are_equal_or_not(tmp_path: Path) -> None:
    mine: list[Runs] = [[{"class": np.int64([1, 2]), "name": np.asarray(["a", "bb"], object)}]]
    theirs: list[Runs] = [[{"class": np.int64([1, 3]), "name": np.asarray(["a", "bb"], object)}]]
    number, text = apart(tmp_path, mine, theirs).outputs
    assert (number.cosine.min, number.max_abs, text.equal) == (0.5, None, 1)


def test_outputs_of_nothing_but_nan_are_equal_and_agree_in_nothing(tmp_path: Path) -> None:
    runs: list[Runs] = [[{"y": np.float32([np.nan, np.nan])}], [{"y": np.float32([np.nan, 2])}]]
    (found,) = apart(tmp_path, runs, runs).outputs
    assert (found.equal, found.incomparable) == (2, 1)
