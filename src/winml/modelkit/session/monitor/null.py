"""The monitor that observes nothing."""

from __future__ import annotations

from winml.modelkit.session.monitor.ep_monitor import EPMonitor


class NullEPMonitor(EPMonitor):
    """Stands in where no monitor was asked for, so that nobody has to check."""

    def _collect(self) -> None:
        return None
