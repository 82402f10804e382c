"""Progress of stages: of a build, of a single stage, of compiling and of querying targets."""

from __future__ import annotations

from winml.modelkit.building.events import (
    AskingTarget,
    CompileStep,
    PassStarted,
    PrecisionGivenUp,
    ReadingModel,
    StageDone,
    StageStarted,
    StageStep,
    TargetAnswered,
)
from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.events import Event


class CompileProgress(LineProgress):
    """Which model is being compiled or run."""

    def show(self, event: Event) -> None:
        if isinstance(event, CompileStep):
            together = " together with the others" if event.together else ""
            self.write(f"{event.action} {event.model}{together}")


class StageProgress(LineProgress):
    """The stage that runs and how far it is; finished stages stay as lines."""

    _stage = ""

    def show(self, event: Event) -> None:
        match event:
            case StageStarted():
                self._stage = event.stage
                self.write(f"{self._stage} …")
            case StageDone():
                how = "from the cache" if event.hit else f"{event.seconds:.1f} s"
                self.write(f"{event.stage}: {how}\n")
            case PrecisionGivenUp():
                self.write(f"{self._stage}: fallback")
            case StageStep():
                self.write(f"{self._stage}: {_how_far(event)}")


def _how_far(step: StageStep) -> str:
    """The current step of a stage with its count."""
    return step.name if step.done is None or step.total is None else f"{step.name} {step.done} of {step.total}"


class AnalyzeProgress(LineProgress):
    """The target being queried; its answer stays as a line while others are queried."""

    def show(self, event: Event) -> None:
        match event:
            case ReadingModel():
                self.write(f"reading {event.name}")
            case AskingTarget():
                self.write(f"querying {event.target} ({event.done + 1} of {event.total})")
            case TargetAnswered():
                self.write(f"{event.target}: {event.status}\n")
            case PassStarted():
                self.write(f"trying pass {_how_far(event.step)}")
