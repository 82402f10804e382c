"""How far two values of one output are apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from winml.modelkit.core.distance import Distance


def distance_of(a: Any, b: Any) -> Distance:
    """How far two outputs are apart; numbers that are not floats (classes, masks) are equal or they are not."""
    if a.shape != b.shape or a.dtype.kind != b.dtype.kind:
        return Distance(same_shape=False, equal=False, max_abs=None, cosine=None, relative=None)
    if a.dtype.kind not in "fc":
        same = float((a == b).mean()) if a.size else 1.0
        return Distance(same_shape=True, equal=same == 1.0, max_abs=None, cosine=same, relative=1.0 - same)
    if np.array_equal(a, b, equal_nan=True):
        return Distance(same_shape=True, equal=True, max_abs=0.0, cosine=1.0, relative=0.0)
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    size, norms = float(np.linalg.norm(x)), float(np.linalg.norm(x) * np.linalg.norm(y))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return Distance(same_shape=True, equal=False, max_abs=None, cosine=None, relative=None)
    difference = x - y
    return Distance(
        same_shape=True,
        equal=False,
        max_abs=float(np.abs(difference).max()),
        cosine=float(x @ y / norms) if norms else None,
        relative=float(np.linalg.norm(difference)) / size if size else None,
    )
