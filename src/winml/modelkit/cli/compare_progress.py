"""Progress of `winml compare`, on a terminal only."""

from __future__ import annotations

import math

from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.events import Event
from winml.modelkit.measuring.events import (
    ArmBuilding,
    BaseProbing,
    CalibrationRoundDone,
    CalibrationStarted,
    CandidateConfirming,
    CandidateTrying,
    RoundDone,
    RoundsStarted,
)


def most_rounds(done: int, elapsed_s: float, started: RoundsStarted) -> int:
    """How many rounds there are at most, by their number and by the time that those so far took."""
    if elapsed_s <= 0:
        return started.most
    return max(done, min(started.most, math.ceil(done * started.seconds / elapsed_s)))


class CompareProgress(LineProgress):
    """The current step and its number of rounds."""

    _which, _label = "", ""
    _rounds = RoundsStarted(0, 0, math.inf)
    _calibration_rounds = 0

    def show(self, event: Event) -> None:
        match event:
            case ArmBuilding():
                self.begin("building", event.label)
            case BaseProbing():
                self.begin("probing the base", event.label)
            case CandidateTrying():
                self._label = event.label
                self._which = "" if event.total == 1 else f"candidate {event.number + 1} of {event.total}: "
                self.begin(f"{self._which}probing", self._label)
            case CandidateConfirming():
                self._label, self._which = event.label, "confirming: "
            case CalibrationStarted():
                self._calibration_rounds = event.rounds
                self.begin(self._say_calibration(0), total=event.rounds)
            case CalibrationRoundDone():
                self.step(self._say_calibration(event.number), done=event.number, total=self._calibration_rounds)
            case RoundsStarted():
                self._rounds = event
                self.begin(self._say_round(0, event.most), self._label, total=event.most, at_most=True)
            case RoundDone():
                most = most_rounds(event.number, self.elapsed_s, self._rounds)
                text = self._say_round(event.number, most)
                self.step(text, self._label, done=event.number, total=most, at_most=True)

    def _say_calibration(self, done: int) -> str:
        rounds = self._calibration_rounds
        return f"measuring noise of the base: A/A round {min(done + 1, rounds)} of {rounds}"

    def _say_round(self, done: int, most: int) -> str:
        least = self._rounds.least
        rounds = f"{least} to {most}" if done < least < most else f"at most {most}"
        return f"{self._which}round {min(done + 1, most)} of {rounds}"
