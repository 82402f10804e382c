"""Events and answer of the worker operation `session.measure`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.events import Event
from winml.modelkit.core.op_trace import OpTraceResult
from winml.modelkit.core.placement import Placement
from winml.modelkit.graph.sizes import Size


@dataclass(frozen=True, kw_only=True)
class Opened(Event):
    """The session is open; it warms up next."""

    event: Literal["opened"] = "opened"
    placement: Placement


@dataclass(frozen=True, kw_only=True)
class Warm(Event):
    """The timed loop begins."""

    event: Literal["warm"] = "warm"


@dataclass(frozen=True, kw_only=True)
class RunsDone(Event):
    event: Literal["progress"] = "progress"
    done: int


@dataclass(frozen=True, kw_only=True)
class ReadingTrace(Event):
    """The timed loop has ended, and the trace is read."""

    event: Literal["tracing"] = "tracing"


SessionEvent = Opened | Warm | RunsDone | ReadingTrace


@dataclass(frozen=True, kw_only=True)
class TensorShape:
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class InputFacts:
    """What a model ran on."""

    source: Literal["synthetic", "npz"]
    seed: int | None
    tensors: Mapping[str, TensorShape]
    sizes: Mapping[str, Size]
    """Sizes of open dimensions, and where each comes from."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Resident bytes of the process; null where the system does not report them."""

    before_open: int | None
    after_open: int | None
    after_runs: int | None
    peak: int | None


@dataclass(frozen=True, kw_only=True)
class Usage:
    mean: float
    min: float
    max: float


@dataclass(frozen=True, kw_only=True)
class Utilization:
    """What was sampled of the machine beside the timed loops (`--monitor`)."""

    interval_s: float | None
    samples: int
    sources: Mapping[str, Usage]
    missing: Mapping[str, str]
    """Sources this machine does not have, with the reason."""


@dataclass(frozen=True, kw_only=True)
class SessionReport:
    """Every sample of one session in one process, and what is known of it."""

    wall_ns: tuple[int, ...]
    cpu_ns: tuple[int, ...]
    stopped: bool
    open_ns: int
    first_run_ns: int | None
    load_before: float | None
    load_after: float | None
    weights_at_risk: int
    placement: Placement
    provider_options: Mapping[str, str]
    added_options: Mapping[str, str]
    """Provider options that were added by default."""
    fixed_dims: Mapping[str, int]
    io_binding: bool
    inputs: InputFacts
    memory: Memory | None
    environment: Environment
    op_trace: OpTraceResult | None
