"""Feature gaps: what the tool or an EP lacks, and which findings show it."""

from __future__ import annotations

from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import Names, Text

GapStatus = Literal["open", "filed", "closed"]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """One thing that is missing."""

    schema: Literal["winml/gap/1"] = "winml/gap/1"
    id: Text
    title: Text
    status: GapStatus
    category: Literal["execution-provider", "analyze", "optimize", "quantize", "measure", "tooling"]
    summary: Text
    needed: Text
    findings: Names = ()
    """Findings that show it."""
    eps: Names = ()
    families: Names = ()
    cause: Text | None = None
    impact: Names = ()
    discriminator: Text | None = None
    """How to recognize an affected model."""
    issue: Text | None = None
    related: Names = ()
    notes: Names = ()
