"""The terms of model support: tiers, rungs, levels and verdicts.

A contribution says with what *effort* a model was supported, which *goal* it committed to and what its *outcome* is.
Goals are the rungs of a ladder; artifact levels say what is known of a built file.
"""

from __future__ import annotations

from typing import Literal, get_args

from winml.modelkit.core.dataclass import dataclass

Effort = Literal["L0", "L0*", "L1-light", "L1", "L2"]
"""A recipe by a template, a recipe that owes one, a subclass of an export config, a file of its own, shared code."""
Goal = Literal["L0", "L1", "L2", "L3"]
"""Builds and is structurally right, is measured on a target, agrees with its reference, reaches its task metric."""
Outcome = Literal["L0", "L1", "L2"]
"""Recipe with report, also code and knowledge, also a task family."""
ArtifactLevel = Literal["A1", "A2", "A3", "A4", "A5"]
"""Loads, has the shapes of its source, agrees with its reference, reaches its metric, runs on other targets too."""
Verdict = Literal["APPROVE", "REQUEST_CHANGES", "REJECT"]
"""The outcome of a review."""
RungVerdict = Literal["PASS", "FAIL", "CLI-BLOCKED", "HOST-BLOCKED", "TIMEOUT", "DEFERRED"]

EFFORTS: tuple[Effort, ...] = get_args(Effort)
GOALS: tuple[Goal, ...] = get_args(Goal)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
ARTIFACT_LEVELS: tuple[ArtifactLevel, ...] = get_args(ArtifactLevel)
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
RUNG_VERDICTS: tuple[RungVerdict, ...] = get_args(RungVerdict)

LEVEL_OF_GOAL: dict[Goal, tuple[ArtifactLevel, ...]] = {
    "L0": ("A1", "A2"),
    "L1": ("A5",),
    "L2": ("A3",),
    "L3": ("A4",),
}
"""The levels of an artifact that a rung proves; A5 counts targets, and L1 gives it one."""


@dataclass(frozen=True, kw_only=True)
class SupportResult:
    """What every action of `winml support` returns."""

    schema: Literal["winml/support/1"] = "winml/support/1"
    ok: Literal[True] = True
