"""Reads the profile ONNX Runtime writes: a JSON array of trace events, one per line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.json_text import parse_json

_KERNEL = "_kernel_time"
_CONTAINERS = ("If", "Loop", "Scan", "SequenceMap")


@dataclass(frozen=True)
class NodeEvent:
    """One execution of a node."""

    name: str
    op_type: str
    provider: str
    node_index: int | None
    start_us: float
    duration_us: float
    data_type: str | None = None
    dims: tuple[int, ...] | None = None


@dataclass
class ProfileRun:
    """The events of one run."""

    start_us: float
    duration_us: float
    nodes: list[NodeEvent]


@dataclass
class Profile:
    """All runs in order, with what was odd about the file."""

    runs: list[ProfileRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _events(path: Path, notes: list[str]) -> Iterator[dict[str, Any]]:
    damaged = 0
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            text = line.strip().rstrip(",").removeprefix("[").removesuffix("]").strip()
            if not text:
                continue
            try:
                event = parse_json(text, lenient=True)
            except ValueError:
                damaged += 1
                continue
            if isinstance(event, dict):
                yield event
    if damaged:
        notes.append(f"{damaged} lines of {path.name} could not be read; the file is truncated or damaged")


def _output(args: dict[str, Any]) -> tuple[str | None, tuple[int, ...] | None]:
    shapes = args.get("output_type_shape") or [{}]
    kind, dims = next(iter(shapes[0].items()), (None, None))
    return kind, None if dims is None else tuple(int(d) for d in dims)


def _node(event: dict[str, Any]) -> NodeEvent | None:
    name, args = str(event.get("name", "")), event.get("args") or {}
    if not name.endswith(_KERNEL) or "op_name" not in args:
        return None  # older runtimes also write when a node waits (`_fence_before`)
    index = str(args.get("node_index", ""))
    kind, dims = _output(args)
    return NodeEvent(
        name.removesuffix(_KERNEL),
        str(args["op_name"]),
        str(args.get("provider", "CPUExecutionProvider")),
        int(index) if index.isdigit() else None,
        float(event["ts"]),
        float(event["dur"]),
        kind,
        dims,
    )


def _own_time(nodes: list[NodeEvent]) -> list[NodeEvent]:
    """The nodes without the time of those they contain: a Loop spans its body."""
    from dataclasses import replace

    if not any(n.op_type in _CONTAINERS for n in nodes):
        return nodes
    inside = [0.0] * len(nodes)
    for at, node in enumerate(nodes):
        around = [
            i
            for i, outer in enumerate(nodes)
            if i != at
            and outer.op_type in _CONTAINERS
            and outer.start_us <= node.start_us
            and node.start_us + node.duration_us <= outer.start_us + outer.duration_us
        ]
        if around:
            inside[min(around, key=lambda i: nodes[i].duration_us)] += node.duration_us
    return [replace(n, duration_us=max(0.0, n.duration_us - i)) for n, i in zip(nodes, inside, strict=True)]


def _take(event: dict[str, Any], waiting: dict[Any, list[NodeEvent]], profile: Profile) -> None:
    """Add an event to the profile, or to the nodes that wait for the end of their run."""
    thread = event.get("tid")
    if event.get("cat") == "Node":
        node = _node(event)
        if node is not None:
            waiting.setdefault(thread, []).append(node)
    elif event.get("name") == "model_run":
        run = float(event["ts"]), float(event["dur"])
        profile.runs.append(ProfileRun(*run, _own_time(waiting.pop(thread, []))))


def read_profile(path: Path) -> Profile:
    """The runs in a profile; events of concurrent runs are distinguished by their thread."""
    profile = Profile()
    waiting: dict[Any, list[NodeEvent]] = {}
    strange = 0
    for event in _events(path, profile.notes):
        try:
            _take(event, waiting, profile)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            strange += 1
    if strange:
        profile.notes.append(f"{strange} events of {path.name} have an unknown format and are skipped")
    left = sum(map(len, waiting.values()))
    if left:
        profile.notes.append(f"{left} node events belong to a run that did not end")
    return profile
