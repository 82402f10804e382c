"""Notes that any command may print before its own work starts."""

from __future__ import annotations

from winml.modelkit.cli.console import say
from winml.modelkit.core.target import Target


def announce(target: Target) -> None:
    say("note", f"target {target}{' (simulated)' if target.simulated else ''}")


def announce_hub(words: str) -> None:
    say("note", words)


def announce_export(model: str) -> None:
    say("note", f"exporting {model}, which is not in the cache")
