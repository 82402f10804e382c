"""Feature gaps: what the tool or an EP lacks, and which findings show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.sections import choice, key, names, optional, text

SCHEMA = "winml/gap/1"


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


@dataclass(frozen=True)
class Gap:
    """One thing that is missing."""

    schema: str = key(_schema)
    id: str = key(text)
    title: str = key(text)
    status: str = key(choice("open", "filed", "closed"))
    category: str = key(choice("execution-provider", "analyze", "optimize", "quantize", "measure", "tooling"))
    summary: str = key(text)
    needed: str = key(text)
    findings: tuple[str, ...] = key(names, ())
    """Findings that show it."""
    eps: tuple[str, ...] = key(names, ())
    families: tuple[str, ...] = key(names, ())
    cause: str | None = key(optional(text), None)
    impact: tuple[str, ...] = key(names, ())
    discriminator: str | None = key(optional(text), None)
    """How to tell an affected model from another."""
    issue: str | None = key(optional(text), None)
    related: tuple[str, ...] = key(names, ())
    notes: tuple[str, ...] = key(names, ())

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def gap_from_json(value: Any) -> Gap:
    return sections.read(Gap, value, "")
