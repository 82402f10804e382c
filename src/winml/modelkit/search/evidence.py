"""Own evidence for findings that would leave something out: the target is asked once before it is believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.finding import Finding
from winml.modelkit.search import insight as insights
from winml.modelkit.search.insight import Insight, Note
from winml.modelkit.search.space import Choice, Space
from winml.modelkit.search.tools import EDGES, Workbench, pieces

NOT_SEEN_WEIGHT = -10.0
"""What a finding that was not seen here still does: its levels come last."""


@dataclass(frozen=True)
class Seen:
    """What this machine says of a finding."""

    finding: str
    holds: bool
    words: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": "evidence", "finding": self.finding, "holds": self.holds, "words": self.words}


def asked(
    whole: Space, insight: Insight, findings: Iterable[Finding], bench: Workbench, known: Iterable[Seen]
) -> list[Seen]:
    """Where the nodes go here, for every confirmed placement finding that leaves a level out and is not `known`."""
    by_placement = {finding.id for finding in findings if finding.claim == "placement"} - {one.finding for one in known}
    first: dict[str, Choice] = {}
    for note in insight.notes:
        if note.kind == "skip" and note.source in by_placement:
            first.setdefault(note.source, whole.alone(note.option))
    return [_seen(name, choice, whole, bench) for name, choice in first.items()]


def _seen(name: str, choice: Choice, whole: Space, bench: Workbench) -> Seen:
    before = bench.placement(whole.base)
    try:
        after = bench.placement(whole.config(choice))
    except (RunFailedError, RequestError) as error:
        return Seen(name, True, f"here it does not run at all: {error.message}")
    if pieces(after) > pieces(before):
        more = {op: n - before["cpu_ops"].get(op, 0) for op, n in after["cpu_ops"].items() if op not in EDGES}
        ops = ", ".join(f"{op} x{n}" for op, n in more.items() if n > 0) or "more partitions"
        return Seen(name, True, f"seen here: {ops} on the CPU, {pieces(after)} pieces instead of {pieces(before)}")
    return Seen(name, False, f"not seen here: {pieces(after)} pieces as against {pieces(before)}")


def weighed(whole: Space, insight: Insight, seen: Iterable[Seen]) -> Insight:
    """The insight with what was seen: a finding that does not hold here orders, it does not prune."""
    known = {one.finding: one for one in seen}
    notes = [_weighed(note, known.get(note.source)) for note in insight.notes]
    return insights.insight(whole, notes, insight.waiting, insight.concerns)


def _weighed(note: Note, seen: Seen | None) -> Note:
    if seen is None or note.kind != "skip":
        return note
    reason = f"{note.reason}; {seen.words}"
    if seen.holds:
        return replace(note, reason=reason)
    return replace(note, kind="order", reason=reason, weight=NOT_SEEN_WEIGHT)


def from_records(records: Iterable[Mapping[str, Any]]) -> list[Seen]:
    """What an earlier run of the search has seen."""
    return [Seen(r["finding"], r["holds"], r["words"]) for r in records if r["kind"] == "evidence"]
