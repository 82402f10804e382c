"""The fewest layers whose values, as outputs, keep an EP from computing neighbours as one and wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.core.dataclass import dataclass


@dataclass(frozen=True)
class Fused:
    """Layers that the EP computes wrongly together and right apart."""

    layers: tuple[int, ...]
    before: Noise
    after: Noise


def find_fused(
    operators: Sequence[str],
    before: Noise,
    exposed: Noise,
    heals: Callable[[tuple[int, ...]], Noise | None],
    tries: int,
) -> Fused:
    """As few layers as `tries` sessions find for which `heals` says how near the outputs are; None if they are not.

    What is not needed is taken away, first whole kinds of operators, then parts of what is left.
    """
    chosen, found, left = tuple(range(len(operators))), exposed, tries

    def reduce(groups: list[tuple[int, ...]]) -> bool:
        """Take groups away that are not needed; whether there were any."""
        nonlocal chosen, found, left
        before_these = chosen
        for group in groups:
            rest = tuple(index for index in chosen if index not in group)
            if not rest or len(rest) == len(chosen) or left <= 0:
                continue
            left -= 1
            noise = heals(rest)
            if noise is not None:
                chosen, found = rest, noise
        return len(chosen) < len(before_these)

    kinds: dict[str, tuple[int, ...]] = {}
    for index, operator in enumerate(operators):
        kinds[operator] = (*kinds.get(operator, ()), index)
    reduce(sorted(kinds.values(), key=len, reverse=True))
    parts = 2
    while left > 0 and parts <= 2 * len(chosen):
        size = max(1, -(-len(chosen) // parts))
        if not reduce([chosen[start : start + size] for start in range(0, len(chosen), size)]) or size == 1:
            parts *= 2
    return Fused(layers=chosen, before=before, after=found)
