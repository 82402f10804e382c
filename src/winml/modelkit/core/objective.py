"""What a search optimizes."""

from __future__ import annotations

from typing import Literal

Objective = Literal["latency", "size", "placement", "first-token", "tokens-per-second", "memory"]
OBJECTIVES: tuple[Objective, ...] = ("latency", "size", "placement", "first-token", "tokens-per-second", "memory")
TIMED: tuple[Objective, ...] = ("latency", "first-token", "tokens-per-second")
"""Gains are speeds."""
MEASURED: tuple[Objective, ...] = (*TIMED, "memory")
"""What is measured in rounds; the others are counted."""
