"""How far two models agree: tokens they generate, and their next tokens on the same text."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from winml.modelkit.core.errors import DataError
from winml.modelkit.core.values import to_json
from winml.modelkit.evaluation.generation.agreement import DivergenceRequest, compare_tokens, diverge
from winml.modelkit.evaluation.generation.saved_logits import MOST_BYTES, TEXT_BYTES, LogitWriter, rows_of_text


def _saved(path: Path, texts: list[tuple[list[int], list[list[float]]]]) -> str:
    with LogitWriter(path, 8) as writer:
        for ids, rows in texts:
            writer.write(np.asarray(ids), [np.asarray(rows, np.float32)])
    return str(path)


def _asked(candidate: str, reference: str, samples: int) -> dict[str, object]:
    found: dict[str, object] = to_json(DivergenceRequest(candidate=candidate, reference=reference, samples=samples))
    return found


def test_divergence_is_that_of_the_formula(tmp_path: Path) -> None:
    right = [math.log(0.5), math.log(0.25), math.log(0.25)]
    mine = [0.0, 0.0, 0.0]
    candidate = _saved(tmp_path / "a", [([0, 1, 2], [mine, right]), ([0, 1], [right])])
    reference = _saved(tmp_path / "b", [([0, 1, 2], [right, right]), ([0, 1], [right])])
    found = diverge(_asked(candidate, reference, 2), None)
    expected = 0.5 * math.log(1.5) + 2 * 0.25 * math.log(0.75)
    assert found.divergence == pytest.approx((expected, 0.0), abs=1e-7)
    assert found.places == (2.0, 1.0)
    assert found.same == (2.0, 1.0)


def test_what_is_not_a_number_is_unknown_and_other_tokens_are_refused(tmp_path: Path) -> None:
    reference = _saved(tmp_path / "b", [([0, 1], [[0.0, 1.0]])])
    broken = _saved(tmp_path / "a", [([0, 1], [[math.nan, 1.0]])])
    assert diverge(_asked(broken, reference, 1), None).divergence == (None,)
    other = _saved(tmp_path / "c", [([0, 2], [[0.0, 1.0]])])
    with pytest.raises(DataError, match="different tokens"):
        diverge(_asked(other, reference, 1), None)
    larger = _saved(tmp_path / "d", [([0, 1], [[0.0, 1.0, 2.0]])])
    with pytest.raises(DataError, match=r"different sizes \(3 tokens, and 2 of the reference\)"):
        diverge(_asked(larger, reference, 1), None)


def test_equal_tokens_are_counted_place_by_place() -> None:
    found = compare_tokens([[1, 2, 3, 4], [5, 6], [7], [1, 2]], [[1, 2, 9, 4], [5, 6], [8], [1, 2, 3, 4]])
    assert found == {"equal": [3.0, 2.0, 0.0, 2.0], "places": [4.0, 2.0, 1.0, 4.0], "alike": [2.0, 2.0, 0.0, 2.0]}


@pytest.mark.parametrize(("vocabulary", "texts"), [(256, 1), (32_000, 100), (151_936, 10_000), (2**20, 10**6)])
def test_what_is_kept_has_a_limit(vocabulary: int, texts: int) -> None:
    rows = rows_of_text(vocabulary, texts)
    assert rows >= 1
    assert rows * 4 * vocabulary <= TEXT_BYTES
    assert rows == 1 or rows * 4 * vocabulary * texts <= MOST_BYTES
