"""Which session settings are trusted: those of the command line, and those of a document that a gate allows.

A document is everything that the user did not type: build folders, configs, findings, journals, whatever comes from a
feed. The list of what a document may set belongs to the table of EPs (`ep/trust.py`); here is only where it is asked.
"""

from __future__ import annotations

from typing import Protocol


class OptionGate(Protocol):
    """Raises for a setting that a document may not choose."""

    def check_option(self, name: str, value: str, where: str) -> None:
        """Raise for a provider option that is not allowed; `where` is its place in the document."""

    def check_entry(self, name: str, value: str, where: str) -> None:
        """Raise for a config entry of the runtime's session that is not allowed."""


class _OwnRequest:
    def check_option(self, name: str, value: str, where: str) -> None:
        pass

    def check_entry(self, name: str, value: str, where: str) -> None:
        pass


OWN_REQUEST: OptionGate = _OwnRequest()
"""For JSON that this command made itself and that no other process can have changed since: a worker's arguments."""
