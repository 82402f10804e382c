"""Samples the machine while a worker runs its timed loop."""

from __future__ import annotations

from winml.modelkit.core.events import Event, OnEvent
from winml.modelkit.measuring.sessions import MachineSampled, SessionStarted
from winml.modelkit.session.monitor.hw_monitor import HWMonitor
from winml.modelkit.session.report import ReadingTrace, Usage, Utilization, Warm


class Watch:
    """Passes events on, and samples between the warm-up of a session and its end."""

    def __init__(self, on_event: OnEvent) -> None:
        self._pass_on = on_event
        self._pid: int | None = None
        self._running: HWMonitor | None = None
        self._summaries: list[Utilization] = []

    def on_event(self, event: Event) -> None:
        match event:
            case SessionStarted():
                self.end()
                self._pid = event.pid
            case Warm():
                self._running = HWMonitor(self._pid, on_sample=lambda latest: self._pass_on(MachineSampled(latest)))
                self._running.__enter__()
            case ReadingTrace():
                self.end()
        self._pass_on(event)

    def end(self) -> None:
        """Stop sampling; what was sampled is kept."""
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._summaries.append(self._running.summary())
            self._running = None

    def summary(self) -> Utilization:
        """The sessions together: mean weighted by samples, lowest and highest of all."""
        names = dict.fromkeys(name for s in self._summaries for name in s.sources)
        return Utilization(
            interval_s=self._summaries[0].interval_s if self._summaries else None,
            samples=sum(s.samples for s in self._summaries),
            sources={name: self._together(name) for name in names},
            missing={name: why for s in self._summaries for name, why in s.missing.items() if name not in names},
        )

    def _together(self, name: str) -> Usage:
        found = [(s.sources[name], s.samples) for s in self._summaries if name in s.sources]
        weight = sum(samples for _, samples in found)
        return Usage(
            mean=sum(f.mean * samples for f, samples in found) / weight,
            min=min(f.min for f, _ in found),
            max=max(f.max for f, _ in found),
        )
