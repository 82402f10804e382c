"""Events of a build: stages that begin, how far they are, and how they end."""

from __future__ import annotations

from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event, OnEvent
from winml.modelkit.core.values import key


@dataclass(frozen=True)
class PartStarted(Event):
    """The build of one part of a composite model begins."""

    part: str
    number: int
    total: int


@dataclass(frozen=True)
class StagesPlanned(Event):
    """The stages that a build goes through, in their order."""

    stages: tuple[str, ...]


@dataclass(frozen=True)
class StageStarted(Event):
    """A stage begins, or is looked up."""

    stage: str
    hit: bool = False
    """Whether the cache has its result."""


@dataclass(frozen=True)
class StageStep(Event):
    """What the running stage is doing, and its progress where that can be counted."""

    name: str
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class StageDone(Event):
    """A stage has ended well."""

    stage: str
    hit: bool
    seconds: float
    """How long it took when it ran, which may have been in an earlier build."""


@dataclass(frozen=True)
class PrecisionGivenUp(Event):
    """An artifact failed on its target, and the build starts again at another precision."""

    precision: str
    then: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class WorkerEvent(Event):
    """An event from the worker of a stage; it is sent as JSON, by its name."""

    event: str

    @property
    def step(self) -> StageStep:
        """What is shown of it."""
        return StageStep(self.event)


@dataclass(frozen=True, kw_only=True)
class ExportStep(WorkerEvent):
    event: Literal["export"] = "export"
    name: str = key("step")
    part: str
    done: int
    total: int

    @property
    def step(self) -> StageStep:
        # Not as a count: its steps differ far too much in length for an estimate.
        return StageStep(f"{self.name} ({self.done + 1} of {self.total})")


@dataclass(frozen=True, kw_only=True)
class PassStarted(WorkerEvent):
    """A pass of the optimizer begins."""

    event: Literal["pass"] = "pass"
    name: str = key("pass")
    done: int
    total: int

    @property
    def step(self) -> StageStep:
        return StageStep(self.name, self.done, self.total)


@dataclass(frozen=True, kw_only=True)
class OptimizedOutputs(WorkerEvent):
    """The optimizer runs one version of the model, to compare its outputs."""

    event: Literal["compare"] = "compare"
    of: Literal["source", "prepared", "result"]


@dataclass(frozen=True, kw_only=True)
class Calibrating(WorkerEvent):
    event: Literal["calibrating"] = "calibrating"
    done: int
    total: int

    @property
    def step(self) -> StageStep:
        return StageStep(self.event, self.done, self.total)


@dataclass(frozen=True, kw_only=True)
class LeavingNodes(WorkerEvent):
    """The quantizer looks for the nodes that cannot be quantized."""

    event: Literal["leaving"] = "leaving"
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class WritingModel(WorkerEvent):
    event: Literal["writing"] = "writing"


@dataclass(frozen=True, kw_only=True)
class QuantizedOutputs(WorkerEvent):
    """The quantizer compares the outputs of its result with the original's."""

    event: Literal["comparing"] = "comparing"


StageEvent = ExportStep | PassStarted | OptimizedOutputs | Calibrating | LeavingNodes | WritingModel | QuantizedOutputs
"""The events of the workers of export, optimize and quantize."""


@dataclass(frozen=True, kw_only=True)
class ValidationStep(WorkerEvent):
    """The current step of a process that runs a compiled model beside its source; it may crash there."""

    event: Literal["step"] = "step"
    at: Literal["source", "compiled", "running", "reference"] = key("step")


CompileAction = Literal["compiling", "validating", "proving"]


@dataclass(frozen=True)
class CompileStep(Event):
    """What the compile stage does with a model."""

    action: CompileAction
    model: str
    done: int = 0
    total: int = 1
    """Models that are compiled; several are compiled alone and then together."""
    together: bool = False
    """Whether it shares a context with others."""

    @property
    def step(self) -> StageStep:
        return StageStep(self.action)


@dataclass(frozen=True)
class ReadingModel(Event):
    """An analysis reads the model."""

    name: str

    @property
    def step(self) -> StageStep:
        return StageStep(self.name)


@dataclass(frozen=True)
class AskingTarget(Event):
    """An analysis asks a target."""

    target: str
    done: int
    total: int

    @property
    def step(self) -> StageStep:
        return StageStep(self.target) if self.total == 1 else StageStep(self.target, self.done, self.total)


@dataclass(frozen=True)
class TargetAnswered(Event):
    target: str
    status: str

    @property
    def step(self) -> StageStep:
        return StageStep(self.target)


def tell_steps(tell: OnEvent) -> OnEvent:
    """Passes events of a stage on as steps of its build; other events are passed on unchanged."""

    def pass_on(event: Event) -> None:
        step = getattr(event, "step", None)
        tell(step if isinstance(step, StageStep) else event)

    return pass_on
