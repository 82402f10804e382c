"""The monitor that observes nothing."""

from __future__ import annotations

from winml.modelkit.session.monitor.ep_monitor import EPMonitor


class NullEPMonitor(EPMonitor):
    """Used where no monitor was requested, so that callers need no check."""

    def _collect(self) -> None:
        return None
