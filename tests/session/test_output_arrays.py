from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from winml.modelkit.session.output_arrays import as_array


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.ones((2, 2)), [[1, 1], [1, 1]]),
        ([{"b": 2.0, "a": 1.0}, {"a": 3.0, "b": 4.0}], [[1, 2], [3, 4]]),
        ([np.array([1, 2]), np.array([3, 4])], [[1, 2], [3, 4]]),
        ([np.array([1, 2]), np.array([[3]])], [1, 2, 3]),
        ([], []),
        (None, []),
    ],
)
def test_every_form_of_output_becomes_one_array(value: Any, expected: list[Any]) -> None:
    assert as_array(value).tolist() == expected
