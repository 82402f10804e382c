"""Whether a compiled model computes what its source computes. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from winml.modelkit.building.compile.result import (
    ComparedOutput,
    Comparison,
    Comparisons,
    Limits,
    Validation,
    ValidationRun,
)
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import CheckFailed, RunFailedError
from winml.modelkit.core.statistics import sqnr_db
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.ep import catalog

SAME_EP = Limits(0.999, 30.0)
"""Against the source on the same EP, which compiles it the same way when it is opened.

How near it is to the source on the CPU is what the proof measures (`building/proof`).
"""


def _noise_db(found: ComparedOutput) -> float | None:
    """The signal to noise ratio; None when there is no noise, or no number."""
    return sqnr_db(found.relative) if found.relative else None


def _reaches(found: ComparedOutput, wanted: Limits) -> bool:
    if found.equal:
        return True
    if found.cosine is None or found.cosine < wanted.cosine:
        return False
    noise = _noise_db(found)
    return not found.is_float or noise is None or noise >= wanted.sqnr_db


def _compare(run: ValidationRun) -> Comparison:
    outputs = run.outputs.values()
    return Comparison(
        passed=None if run.reason or not outputs else all(_reaches(o, SAME_EP) for o in outputs),
        reason=run.reason,
        max_abs=max((o.max_abs for o in outputs if o.max_abs is not None), default=None),
        cosine=min((o.cosine for o in outputs if o.cosine is not None), default=None),
        sqnr_db=min((n for o in outputs if (n := _noise_db(o)) is not None), default=None),
        limits=SAME_EP,
    )


NO_VALIDATE = "`--no-verify` delivers it anyway"
"""The hint of `winml compile`."""

STEPS = {
    "source": "opening its source on the target",
    "compiled": "opening the compiled model",
    "running": "running the compiled model",
    "reference": "running its source",
}
"""What a validating process does, in order, with a description of each step."""


def elsewhere(target: Target, section: CompileSection, *, shared: bool) -> str | None:
    """Why a result that does not open here may still be good; None where it has to open."""
    chosen = {
        name: value
        for name, value in section.provider_options.items()
        if name in catalog.BY_NAME[target.ep].device_choosing
    }
    devices = ", ".join(f"{name}={value}" for name, value in chosen.items())
    if any("," in value for value in chosen.values()):
        return f"it is for several devices ({devices})"
    if target.simulated:
        return "the simulator cannot load a context that several models share" if shared else None
    return f"it is for another device ({devices})" if chosen else None


def is_excused(steps: Sequence[str], *, elsewhere: bool) -> bool:
    """Whether the compiled model may still be good although the process died while validating it.

    So it is when its source crashed the process, and when the model is for a device that this machine does not have.
    """
    return bool(steps) and (steps[-1] in ("source", "reference") or (steps[-1] == "compiled" and elsewhere))


def judge(run: ValidationRun) -> Validation:
    """What the worker measured, with the verdict: `passed`, `failed`, or `not-validated`, which is not a pass."""
    if not run.opened:
        return Validation("not-validated", run.reason)
    found = _compare(run)
    if found.passed is None:
        return Validation("not-validated", found.reason or "no output can be compared", Comparisons(found))
    if found.passed:
        return Validation("passed", None, Comparisons(found))
    return Validation("failed", "its outputs differ from those of its source on the same target", Comparisons(found))


def check(name: str, run: ValidationRun, *, on: str, elsewhere: str | None) -> Validation:
    """The verdict on a compiled model; one that computes something else, or that its own device refuses, is an error.

    `on` names the device it was opened on, `elsewhere` says why that may not be the one that it is for.
    """
    if not run.opened and elsewhere is None:
        raise RunFailedError(f"compiled `{name}` does not open on `{on}`: {run.reason}", hint=NO_VALIDATE)
    if not run.opened:
        return Validation("not-validated", f"{elsewhere}: {run.reason}")
    found = judge(run)
    if found.status == "failed":
        raise CheckFailed(
            f"compiled `{name}`: {found.reason}", hint=NO_VALIDATE, details={"validation": to_json(found)}
        )
    return found
