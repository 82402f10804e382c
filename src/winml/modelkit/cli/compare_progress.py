"""Progress of `winml compare`, on a terminal only."""

from __future__ import annotations

from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.events import Event
from winml.modelkit.measuring.events import (
    ArmBuilding,
    BaseProbing,
    CalibrationRoundDone,
    CandidateConfirming,
    CandidateTrying,
    RoundDone,
)


class CompareProgress(LineProgress):
    """The current step and its number of rounds."""

    def show(self, event: Event) -> None:
        match event:
            case CalibrationRoundDone():
                self.write(f"measuring noise of the base: A/A round {event.number}")
            case RoundDone():
                self.write(f"round {event.number}")
            case ArmBuilding():
                self.write(f"building {event.label}")
            case BaseProbing():
                self.write(f"probing the base {event.label}")
            case CandidateTrying():
                self.write(f"probing {event.label}")
            case CandidateConfirming():
                self.write(f"confirming {event.label}")
