"""The search for layers that are right apart and wrong together."""

from __future__ import annotations

from winml.modelkit.accuracy.fused import find_fused
from winml.modelkit.accuracy.noise import Noise

BAD, GOOD = (Noise(sqnr_db=ratio, cosine=0.9, equal=False, not_finite=0) for ratio in (-10.0, 40.0))


def search(needed: set[int], operators: list[str], tries: int) -> tuple[tuple[int, ...], int]:
    asked = 0

    def heals(layers: tuple[int, ...]) -> Noise | None:
        nonlocal asked
        asked += 1
        return GOOD if needed <= set(layers) else None

    return find_fused(operators, BAD, GOOD, heals, tries).layers, asked


def test_the_layers_that_are_needed_are_left() -> None:
    operators = ["Conv", "Relu", "Add", "MatMul"] * 8
    assert search({6}, operators, 40)[0] == (6,)
    assert search({6, 22}, operators, 60)[0] == (6, 22)


def test_sessions_are_limited() -> None:
    layers, asked = search({0, 9, 17}, ["Conv"] * 32, 5)
    assert asked == 5
    assert {0, 9, 17} <= set(layers)
