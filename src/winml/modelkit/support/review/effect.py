"""What a recipe changes, measured against the default build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import AtLeast, AtMost, Text
from winml.modelkit.store import digest
from winml.modelkit.support.review import derive, times
from winml.modelkit.support.review.plan import Step, Subject, compare_step, input_step, inspect_step
from winml.modelkit.support.review.results import ConfigEvidence, Result, Results

LEAST_GAIN_PCT = 5.0
"""A smaller reduction in size does not justify a recipe."""

Exits = Mapping[str, int | None]


@dataclass(frozen=True)
class Effect:
    """One measured difference between the default and the recipe."""

    kind: Literal["builds", "size", "latency"]
    """The default does not build, or the recipe's artifacts are smaller, or they take less time."""
    because: Text
    gain_pct: Annotated[float, AtLeast(-1e9), AtMost(100)] | None


def differs(default: Sequence[Result | None], recipe: Sequence[Result | None]) -> bool:
    """Whether configs differ in more than the path of the model; one that could not be made differs from all others."""

    def identity(results: Sequence[Result | None], name: str) -> str:
        found: list[Any] = [r.settings if isinstance(r, ConfigEvidence) else {"error": name} for r in results]
        return digest.of_json(found)

    return identity(default, "default") != identity(recipe, "recipe")


def find_effect(subject: Subject, exits: Exits, results: Results) -> Effect | None:
    """The effect that evidence shows; None when it shows none. Time counts only where nothing else shows one."""
    if exits.get("build-recipe") != 0:
        return None
    if exits.get("build-default") != 0:
        code = exits.get("build-default")
        return Effect("builds", f"the default build {'timed out' if code is None else f'exited with {code}'}", None)
    return _size(subject, results) or _latency(subject, results)


def needs_compare(step: Step, subject: Subject, exits: Exits, results: Results) -> bool:
    """Whether a comparison is required: both build, inputs could be made, and nothing else shows an effect."""
    built = exits.get("build-default") == exits.get("build-recipe") == 0
    return built and exits.get(input_step(step.part)) == 0 and _size(subject, results) is None


def explain_none(subject: Subject, results: Results) -> str:
    """Why there is no effect, from what was measured."""
    compared = [times.describe(part, results.get(compare_step(part))) for part in subject.part_names]
    return "; ".join([f"the artifacts are not at least {LEAST_GAIN_PCT:g} % smaller", *compared])


def _size(subject: Subject, results: Results) -> Effect | None:
    before, after = (_bytes(subject, name, results) for name in ("default", "recipe"))
    if not before or after is None:
        return None
    gain = 100.0 * (before - after) / before
    if gain < LEAST_GAIN_PCT:
        return None
    return Effect("size", f"{after:.0f} bytes instead of {before:.0f}", gain)


def _bytes(subject: Subject, name: str, results: Results) -> float | None:
    ids = [inspect_step(name, part) for part in subject.part_names]
    found = [derive.numbers(results.get(step)).get("bytes") for step in ids]
    return None if None in found else float(sum(b for b in found if b is not None))


def _latency(subject: Subject, results: Results) -> Effect | None:
    """Less time for at least one part, and more for none; a part with an unknown result might take more."""
    of_parts = {part: results.get(compare_step(part)) for part in subject.part_names}
    paces = {part: times.pace(result) for part, result in of_parts.items()}
    faster = [part for part, pace in paces.items() if pace == "faster"]
    if not faster or any(pace in ("slower", "unknown") for pace in paces.values()):
        return None
    gains = [derive.numbers(of_parts[part])["gain_pct"] for part in faster]
    others = "" if len(faster) == len(paces) else "; no other part takes more"
    return Effect("latency", f"time of {', '.join(faster)} on {subject.targets[0]}{others}", min(gains))
