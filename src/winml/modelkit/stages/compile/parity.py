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
"""Against the source on the same EP, which compiles it the same way when it is opened."""

AGAINST_CPU: dict[str, Limits] = {
    "fp32": Limits(0.99, 17.0),
    "fp16": Limits(0.99, 17.0),
    "w16a16": Limits(0.99, 17.0),
    "w8a16": Limits(0.95, 10.0),
    "w8a8": Limits(0.90, 6.0),
}
_COARSE = Limits(0.85, 5.0)
"""Fewer bits than eight, and kinds of quantization that the EP may compute in another way."""


def limits(precision: str, against: str) -> Limits:
    return SAME_EP if against == "source" else AGAINST_CPU.get(precision, _COARSE)


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


def _comparison(against: str, found: Mapping[str, Any], precision: str) -> dict[str, Any]:
    wanted = limits(precision, against)
    outputs = found["outputs"]
    # The class with the highest score may differ by a rounding; on the same EP it may not.
    judged = [o for o in outputs.values() if o["float"] or against == "source"]
    passed = None if found["reason"] or not judged else all(_reaches(o, wanted) for o in judged)
    differences = [o["max_abs"] for o in outputs.values() if o["max_abs"] is not None]
    return {
        "passed": passed,
        "reason": found["reason"],
        "max_abs": max(differences) if differences else None,
        "cosine": _worst([o["cosine"] for o in outputs.values() if o["cosine"] is not None]),
        "sqnr_db": _worst([n for o in outputs.values() if (n := _noise_db(o)) is not None]),
        "limits": wanted.to_json(),
    }


STEPS = {
    "source": "opening its source on the target",
    "compiled": "opening the compiled model",
    "running": "running the compiled model",
    "reference": "running its source",
}
"""What a validating process does, in order, with the words for it."""


def elsewhere(target: Target, section: CompileSection) -> bool:
    """Whether a result may be for a device that is not here, so that its not opening says nothing against it."""
    chosen = catalog.BY_NAME[target.ep].device_choosing
    return target.simulated or any(name in section.provider_options for name in chosen)


def excused(steps: Sequence[str], *, elsewhere: bool) -> bool:
    """Whether a process that died while validating says nothing against the compiled model.

    So it is when its source took the process down, and when the model is for a device that is not here.
    """
    return bool(steps) and (steps[-1] in ("source", "reference") or (steps[-1] == "compiled" and elsewhere))


def not_validated(reason: str) -> dict[str, Any]:
    return {"status": "not-validated", "reason": reason, "comparisons": {}}


def judged(answer: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """What the worker measured, with the verdict: `passed`, `failed`, or `not-validated`, which is not a pass."""
    if not answer["opened"]:
        return not_validated(answer["reason"])
    comparisons = {name: _comparison(name, found, precision) for name, found in answer["comparisons"].items()}
    failed = [name for name, c in comparisons.items() if c["passed"] is False]
    if failed:
        words = {"source": "its source on the same target", "cpu": "its source on the CPU"}
        reason = f"its outputs differ from those of {' and of '.join(words[name] for name in failed)}"
        return {"status": "failed", "reason": reason, "comparisons": comparisons}
    if not any(c["passed"] for c in comparisons.values()):
        reasons = "; ".join(sorted({str(c["reason"] or "no output can be compared") for c in comparisons.values()}))
        return {"status": "not-validated", "reason": reasons, "comparisons": comparisons}
    return {"status": "passed", "reason": None, "comparisons": comparisons}


def checked(name: str, answer: Mapping[str, Any], precision: str, *, here: str | None) -> dict[str, Any]:
    """The verdict on a compiled model; one that computes something else, or that its own device refuses, is an error.

    `here` names the device it was compiled for, None when that one may be elsewhere.
    """
    hint = "`--no-validate` delivers it all the same"
    if not answer["opened"] and here is not None:
        raise RunFailedError(f"compiled `{name}` does not open on `{here}`: {answer['reason']}", hint=hint)
    found = judged(answer, precision)
    if found["status"] == "failed":
        raise CheckFailed(f"compiled `{name}`: {found['reason']}", hint=hint, details={"validation": found})
    return found
