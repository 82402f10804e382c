"""The cache of parts with fixed shapes."""

from __future__ import annotations

import numpy as np

from winml.modelkit.session.composite import _fit_past


def test_the_newest_words_of_a_cache_stay() -> None:
    cache = np.arange(6, dtype=np.float32).reshape(1, 1, 6, 1)
    assert _fit_past(cache, 4).ravel().tolist() == [2, 3, 4, 5]


def test_a_short_cache_is_filled_up_before_its_words() -> None:
    cache = np.arange(1, 3, dtype=np.float32).reshape(1, 1, 2, 1)
    assert _fit_past(cache, 4).ravel().tolist() == [0, 0, 1, 2]
