"""Progress of `winml perf`, on a terminal only."""

from __future__ import annotations

from winml.modelkit.cli.progress import LineProgress
from winml.modelkit.core.events import Event
from winml.modelkit.measuring.perf import PerfStarted
from winml.modelkit.measuring.sessions import CoolingDown, MachineSampled, PerfProtocol, SessionStarted
from winml.modelkit.render.perf import utilization_words
from winml.modelkit.session.report import Opened, ReadingTrace, RunsDone, Warm


class PerfProgress(LineProgress):
    """The runs of all sessions together, or their seconds where a duration was requested."""

    _protocol = PerfProtocol()
    _session = 0
    _now = "opening"
    _done: float | None = None
    """None until the first session is warm: opening says nothing about the time of runs."""
    _warm_at_s = 0.0
    _machine = ""

    def show(self, event: Event) -> None:
        match event:
            case PerfStarted():
                self._protocol, self._session, self._done = event.protocol, 0, None
                self.begin("opening")
                return
            case SessionStarted() | CoolingDown():
                self._session = event.session
                self._now = "cooling down" if isinstance(event, CoolingDown) else "opening"
            case Opened():
                self._now = "warming up"
            case Warm():
                self._now, self._warm_at_s = "running", self.elapsed_s
                self._done = self._session * self._per_session
            case RunsDone():
                seconds = min(self._per_session, self.elapsed_s - self._warm_at_s)
                within = event.done if self._protocol.duration_s is None else seconds
                self._done = self._session * self._per_session + within
            case MachineSampled():
                self._machine = utilization_words(event.latest)
            case ReadingTrace():
                self._now = "reading the trace"
            case _:
                return
        doing = f"session {self._session + 1} of {self._protocol.sessions}: {self._now}"
        self.step(doing, self._machine, done=self._done, total=self._protocol.sessions * self._per_session)

    @property
    def _per_session(self) -> float:
        """The runs of a session, or its seconds."""
        return self._protocol.duration_s or self._protocol.iterations
