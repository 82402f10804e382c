"""Samples the machine while a worker runs its timed loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from winml.modelkit.session.monitor.hw_monitor import HWMonitor

OnEvent = Callable[[dict[str, Any]], None]


class Watch:
    """Passes events on, and samples between the warm-up of a session and its end."""

    def __init__(self, on_event: OnEvent) -> None:
        self._pass_on = on_event
        self._pid: int | None = None
        self._running: HWMonitor | None = None
        self._summaries: list[dict[str, Any]] = []

    def on_event(self, event: dict[str, Any]) -> None:
        if event["event"] == "session":
            self.end()
            self._pid = event["pid"]
        elif event["event"] == "warm":
            self._running = HWMonitor(self._pid, on_sample=self._sampled)
            self._running.__enter__()
        elif event["event"] == "tracing":
            self.end()
        self._pass_on(event)

    def _sampled(self, latest: Mapping[str, float]) -> None:
        self._pass_on({"event": "utilization", **latest})

    def end(self) -> None:
        """Stop sampling; what was sampled is kept."""
        if self._running is not None:
            self._running.__exit__(None, None, None)
            self._summaries.append(self._running.summary())
            self._running = None

    def summary(self) -> dict[str, Any]:
        """The sessions together: mean weighted by samples, lowest and highest of all."""
        names = dict.fromkeys(name for s in self._summaries for name in s["sources"])
        missing = {name: why for s in self._summaries for name, why in s["missing"].items() if name not in names}
        return {
            "interval_s": self._summaries[0]["interval_s"] if self._summaries else None,
            "samples": sum(s["samples"] for s in self._summaries),
            "sources": {name: self._together(name) for name in names},
            "missing": missing,
        }

    def _together(self, name: str) -> dict[str, float]:
        found = [(s["sources"][name], s["samples"]) for s in self._summaries if name in s["sources"]]
        weight = sum(samples for _, samples in found)
        return {
            "mean": sum(f["mean"] * samples for f, samples in found) / weight,
            "min": min(f["min"] for f, _ in found),
            "max": max(f["max"] for f, _ in found),
        }
