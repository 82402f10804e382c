"""EPMonitor: what a session needs to know of a monitor, and a monitor of a session.

A monitor adds options and reads what the EP wrote. It never opens a session, never changes the working directory and
never swallows the caller's exception.
"""

from __future__ import annotations

import datetime as dt
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from types import TracebackType
from typing import Any, ClassVar, Self

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.op_trace import OpTraceResult, TraceMetadata, TraceStatus, TracingLevel
from winml.modelkit.core.target import Target

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlacedNode:
    """A node after the runtime assigned it to an EP."""

    name: str
    op_type: str
    ep: str
    partition: int


@dataclass(frozen=True)
class Observation:
    """What a session did while it was observed; passed to the monitor right before it exits."""

    model: str | None
    target: Target
    warmup_runs: int
    wall_ns: tuple[int, ...]
    """The measured runs, on the clock of the session."""
    nodes: tuple[PlacedNode, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """The arrays of the last run."""
    provider_options: Mapping[str, str] = field(default_factory=dict)


def _check_flag(value: object, owner: str) -> None:
    if type(value) is not bool:
        raise TypeError(f"requires_session_teardown of {owner} must be True or False but got {value!r}")


class EPMonitor(ABC):
    """Observes one `WinMLSession.perf()` block through options and through what the EP leaves behind."""

    requires_session_teardown: ClassVar[bool] = False
    """Whether the session must be destroyed before the monitor reads: some EPs write only then."""
    ep_name: ClassVar[str | None] = None
    """The EP whose options it adds; it is pinned for the duration. None serves every EP."""
    backend: ClassVar[str] = "none"
    """What makes the trace, as the result names it."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_flag(cls.requires_session_teardown, cls.__name__)

    def __init__(self, level: TracingLevel = "basic") -> None:
        self.level: TracingLevel = level
        self._observation: Observation | None = None
        self._result: OpTraceResult | None = None
        self._entered = False

    def __setattr__(self, name: str, value: object) -> None:
        if name == "requires_session_teardown":
            _check_flag(value, f"a {type(self).__name__}")
        super().__setattr__(name, value)

    @classmethod
    def is_available(cls) -> bool:
        """Whether this monitor's EP can be used in this process; never throws."""
        try:
            return cls._available()
        except Exception as error:  # noqa: BLE001 - callers probe with this and rely on its never throwing
            log.warning("whether %s is available cannot be checked: %s: %s", cls.__name__, type(error).__name__, error)
            return False

    @classmethod
    def _available(cls) -> bool:
        return True

    def get_session_options(self) -> dict[str, str]:
        """Session options to open with: config entries, and `profile_file_prefix` for the runtime's profiler."""
        return {}

    def get_provider_options(self) -> dict[str, str]:
        """Provider options to open with, set after the user's own; the same answer on every call."""
        return {}

    def observe(self, observation: Observation) -> None:
        """Take what the session did; called after it was torn down and before `__exit__`."""
        self._observation = observation

    def __enter__(self) -> Self:
        if self._entered:
            raise RuntimeError(f"this {type(self).__name__} was already used; create a new one for every perf() block")
        self._entered = True
        self._prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._result = self._collect()
        except Exception as problem:  # a trace that cannot be read must not hide the caller's result
            log.warning("%s could not read its trace", type(self).__name__, exc_info=True)
            self._result = self.failure("parse_failed", f"{type(problem).__name__}: {problem}")

    def _prepare(self) -> None:  # noqa: B027 - optional
        """Make ready what the EP writes into; errors end the perf() block before anything runs."""

    @abstractmethod
    def _collect(self) -> OpTraceResult | None:
        """Read what the EP left behind."""

    @property
    def result(self) -> OpTraceResult | None:
        """The trace after exit; None before, and for a monitor that makes none."""
        return self._result

    @property
    def final_result(self) -> OpTraceResult:
        """The trace; of status `not_run` before exit, and for a monitor that makes none."""
        return self._result or self.failure("not_run", None)

    def to_dict(self) -> dict[str, Any]:
        """The trace in its one nested shape; status `not_run` before exit."""
        return self.final_result.to_dict()

    def failure(self, status: TraceStatus, reason: str | None) -> OpTraceResult:
        """A result without operators."""
        return OpTraceResult(self.metadata(), status, error=reason)

    def metadata(self, *, warmup: int = 0, samples: int = 0) -> TraceMetadata:
        seen = self._observation
        return TraceMetadata(
            ep=seen.target.ep if seen else self.ep_name or "unknown",
            device=seen.target.device if seen else "unknown",
            simulated=seen.target.simulated if seen else False,
            model=seen.model if seen else None,
            tracing_level=self.level,
            tracing_backend=self.backend,
            timestamp=dt.datetime.now(dt.UTC).isoformat(timespec="seconds") if self._entered else None,
            num_samples=samples,
            warmup_samples=warmup,
        )
