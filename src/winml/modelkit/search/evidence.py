"""Local evidence for findings that would skip levels: the target is checked once before they are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.core.finding import Finding
from winml.modelkit.core.placement import Placement
from winml.modelkit.search.insight import Insight, make_insight
from winml.modelkit.search.records import EvidenceRecord
from winml.modelkit.search.space import Choice, ConfigJSON, Space
from winml.modelkit.search.tools import EDGES, count_pieces
from winml.modelkit.search.trial import Note

NOT_SEEN_WEIGHT = -10.0
"""Weight of a finding that was not reproduced here: its levels come last."""

Placer = Callable[[ConfigJSON], Placement]
"""Builds a config and returns where its nodes go."""


def ask_target(
    whole: Space, insight: Insight, findings: Iterable[Finding], place: Placer, known: Iterable[EvidenceRecord]
) -> list[EvidenceRecord]:
    """Where nodes go on this machine, for every confirmed placement finding that skips a level and is not `known`."""
    by_placement = {finding.id for finding in findings if finding.claim == "placement"} - {one.finding for one in known}
    first: dict[str, Choice] = {}
    for note in insight.notes:
        if note.kind == "skip" and note.source in by_placement:
            first.setdefault(note.source, whole.smallest_choice_with(note.option))
    found = []
    for name, choice in first.items():
        holds, words = _compare_placement(choice, whole, place)
        found.append(EvidenceRecord(finding=name, holds=holds, words=words))
    return found


def _compare_placement(choice: Choice, whole: Space, place: Placer) -> tuple[bool, str]:
    """Whether a choice is placed in more pieces than the baseline, and the explanation."""
    before = place(whole.base)
    try:
        after = place(whole.config(choice))
    except (RunFailedError, RequestError) as error:
        return True, f"it does not run on this machine: {error.message}"
    if count_pieces(after) <= count_pieces(before):
        return False, f"not seen here: {count_pieces(after)} pieces instead of {count_pieces(before)}"
    more = {op: n - before.cpu_ops.get(op, 0) for op, n in after.cpu_ops.items() if op not in EDGES}
    ops = ", ".join(f"{op} x{n}" for op, n in more.items() if n > 0) or "more partitions"
    return True, f"seen here: {ops} on the CPU, {count_pieces(after)} pieces instead of {count_pieces(before)}"


def apply_evidence(whole: Space, insight: Insight, evidence: Iterable[EvidenceRecord]) -> Insight:
    """The insight with local evidence: a finding that does not hold here changes the order, but skips nothing."""
    known = {one.finding: one for one in evidence}

    def apply(note: Note) -> Note:
        seen = known.get(note.source)
        if seen is None or note.kind != "skip":
            return note
        reason = f"{note.reason}; {seen.words}"
        if seen.holds:
            return replace(note, reason=reason)
        return replace(note, kind="order", reason=reason, weight=NOT_SEEN_WEIGHT)

    return make_insight(whole, map(apply, insight.notes), insight.waiting, insight.concerns)
