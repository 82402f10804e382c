"""Progress of stages: of a build, of a single stage, of compiling and of querying targets."""

from __future__ import annotations

from winml.modelkit.building.events import (
    AskingTarget,
    CompileStep,
    PartStarted,
    PassStarted,
    PrecisionGivenUp,
    ReadingModel,
    StageDone,
    StagesPlanned,
    StageStarted,
    StageStep,
    TargetAnswered,
)
from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.events import Event


class CompileProgress(LineProgress):
    """Which model is being compiled or run."""

    _has_begun = False

    def show(self, event: Event) -> None:
        if not isinstance(event, CompileStep):
            return
        together = " together with the others" if event.together else ""
        if event.total == 1:
            self.begin(f"{event.action} {event.model}")
            return
        doing = f"{event.action}{together} · {event.done} of {event.total} done"
        if not self._has_begun:
            self._has_begun = True
            self.begin(doing, event.model, total=event.total)
        self.step(doing, event.model, done=event.done, total=event.total)


class StageProgress(LineProgress):
    """The stage that runs and how far it is; finished stages stay as lines."""

    _part = _stage = ""
    _stages: tuple[str, ...] = ()

    def show(self, event: Event) -> None:
        match event:
            case PartStarted():
                self._part = f"{event.part} ({event.number} of {event.total}) · "
            case StagesPlanned():
                self._stages = event.stages
            case StageStarted():
                number = self._stages.index(event.stage) + 1 if event.stage in self._stages else None
                of = "" if number is None else f" ({number} of {len(self._stages)})"
                self._stage = f"{self._part}{event.stage}{of}"
                self.begin(self._stage)
            case StageDone():
                how = "from the cache" if event.hit else f"{event.seconds:.1f} s"
                self.keep(f"{event.stage}: {how}")
            case PrecisionGivenUp():
                self.begin(f"{self._stage}: fallback")
            case StageStep():
                self.step(f"{self._stage}: {_how_far(event)}", done=event.done, total=event.total)


def _how_far(step: StageStep) -> str:
    """The current step of a stage with its count."""
    return step.name if step.done is None or step.total is None else f"{step.name} {step.done} of {step.total}"


class AnalyzeProgress(LineProgress):
    """The target being queried; its answer stays as a line while others are queried."""

    def show(self, event: Event) -> None:
        match event:
            case ReadingModel():
                self.begin(f"reading {event.name}")
            case AskingTarget():
                self.begin(f"querying {event.target} ({event.done + 1} of {event.total})")
            case TargetAnswered():
                self.keep(f"{event.target}: {event.status}")
            case PassStarted():
                self.step(f"trying pass {_how_far(event.step)}", done=event.done, total=event.total)
