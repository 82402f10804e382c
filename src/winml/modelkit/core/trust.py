"""Who vouches for session settings: the command line for its own, a gate for those of a document.

A document is everything that the user did not type: build folders, configs, findings, journals, whatever a feed hands
out. The list of what a document may set belongs to the table of EPs (`ep/trust.py`); here is only where it is asked.
"""

from __future__ import annotations

from typing import Protocol


class OptionGate(Protocol):
    """Raises for a setting that whoever wrote it may not choose."""

    def check_option(self, name: str, value: str, where: str) -> None:
        """Refuse a provider option; `where` is its place in the document."""

    def check_entry(self, name: str, value: str, where: str) -> None:
        """Refuse a config entry of the runtime's session."""


class _OwnRequest:
    def check_option(self, name: str, value: str, where: str) -> None:
        pass

    def check_entry(self, name: str, value: str, where: str) -> None:
        pass


OWN_REQUEST: OptionGate = _OwnRequest()
"""For JSON that this command made itself and that nobody else can have written since: a worker's arguments."""
