"""What an operation of the worker opens a session with."""

from __future__ import annotations

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.measurement import Arm, GenerationArm, SessionSection
from winml.modelkit.core.op_trace import TracingLevel
from winml.modelkit.core.target import Device, Target
from winml.modelkit.core.values import Count
from winml.modelkit.graph.input_settings import DEFAULT, InputSettings


@dataclass(frozen=True, kw_only=True)
class ArmArguments:
    """A model on a target with the settings of its session, and how its inputs are made."""

    model: str
    ep: str
    device: Device
    simulated: bool
    session: SessionSection
    distribution: str | None = None
    """The package that brings the EP; None leaves the choice to the session."""
    inputs: InputSettings = DEFAULT
    strict_ep: bool = False
    generation: GenerationArm | None = None

    @property
    def target(self) -> Target:
        return Target(self.ep, self.device, self.simulated)


@dataclass(frozen=True, kw_only=True)
class Tracing:
    """What a session is traced with."""

    level: TracingLevel
    output_dir: str


@dataclass(frozen=True, kw_only=True)
class MeasureArguments:
    """What a worker measures: runs of one arm in a session of its own."""

    arm: ArmArguments
    warmup: Count
    iterations: Count
    duration_s: float | None
    tracing: Tracing | None


def arm_arguments(
    arm: Arm, distribution: str | None, inputs: InputSettings = DEFAULT, *, strict_ep: bool = False
) -> ArmArguments:
    return ArmArguments(
        model=arm.artifact,
        ep=arm.target.ep,
        device=arm.target.device,
        simulated=arm.target.simulated,
        session=arm.session,
        distribution=distribution,
        inputs=inputs,
        strict_ep=strict_ep,
        generation=arm.generation,
    )
