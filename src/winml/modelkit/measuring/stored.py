"""Stored comparisons: their verdicts computed again from raw rounds, wherever they were measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.measurement import Measurement
from winml.modelkit.core.verdict import Verdict
from winml.modelkit.measuring.calibration import Calibration, ClockValues
from winml.modelkit.measuring.compare_result import Candidate, CompareResult, pair_protocol
from winml.modelkit.measuring.judge import replay
from winml.modelkit.measuring.rounds import other_values, values_of


@dataclass(frozen=True, kw_only=True)
class StoredSamples:
    """A measurement as a finding keeps it, with what it was judged by."""

    verdict: Verdict
    measurement: Measurement | None
    calibration: str | None
    calibrations: Mapping[str, Calibration]
    tests: int

    def judge(self) -> Verdict:
        """The verdict, computed again."""
        if self.measurement is None:
            return self.verdict
        lent = ClockValues() if self.calibration is None else self.calibrations[self.calibration].values
        return judge_again(self.measurement, lent, tests=self.tests, seconds=self.verdict.seconds)


def judge_again(taken: Measurement, lent: ClockValues, *, tests: int, seconds: float) -> Verdict:
    """The verdict of a stored measurement, with the seconds it took then."""
    pair = pair_protocol(taken)
    verdict = replay(
        values_of(taken, pair.metric),
        calibration=lent.on(pair.metric),
        other=other_values(taken, pair.metric),
        protocol=pair.protocol,
        metric=pair.metric,
        tests=tests,
    )
    return replace(verdict, seconds=seconds)


def confirm(first: Verdict, again: Verdict) -> Verdict:
    """The verdict after a second measurement on fresh rounds, whose gain is the one to report.

    The first gain was selected for being large, the second was not.
    """
    both = replace(again, seconds=first.seconds + again.seconds)
    if again.kept:
        return both
    return replace(both, verdict="INCONCLUSIVE", reason=f"not confirmed on fresh rounds: {again.reason}")


def judge_candidate_again(result: CompareResult, candidate: Candidate) -> Candidate:
    """A candidate with its verdict computed again; one that failed or was disturbed stays as it is."""
    confirmation = candidate.confirmation
    before = confirmation.first if confirmation else candidate.verdict
    disturbed = candidate.conditions is not None and candidate.conditions.disturbed
    if candidate.measurement is None or before.verdict == "FAILED" or disturbed:
        return candidate
    tests = candidate.tests
    verdict = judge_again(
        candidate.measurement, result.calibration_values(candidate.calibration), tests=tests, seconds=before.seconds
    )
    if confirmation is None or not verdict.kept:
        return replace(candidate, verdict=verdict)
    again = judge_again(
        confirmation.measurement,
        result.calibration_values(confirmation.calibration),
        tests=tests,
        seconds=confirmation.verdict.seconds,
    )
    return replace(
        candidate,
        verdict=confirm(verdict, again),
        confirmation=replace(confirmation, first=verdict, verdict=again),
    )
