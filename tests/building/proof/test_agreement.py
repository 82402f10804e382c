from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from winml.modelkit.building.proof.agreement import judge
from winml.modelkit.building.proof.operations import distance, distances

X = np.linspace(-1, 1, 50).astype(np.float32)


def told(found: Any, expected: Any = X) -> str:
    """The answer for one output `y` with a limit of 0.95."""
    return judge([distance("y", np.asarray(expected), np.asarray(found))], 0.95).answer


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (X, "reached"),
        (X + 0.01, "reached"),
        (-X, "missed"),
        (X * 3, "missed"),
        (X * 0, "missed"),
        (np.where(X > 0, np.nan, X), "missed"),
    ],
    ids=["equal", "near", "opposite", "of another scale", "all zero", "nan"],
)
def test_an_output_is_as_the_source_has_it_or_it_is_not(found: Any, answer: str) -> None:
    assert told(found) == answer


def test_what_the_source_has_no_number_for_is_not_compared() -> None:
    masked = np.where(X > 0.5, -np.inf, X)
    assert told(np.where(X > 0.5, -3e38, X), masked) == "reached"


def test_an_output_that_is_zero_in_the_source_says_nothing() -> None:
    assert told(X, X * 0) == "unknown"
    assert told(X * 1e-9, X * 0) == "unknown", "equal, but a model that computes nothing would be, too"
    none, some = (distance(name, x, x) for name, x in (("none", X * 0), ("some", X)))
    assert judge([none, some], 0.95).answer == "reached"


def test_classes_are_equal_or_nobody_can_tell() -> None:
    classes = np.arange(10)
    assert told(classes, classes) == "reached"
    assert told(classes % 9, classes) == "unknown"


def test_the_output_that_agrees_least_is_named() -> None:
    outputs = [distance(n, X, y) for n, y in (("good", X), ("bad", -X), ("better", X + 0.1))]
    found = judge(outputs, 0.95)
    assert (found.answer, found.output) == ("missed", "bad")
    assert "`bad` has a cosine of -1.000" in str(found.reason)


def test_an_output_of_another_shape_or_none_at_all_is_missed() -> None:
    for other in (X[:10], None):
        assert judge(list(distances({"y": [(X, other)]})), 0.5).answer == "missed"
