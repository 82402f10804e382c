"""What a worker is asked to generate, and what it answers: every time it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.measurement import SessionSection
from winml.modelkit.core.op_trace import OpTraceResult
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.target import Device, Target
from winml.modelkit.core.values import Count
from winml.modelkit.session.arm import Tracing
from winml.modelkit.session.generation.runtimes import Runtime
from winml.modelkit.session.report import Memory

Phase = Literal["prompt", "step"]
"""The run over all tokens of the prompt, and the run over one token that follows."""


@dataclass(frozen=True, kw_only=True)
class DecoderArguments:
    """A decoder folder on a target, and the program that runs it there."""

    folder: str
    ep: str
    device: Device
    simulated: bool
    session: SessionSection
    runtime: Runtime
    distribution: str | None = None
    strict_ep: bool = False
    batch: Count = 1
    seed: int = 0

    @property
    def target(self) -> Target:
        return Target(self.ep, self.device, self.simulated)


@dataclass(frozen=True, kw_only=True)
class GenerationArguments:
    """Texts that a worker times, in a session of its own."""

    decoder: DecoderArguments
    prompt_tokens: tuple[int, ...]
    new_tokens: Count
    warmup: Count
    texts: Count
    tracing: Tracing | None = None


@dataclass(frozen=True, kw_only=True)
class TextTimes:
    """One prompt and the tokens after it."""

    first_token_ns: int
    """From the start of the prompt until its first token was known."""
    step_ns: tuple[int, ...]
    """Every token after the first."""


@dataclass(frozen=True, kw_only=True)
class PromptTimes:
    """Texts with prompts of one length."""

    prompt_tokens: int
    warmup: tuple[TextTimes, ...]
    texts: tuple[TextTimes, ...]


@dataclass(frozen=True, kw_only=True)
class GenerationReport:
    """Every sample of one session in one process, and what is known of it."""

    prompts: tuple[PromptTimes, ...]
    stopped: bool
    runtime: str
    """The program with its version."""
    open_ns: int
    load_before: float | None
    load_after: float | None
    memory: Memory | None
    placement: Placement | None
    """Null where the program does not say where nodes ran."""
    provider_options: Mapping[str, str]
    environment: Environment
    op_traces: Mapping[Phase, OpTraceResult] | None = None
    notes: tuple[str, ...] = ()
    """What is to be said of how the model was opened."""
