"""Whether an artifact computes what its source computes, from distances of their outputs. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from winml.modelkit.building.proof.proof import OutputDistance
from winml.modelkit.core.dataclass import dataclass

Answer = Literal["reached", "missed", "unknown"]
SCALE = 2.0
"""How many times larger or smaller outputs may be: a cosine does not see a wrong scale."""


@dataclass(frozen=True)
class Agreement:
    """The verdict on all outputs together, and the output that decides it."""

    answer: Answer
    reason: str | None
    """Why the limit was missed, or why that is unknown."""
    output: str | None
    cosine: float | None
    limit: float


def _judge_floats(output: OutputDistance, limit: float) -> tuple[Answer, str | None]:
    name = output.name
    if not output.same_shape:
        return "missed", f"output `{name}` has another shape than in the source"
    if not output.finite:
        return "missed", f"output `{name}` is NaN or infinite where the source has numbers"
    if output.equal:
        return "reached", None
    if output.cosine is None:
        return ("missed", f"output `{name}` is all zero") if output.signal else ("unknown", f"`{name}` is all zero")
    if output.cosine < limit:
        return "missed", f"output `{name}` has a cosine of {output.cosine:.3f} with the source's"
    if output.scale is not None and not 1 / SCALE <= output.scale <= SCALE:
        return "missed", f"output `{name}` is {output.scale:.3g} times as large as the source's"
    return "reached", None


def _judge_others(outputs: Sequence[OutputDistance], limit: float) -> Agreement:
    """Classes and masks, where there is nothing else: equal or undecided, since rounding may change one."""
    for output in outputs:
        if not output.same_shape:
            return Agreement("missed", f"output `{output.name}` has another shape", output.name, None, limit)
        if not output.equal:
            reason = f"output `{output.name}` is not a float; {output.cosine:.0%} of its values are equal"
            return Agreement("unknown", reason, output.name, output.cosine, limit)
    if not outputs:
        return Agreement("unknown", "no output is a tensor of numbers", None, None, limit)
    return Agreement("reached", None, outputs[0].name, 1.0, limit)


def judge(outputs: Sequence[OutputDistance], limit: float) -> Agreement:
    """The verdict on the output that agrees least; `limit` is the least cosine."""
    floats = [output for output in outputs if output.is_float]
    if not floats:
        return _judge_others(outputs, limit)
    judged = [(_judge_floats(output, limit), output) for output in floats]
    if not any(output.signal for output in floats):
        judged = [(("unknown" if a == "reached" else a, f"`{o.name}` is all zero"), o) for (a, _), o in judged]
    for wanted in ("missed", "reached"):
        chosen = [(reason, output) for (answer, reason), output in judged if answer == wanted]
        if chosen:
            reason, worst = min(chosen, key=lambda entry: -1.0 if entry[1].cosine is None else entry[1].cosine)
            return Agreement(wanted, reason, worst.name, worst.cosine, limit)
    (_, reason), first = judged[0]
    return Agreement("unknown", f"on these inputs {reason} in the source", first.name, None, limit)
