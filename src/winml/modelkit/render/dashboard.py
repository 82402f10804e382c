"""Where the dashboard listens, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winml.modelkit.reporting.dashboard import DashboardReady


def ready_text(result: DashboardReady) -> str:
    return result.address
