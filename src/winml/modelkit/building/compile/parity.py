"""Whether a compiled model computes what its source computes. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import CheckFailed, RunFailedError
from winml.modelkit.core.statistics import sqnr_db
from winml.modelkit.core.target import Target
from winml.modelkit.ep import catalog


@dataclass(frozen=True)
class Limits:
    """What outputs must reach; the two say about the same for small errors, the second sees a wrong scale too."""

    cosine: float
    sqnr_db: float

    def to_json(self) -> dict[str, float]:
        return {"cosine": self.cosine, "sqnr_db": self.sqnr_db}


SAME_EP = Limits(0.999, 30.0)
"""Against the source on the same EP, which compiles it the same way when it is opened.

How near it is to the source on the CPU is for the proof to say (`app/build_proof.py`).
"""


def _noise_db(found: Mapping[str, Any]) -> float | None:
    """The signal to noise ratio; None when there is no noise, or no number."""
    return sqnr_db(found["relative"]) if found["relative"] else None


def _reaches(found: Mapping[str, Any], wanted: Limits) -> bool:
    if found["equal"]:
        return True
    if found["cosine"] is None or found["cosine"] < wanted.cosine:
        return False
    noise = _noise_db(found)
    return not found["float"] or noise is None or noise >= wanted.sqnr_db


def _worst(values: list[float]) -> float | None:
    return min(values) if values else None


def _comparison(found: Mapping[str, Any]) -> dict[str, Any]:
    outputs = found["outputs"]
    passed = None if found["reason"] or not outputs else all(_reaches(o, SAME_EP) for o in outputs.values())
    differences = [o["max_abs"] for o in outputs.values() if o["max_abs"] is not None]
    return {
        "passed": passed,
        "reason": found["reason"],
        "max_abs": max(differences) if differences else None,
        "cosine": _worst([o["cosine"] for o in outputs.values() if o["cosine"] is not None]),
        "sqnr_db": _worst([n for o in outputs.values() if (n := _noise_db(o)) is not None]),
        "limits": SAME_EP.to_json(),
    }


NO_VALIDATE = "`--no-validate` delivers it all the same"
"""The way out of `winml compile`."""

STEPS = {
    "source": "opening its source on the target",
    "compiled": "opening the compiled model",
    "running": "running the compiled model",
    "reference": "running its source",
}
"""What a validating process does, in order, with the words for it."""


def elsewhere(target: Target, section: CompileSection, *, shared: bool) -> str | None:
    """Why it says nothing against a result that it does not open here; None where it has to."""
    chosen = {
        name: value
        for name, value in section.provider_options.items()
        if name in catalog.BY_NAME[target.ep].device_choosing
    }
    words = ", ".join(f"{name}={value}" for name, value in chosen.items())
    if any("," in value for value in chosen.values()):
        return f"it is for several devices ({words})"
    if target.simulated:
        return "the simulator loads no context that several models share" if shared else None
    return f"it is for another device ({words})" if chosen else None


def excused(steps: Sequence[str], *, elsewhere: bool) -> bool:
    """Whether a process that died while validating says nothing against the compiled model.

    So it is when its source took the process down, and when the model is for a device that is not here.
    """
    return bool(steps) and (steps[-1] in ("source", "reference") or (steps[-1] == "compiled" and elsewhere))


def not_validated(reason: str) -> dict[str, Any]:
    return {"status": "not-validated", "reason": reason, "comparisons": {}}


def judged(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the worker measured, with the verdict: `passed`, `failed`, or `not-validated`, which is not a pass."""
    if not answer["opened"]:
        return not_validated(answer["reason"])
    found = _comparison(answer["comparison"])
    comparisons = {"source": found}
    if found["passed"] is False:
        reason = "its outputs differ from those of its source on the same target"
        return {"status": "failed", "reason": reason, "comparisons": comparisons}
    if found["passed"] is None:
        reason = str(found["reason"] or "no output can be compared")
        return {"status": "not-validated", "reason": reason, "comparisons": comparisons}
    return {"status": "passed", "reason": None, "comparisons": comparisons}


def checked(name: str, answer: Mapping[str, Any], *, on: str, elsewhere: str | None) -> dict[str, Any]:
    """The verdict on a compiled model; one that computes something else, or that its own device refuses, is an error.

    `on` names the device it was opened on, `elsewhere` says why that may not be the one that it is for.
    """
    if not answer["opened"] and elsewhere is None:
        raise RunFailedError(f"compiled `{name}` does not open on `{on}`: {answer['reason']}", hint=NO_VALIDATE)
    if not answer["opened"]:
        return not_validated(f"{elsewhere}: {answer['reason']}")
    found = judged(answer)
    if found["status"] == "failed":
        raise CheckFailed(f"compiled `{name}`: {found['reason']}", hint=NO_VALIDATE, details={"validation": found})
    return found
