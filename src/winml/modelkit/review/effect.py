"""What a recipe changes, measured against the default build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from winml.modelkit.core.sections import choice, key, number, optional, text
from winml.modelkit.review.derive import Numbers
from winml.modelkit.review.plan import WHOLE, Subject
from winml.modelkit.store import digest

LEAST_GAIN_PCT = 5.0
"""Less is no reason for a recipe."""


@dataclass(frozen=True)
class Effect:
    """One measured difference between the default and the recipe."""

    kind: str = key(choice("builds", "size"))
    """The default does not build, or the recipe's artifacts are smaller."""
    because: str = key(text)
    gain_pct: float | None = key(optional(number(-1e9, 100)), None)


def differs(default: Sequence[Mapping[str, Any]], recipe: Sequence[Mapping[str, Any]]) -> bool:
    """Whether configs differ in anything but where the model lies."""
    return _identity(default) != _identity(recipe)


def _identity(configs: Sequence[Mapping[str, Any]]) -> str:
    return digest.of_json([{k: v for k, v in config.items() if k != "model"} for config in configs])


def measured(subject: Subject, exits: Mapping[str, int | None], numbers: Mapping[str, Numbers]) -> Effect | None:
    """The effect that evidence shows; None when it shows none."""
    if exits.get("build-recipe") != 0:
        return None
    if exits.get("build-default") != 0:
        code = exits.get("build-default")
        return Effect("builds", f"the default build ends with {'no answer' if code is None else f'exit {code}'}")
    before = _bytes(subject, "default", numbers)
    after = _bytes(subject, "recipe", numbers)
    if before is None or after is None:
        return None
    gain = 100.0 * (before - after) / before
    if gain < LEAST_GAIN_PCT:
        return None
    return Effect("size", f"{after:.0f} bytes instead of {before:.0f}", gain)


def _bytes(subject: Subject, name: str, numbers: Mapping[str, Numbers]) -> float | None:
    ids = [f"inspect-{name}" if part == WHOLE else f"inspect-{name}-{part}" for part in subject.part_names]
    found = [numbers.get(step, {}).get("bytes") for step in ids]
    return None if None in found else float(sum(b for b in found if b is not None))
