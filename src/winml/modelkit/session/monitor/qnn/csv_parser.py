"""Reads the CSV the QNN EP writes while it profiles, row by row.

Every run of a partition ends with its EXECUTE row. Rows carry no name of their partition: a partition is known by its
operators. The EP appends to a file that is there, and leaves an unfinished run when the process dies. Devices also
write rows whose value is no number (`UNKNOWN`, unit `OBJECT`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import BinaryIO

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.op_trace import Unit

HEADER = (
    "Msg Timestamp", "Message", "Time", "Unit of Measurement", "Timing Source", "Event Level", "Event Identifier",
)  # fmt: skip
SOURCES = "ONNX Source Ops"
_NODE = re.compile(r"(?P<name>.*?)(?P<join>[: ])?OpId_(?P<id>\d+)(?: \(\w+\))?")
_WITH_SOURCES = re.compile(r"(?P<event>.*OpId_\d+(?: \(\w+\))?),(?P<sources>.*)")
_UNITS: dict[str, Unit] = {"CYCLES": "cycles", "US": "us"}
_NUMBER = re.compile(r"-?\d{1,20}(?P<fraction>\.\d+)?")
_WORDS = ("UNKNOWN", "NULL", "true", "false")
"""Values that are whole and no number: the EP writes them for events of no interest here."""


class CsvError(ValueError):
    """The file is not a profile of the QNN EP."""


@dataclass(frozen=True)
class CsvNode:
    """One operator in one run."""

    name: str
    op_id: str
    value: float
    unit: Unit
    sources: tuple[str, ...]
    boundary: bool
    """The begin or end of the graph, which is no node of the model."""
    time_us: float | None = None
    """Microseconds, where the profile has them beside cycles."""


@dataclass(frozen=True)
class CsvRun:
    """One run of one partition."""

    nodes: tuple[CsvNode, ...]
    execute_us: float | None
    accelerator_us: float | None
    accelerator_cycles: float | None
    hvx_threads: float | None

    @property
    def signature(self) -> tuple[tuple[str, str], ...]:
        """What distinguishes its partition from the others."""
        return tuple((node.name, node.op_id) for node in self.nodes)


@dataclass
class _Building:
    nodes: list[CsvNode] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def finish(self, execute_us: float) -> CsvRun:
        return CsvRun(
            _one_per_operator(self.nodes),
            execute_us,
            self.figures.get("Accelerator (execute) time"),
            self.figures.get("Accelerator (execute) time (cycles)"),
            self.figures.get("Number of HVX threads used"),
        )


def _one_per_operator(nodes: list[CsvNode]) -> tuple[CsvNode, ...]:
    """The nodes, with microseconds beside the cycles of the same operator."""
    times = {(n.name, n.op_id): n.value for n in nodes if n.unit == "us"}
    counted = {(n.name, n.op_id) for n in nodes if n.unit == "cycles"} if times else set()
    if not counted & times.keys():
        return tuple(nodes)
    return tuple(
        replace(n, time_us=times.get((n.name, n.op_id))) if n.unit == "cycles" else n
        for n in nodes
        if n.unit == "cycles" or (n.name, n.op_id) not in counted
    )


@dataclass
class QnnCsv:
    """A profile; `notes` is complete after all runs were read."""

    path: Path
    begin: int = 0
    """Bytes at the begin of the file that an earlier trace left there."""
    notes: list[str] = field(default_factory=list)

    def runs(self) -> Iterator[CsvRun]:
        """The finished runs in order."""
        with self.path.open("rb") as stream:
            sourced = _check_header(stream.readline())
            if self.begin > stream.tell():
                self.notes.append(f"{self.path.name} held an earlier trace; only what was appended is read")
                stream.seek(self.begin)
            yield from self._runs(stream, sourced=sourced)

    def _runs(self, stream: BinaryIO, *, sourced: bool) -> Iterator[CsvRun]:
        run, damaged, headers = _Building(), 0, 0
        for line in stream:
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            if text.startswith(HEADER[0] + ","):
                sourced, headers = _check_header(line), headers + 1
                continue
            row = _row(text, sourced=sourced)
            if row is None:
                damaged += bool(text.strip())
                continue
            message, value, unit, event, sources = row
            if message == "EXECUTE":
                yield run.finish(value)
                run = _Building()
            elif message == "NODE" and unit in _UNITS:
                run.nodes.append(_node(event, value, _UNITS[unit], sources))
            elif message == "BACKEND":
                run.figures[event] = value
        if headers:
            self.notes.append(f"{self.path.name} holds {headers + 1} headers; traces were appended to it")
        if damaged:
            self.notes.append(f"{damaged} rows of {self.path.name} could not be read")
        if run.nodes:
            self.notes.append(f"the last run in {self.path.name} is incomplete and is skipped")


def _check_header(line: bytes) -> bool:
    """Whether the profile names ONNX nodes; an error for another header."""
    found = line.decode("utf-8", "replace").strip().lstrip("\ufeff").split(",")
    if tuple(found) in (HEADER, (*HEADER, SOURCES)):
        return len(found) > len(HEADER)
    shown = "".join(c if c.isprintable() else "?" for c in ",".join(found)[:80])
    raise CsvError(f"its header is `{shown}`, not that of a QNN profile")


def _row(text: str, *, sourced: bool) -> tuple[str, float, str, str, str] | None:
    """Message, value, unit, event and sources of a row; None for a row that is cut off or no row at all.

    A row whose value is no number is ignored, and its message is empty.
    """
    parts = text.split(",", len(HEADER) - 1)
    number = _NUMBER.fullmatch(parts[2]) if len(parts) == len(HEADER) else None
    if number is None:
        is_word = len(parts) == len(HEADER) and parts[2] in _WORDS
        return ("", 0, "", "", "") if is_word else None
    value = float(parts[2]) if number["fraction"] else int(parts[2])
    event, sources = parts[-1], ""
    if sourced:
        # Names may hold commas, so the event is found by how it ends.
        found = _WITH_SOURCES.fullmatch(event)
        event, sources = (found["event"], found["sources"]) if found else (event.rpartition(",")[0] or event, "")
    return parts[1], value, parts[3], event.strip('"'), sources.strip('"')


def _node(event: str, value: float, unit: Unit, sources: str) -> CsvNode:
    found = _NODE.fullmatch(event)
    if found is None:
        return CsvNode(event, "", value, unit, _names(sources), boundary=False)
    boundary = found["join"] == " " and found["name"] in ("Input", "Output")
    return CsvNode(found["name"], found["id"], value, unit, _names(sources), boundary)


def _names(sources: str) -> tuple[str, ...]:
    return tuple(name for name in sources.split(";") if name)
