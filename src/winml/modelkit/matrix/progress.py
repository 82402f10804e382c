"""How far a matrix is, and how long the rest probably takes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from winml.modelkit.matrix.state import CellState


@dataclass(frozen=True)
class Progress:
    """Counts of cells; every cell is done, failed or pending."""

    total: int
    done: int
    failed: int
    pending: int
    seconds_left: float | None
    """None when nothing was built yet that tells."""

    def to_json(self) -> dict[str, Any]:
        return vars(self).copy()


def progress(versions: Iterable[str], states: Mapping[str, CellState], *, feed: str | None, jobs: int) -> Progress:
    """The progress of some cells; what is left takes as long per cell as the builds so far, so many at once."""
    known = [states.get(version, CellState()) for version in versions]
    done = sum(state.is_done(feed) for state in known)
    failed = sum(state.has_failed for state in known)
    pending = len(known) - done - failed
    took = [state.build.seconds for state in known if state.build is not None]
    left = 0.0 if not pending else statistics.fmean(took) * pending / jobs if took else None
    return Progress(len(known), done, failed, pending, left)
