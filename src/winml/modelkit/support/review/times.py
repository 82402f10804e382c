"""Comparisons as evidence: which of two artifacts takes less time, computed again from raw rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from winml.modelkit.core.measurement import CompareProtocol
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.measuring.judge import replay
from winml.modelkit.measuring.protocols import PROTOCOLS
from winml.modelkit.measuring.rounds import pair_values
from winml.modelkit.support.review.evidence import same
from winml.modelkit.support.review.results import (
    ComparedBase,
    ComparedCandidate,
    ComparedMeasurement,
    CompareEvidence,
    Confirmation,
    Result,
    error_of,
)

Pace = Literal["faster", "same", "slower", "unknown"]
"""`same`: neither a gain of 2 % nor a loss was shown. `unknown`: inconclusive."""


def judge_again(result: CompareEvidence) -> Verdict:
    """The verdict of the only candidate, computed again from its rounds; the claimed one is not used."""
    candidate, confirmation = result.candidate, result.candidate.confirmation
    if not _decides(result):
        return replace(candidate.verdict, verdict="INCONCLUSIVE", gain_pct=None, interval_pct=None)
    if candidate.measurement is None:
        return candidate.verdict
    found = _replay(candidate.measurement)
    if confirmation is None or confirmation.measurement is None or not found.kept:
        return found
    again = _replay(confirmation.measurement)
    if again.kept:
        return again
    return replace(again, verdict="INCONCLUSIVE", reason=f"not confirmed on fresh rounds: {again.reason}")


def _decides(result: CompareEvidence) -> bool:
    """Whether there are rounds that follow the protocol of the device, or a verdict that needs none."""
    candidate, confirmation = result.candidate, result.candidate.confirmation
    if candidate.measurement is None:
        return confirmation is None and candidate.verdict.verdict in ("IDENTICAL", "DISCARD")
    taken: list[ComparedCandidate | Confirmation] = [candidate] if confirmation is None else [candidate, confirmation]
    first = candidate.verdict if confirmation is None else confirmation.first
    by_the_rules = all(
        one.calibration is None
        and one.measurement is not None
        and one.measurement.protocol.protocol == _protocol(result.base.target)
        for one in taken
    )
    disturbed = candidate.conditions is not None and candidate.conditions.disturbed
    return by_the_rules and candidate.tests == 1 and first.verdict != "FAILED" and not disturbed


def _protocol(target: str) -> CompareProtocol | None:
    """How arms are compared on a target; None for an unknown target."""
    device = target.rpartition("/")[2]
    return next((protocol for protocol in PROTOCOLS.values() if protocol.device == device), None)


def _replay(taken: ComparedMeasurement) -> Verdict:
    rounds, metric, paired = taken.rounds, taken.protocol.metric, taken.protocol.mode != "turns"
    return replay(
        pair_values(rounds, metric, paired=paired),
        calibration=(),
        other=pair_values(rounds, "wall" if metric == "cpu" else "cpu", paired=paired),
        protocol=taken.protocol.protocol,
        metric=metric,
    )


def pace(result: Result | None) -> Pace:
    """The result of a comparison; one that was not made, or failed, is unknown."""
    if not isinstance(result, CompareEvidence):
        return "unknown"
    found = judge_again(result)
    if found.verdict == "KEEP":
        return "faster"
    if found.verdict == "DISCARD":
        # Without rounds it is far slower.
        return "slower" if found.interval_pct is None or found.interval_pct[1] < 0 else "same"
    return "same" if found.verdict in ("MARGINAL_KEEP", "IDENTICAL") else "unknown"


def describe(part: str, result: Result | None) -> str:
    """What is known about the time of a part, as a sentence."""
    if result is None:
        return f"the time of {part} was not compared"
    if not isinstance(result, CompareEvidence):
        return f"the time of {part} could not be compared: {error_of(result).message}"
    found = judge_again(result)
    return f"time of {part}: {found.verdict}, {found.reason}"


def problems(result: CompareEvidence, target: str, fingerprints: tuple[str | None, str | None]) -> Iterator[str]:
    """The objections to a comparison of these two artifacts on this target."""
    base, candidate = result.base, result.candidate
    arms: tuple[tuple[str, ComparedBase], ...] = (("base", base), ("candidate", candidate))
    for (name, arm), expected in zip(arms, fingerprints, strict=True):
        if expected is None or arm.fingerprint != expected:
            yield f"its {name} is another artifact than the one here"
        if not parse_target(target).allows(arm.target) or arm.simulated:
            yield f"its {name} ran on {arm.target}{', simulated' if arm.simulated else ''}, not on {target}"
    if candidate.tests != 1 or result.calibrations or candidate.calibration is not None:
        yield "it was judged with other candidates or with A/A rounds, which the plan does not include"
    for taken in (candidate, candidate.confirmation):
        if taken is not None and taken.measurement is not None:
            yield from _measurement_problems(taken.measurement, base.target)
    yield from _verdict_problems(result, candidate)


def _verdict_problems(result: CompareEvidence, candidate: ComparedCandidate) -> Iterator[str]:
    said, found = candidate.verdict, judge_again(result)
    claimed, expected = ((v.verdict, v.gain_pct, v.interval_pct, v.rounds, v.metric) for v in (said, found))
    if not same(claimed, expected):
        yield f"its rounds give {_words(found)}, but it says {_words(said)}"
    last = candidate.confirmation or candidate
    if last.measurement is None:
        if said.verdict == "IDENTICAL" and result.base.fingerprint != candidate.fingerprint:
            yield "it calls two different artifacts identical"
    elif found.rounds != len(last.measurement.rounds) // 2:
        yield "it has rounds that its verdict does not use"


def _words(found: Verdict) -> str:
    gain = "no gain" if found.gain_pct is None else f"{found.gain_pct:.2f} %"
    return f"{found.verdict} ({gain}, {found.rounds} rounds)"


def _measurement_problems(taken: ComparedMeasurement, target: str) -> Iterator[str]:
    """Rounds are complete, and follow the protocol of the device."""
    protocol, rounds = taken.protocol, taken.rounds
    if protocol.protocol != _protocol(target):
        yield "its protocol is not the one of the device"
    if any(arm.target != target or arm.simulated for arm in taken.arms):
        yield "its rounds were made on another target"
    if protocol.metric == "cpu" and (target != "cpu" or protocol.mode == "turns"):
        yield "it was judged by a clock that is not used on that target"
    numbers = [[r.round for r in rounds if r.arm == arm] for arm in (0, 1)]
    if numbers[0] != numbers[1] or numbers[0] != list(range(len(rounds) // 2)):
        yield "rounds are missing, or not of two arms"
    few = protocol.protocol.few_pairs
    if any(len(r.wall_ns) != len(r.cpu_ns) or len(r.wall_ns) < few for r in rounds):
        yield "rounds have fewer samples than the protocol asks for"
