"""The ladder: rungs from verdicts of commands, and the rules they must follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.support import GOALS, ArtifactLevel, Goal, RungVerdict
from winml.modelkit.core.values import Names, Text
from winml.modelkit.support.review.plan import Step

_WORST: tuple[RungVerdict, ...] = ("FAIL", "TIMEOUT", "HOST-BLOCKED", "CLI-BLOCKED", "DEFERRED", "PASS")


_TELLING = ("inspect", "perf", "export", "parity", "metric")


@dataclass(frozen=True)
class StepVerdict:
    """A command of the plan with its verdict and reason."""

    step: Step
    verdict: RungVerdict
    reason: str


@dataclass(frozen=True)
class Rung:
    """A row of the ladder table."""

    rung: Goal
    verdict: RungVerdict
    reason: Text
    steps: Names
    """The commands it is based on."""


def build_ladder(steps: Sequence[StepVerdict], goal: Goal) -> tuple[Rung, ...]:
    """Every rung: the verdict of its commands, or why it has none."""
    rungs: list[Rung] = []
    for name in GOALS:
        stopped = next((r.rung for r in rungs if r.verdict == "FAIL"), None)
        mine = [j for j in steps if j.step.rung == name]
        if stopped is not None:
            rungs.append(Rung(name, "DEFERRED", f"stopped by the FAIL of {stopped}", ()))
        elif GOALS.index(name) > GOALS.index(goal):
            rungs.append(Rung(name, "DEFERRED", f"above the committed goal {goal}", ()))
        elif not mine:
            reason = "no labelled data was given" if name == "L3" else "nothing was built to run it on"
            rungs.append(Rung(name, "DEFERRED", reason, ()))
        else:
            rungs.append(_rung(name, mine))
    return tuple(rungs)


def _rung(name: Goal, mine: Sequence[StepVerdict]) -> Rung:
    steps = tuple(j.step.id for j in mine)
    deciding = _best_target(mine) if name == "L1" else list(mine)
    worst = min(deciding, key=lambda j: _WORST.index(j.verdict))
    failures = [f"{j.step.id}: {j.reason}" for j in mine if j.verdict != "PASS"]
    if worst.verdict == "PASS":
        passes = [j.reason for j in mine if j.verdict == "PASS" and j.step.purpose in _TELLING]
        return Rung(name, "PASS", "; ".join([*(passes or [f"{name} passed"]), *failures]), steps)
    return Rung(name, worst.verdict, "; ".join(failures), steps)


def _best_target(mine: Sequence[StepVerdict]) -> list[StepVerdict]:
    """The commands of the best target: one measured target is enough."""
    targets = list(dict.fromkeys(j.step.target for j in mine))
    made = [j for j in mine if j.step.purpose == "inputs"]
    groups = [[*made, *(j for j in mine if j.step.target == t and j.step.purpose == "perf")] for t in targets]
    return max(groups, key=lambda group: min(_WORST.index(j.verdict) for j in group))


def find_reached(rungs: Iterable[Rung]) -> Goal | None:
    """The highest rung with a PASS; None when nothing passed."""
    passed: list[Goal] = [name for name in GOALS for rung in rungs if rung.rung == name and rung.verdict == "PASS"]
    return passed[-1] if passed else None


def find_problems(rungs: Sequence[Rung], goal: Goal) -> list[str]:
    """What contradicts the rules of the ladder."""
    if [rung.rung for rung in rungs] != list(GOALS):
        return [f"the ladder must have the rungs {', '.join(GOALS)} in order"]
    found: list[str] = []
    failed: str | None = None
    for rung in rungs:
        if failed is not None and rung.verdict == "PASS":
            found.append(f"{rung.rung} is PASS above the FAIL of {failed}")
        if rung.verdict == "FAIL" and failed is None:
            failed = rung.rung
        if GOALS.index(goal) < GOALS.index(rung.rung) and rung.verdict != "DEFERRED":
            found.append(f"{rung.rung} is {rung.verdict} although the goal is {goal}")
    return found


def find_levels(steps: Iterable[StepVerdict]) -> dict[str, tuple[ArtifactLevel, ...]]:
    """The artifact levels of every part; A5 when it runs on two or more targets."""
    passed = [j for j in steps if j.verdict == "PASS"]
    found: dict[str, tuple[ArtifactLevel, ...]] = {}
    for part in dict.fromkeys(j.step.part for j in passed if j.step.purpose == "inspect" and j.step.rung == "L0"):
        runs = {j.step.target for j in passed if j.step.part == part and j.step.purpose == "perf"}
        purposes = {j.step.purpose for j in passed if j.step.part == part}
        have: Mapping[ArtifactLevel, bool] = {
            "A1": True,
            "A2": True,
            "A3": "parity" in purposes,
            "A4": "metric" in purposes,
            "A5": len(runs) > 1,
        }
        found[part] = tuple(level for level, known in have.items() if known)
    return found
