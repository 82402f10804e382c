"""Finds the schematic the QNN EP writes into the working directory while it opens an optrace session."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection
from pathlib import Path

log = logging.getLogger(__name__)

_PATTERN = "*_schematic.bin"
TOLERANCE_S = 5.0
"""Clocks of file systems differ; an older schematic is another graph's, and its trace would be silently wrong."""


def _fresh(path: Path, begun_s: float, partitions: Collection[str]) -> bool:
    made_s = path.stat().st_mtime
    fresh = made_s >= begun_s - TOLERANCE_S
    ours = not partitions or path.name.removesuffix("_schematic.bin") in partitions
    log.info(
        "schematic %s was made at %.3f, the trace began at %.3f: %s",
        path, made_s, begun_s, "taken" if fresh and ours else "refused",
    )  # fmt: skip
    return fresh and ours


def find_schematics(
    folder: Path, *, begun_s: float, partitions: Collection[str] = (), working: Path | None = None
) -> list[Path]:
    """The schematics of this trace, in its folder; those in the working directory are copied there first."""
    working = working or Path.cwd()
    if working != folder:
        for path in sorted(working.glob(_PATTERN)):
            if _fresh(path, begun_s, partitions):
                shutil.copy2(path, folder / path.name)
    return [p for p in sorted(folder.glob(_PATTERN)) if _fresh(p, begun_s, partitions)]
