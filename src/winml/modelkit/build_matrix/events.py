"""The events of a matrix run."""

from __future__ import annotations

from winml.modelkit.build_matrix.disk import DiskUse
from winml.modelkit.build_matrix.plan import Cell
from winml.modelkit.build_matrix.progress import Progress
from winml.modelkit.build_matrix.state import CellRow
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import Event


@dataclass(frozen=True)
class CellsPlanned(Event):
    """What is known of all cells before the first of them is built."""

    progress: Progress


@dataclass(frozen=True)
class CellRecorded(Event):
    """A build or an upload of a cell was recorded in the journal."""

    row: CellRow
    progress: Progress
    disk: DiskUse


@dataclass(frozen=True)
class CellStarted(Event):
    cell: Cell


@dataclass(frozen=True)
class CellPublishing(Event):
    cell: Cell
