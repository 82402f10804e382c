"""The result of running a model over data: the answer of worker operation `evaluate.run`, and its events.

Without numpy: the parent process reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from winml.modelkit.core.config import DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.events import Event
from winml.modelkit.core.placement import Placement
from winml.modelkit.core.values import Digest
from winml.modelkit.evaluation.metrics import Metric
from winml.modelkit.session.arm import ArmArguments

Role = Literal["candidate", "reference"]


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """The data that a model was run over."""

    source: str
    digest: Digest
    samples: int
    limit: int | None
    seed: int
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ModelInput:
    """An input as the runtime reports it."""

    name: str
    type: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True, kw_only=True)
class GenerationFacts:
    """How a model that generates text was run."""

    runtime: str
    """The program that ran the steps, with its version."""
    reason: str
    """Why that one."""
    context_length: int | None
    """Tokens that the model takes at most; null where its folder does not say."""
    tokens: int
    """Tokens that were predicted or generated."""
    new_tokens: int | None = None
    """Tokens that were generated at most for a sample."""
    window: int | None = None
    """Tokens of a text that are run together; windows of a longer text lie `stride` tokens apart."""
    stride: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """What a worker runs over data."""

    arm: ArmArguments
    data: DataSection
    folder: str
    """Where the model's processor is, unless the data names it."""
    task: str | None
    metric: str | None = None
    min_metric: float | None = None
    """Limits that the metric will be held to: the worker knows which one it is, and so which limits it can have."""
    max_metric: float | None = None
    max_drop: float | None = None
    custom: bool = False
    """Whether samples are scored afterwards by the user's own function: the task says only what a sample is."""
    task_options: Mapping[str, str] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    """Input -> output that it takes over from the step before."""
    output: str | None = None
    reference: bool
    """Whether the outputs are compared with those of a reference."""
    save: str | None = None
    """Where the outputs are written."""
    runtime: str | None = None
    """The program that runs a model that generates text; null takes the best that is there."""
    new_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """Scores of every sample, and where and with what they were measured."""

    task: str
    metrics: tuple[Metric, ...]
    agreement: bool
    """Whether two models can predict the same for a sample."""
    series: Mapping[str, tuple[Any, ...]]
    predictions: tuple[Any, ...]
    stopped: bool
    data: DataFacts
    notes: tuple[str, ...]
    outputs: tuple[str, ...]
    placement: Placement
    provider_options: Mapping[str, str]
    added_options: Mapping[str, str]
    fixed_dims: Mapping[str, int]
    weights_at_risk: int | None
    environment: Environment
    inputs: tuple[ModelInput, ...] = ()
    """Inputs that samples are made for; those that hold the state of a recurrent model are not among them."""
    state: Mapping[str, str] = field(default_factory=dict)
    """Input -> output, of a model that was run over sequences."""
    custom: bool = False
    """Whether the scores are those of a custom metric."""
    comparison: tuple[Metric, ...] = ()
    """Numbers about a model and its reference together."""
    generation: GenerationFacts | None = None


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A model is being opened."""

    role: Role
    number: int = 1
    runs: int = 1
    """How many models are run over the data."""


@dataclass(frozen=True, kw_only=True)
class ModelOpened(Event):
    event: Literal["opened"] = "opened"
    total: int


@dataclass(frozen=True, kw_only=True)
class SamplesDone(Event):
    event: Literal["progress"] = "progress"
    done: int
    total: int


@dataclass(frozen=True)
class SamplesScoring(Event):
    """A custom metric scores the samples that were run."""

    function: str


@dataclass(frozen=True)
class OutputsComparing(Event):
    """The outputs of a model are compared with those of its reference."""


WorkerEvent = ModelOpened | SamplesDone
