"""What changed between two operator traces: pure, from the traces alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from winml.modelkit.bench.trace_match import SWALLOWED, family, matched
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, Unit

Kind = Literal["same", "fused", "split", "appeared", "vanished"]

NOTABLE_PCT = 1.0
"""Share of a trace below which a change of time is not worth a sentence."""
CHANGED = 1.05
"""Ratio from which a group of operators counts as slower or faster."""


def _ep(operator: OperatorMetrics) -> str:
    return operator.ep.removesuffix("ExecutionProvider")


@dataclass(frozen=True)
class Change:
    """Operators of one trace and what stands for them in the other; empty where nothing does."""

    before: tuple[OperatorMetrics, ...]
    after: tuple[OperatorMetrics, ...]

    @property
    def kind(self) -> Kind:
        if not self.before or not self.after:
            return "appeared" if self.after else "vanished"
        if len(self.before) == len(self.after):
            return "same"
        return "fused" if len(self.before) > len(self.after) else "split"

    @property
    def moved(self) -> tuple[str, str] | None:
        """The EPs it left and went to; None where it stayed."""
        if not self.before or not self.after:
            return None
        eps = _eps(self.before), _eps(self.after)
        return eps if eps[0] != eps[1] else None

    def value(self, operators: Sequence[OperatorMetrics], unit: Unit) -> float | None:
        """The sum of their medians; None when one of them is measured in another unit or not at all."""
        values = [o.median for o in operators if o.unit == unit]
        known = [v for v in values if v is not None]
        return sum(known) if len(known) == len(operators) else None

    @property
    def unit(self) -> Unit | None:
        """The unit both sides are measured in; None where they differ, and nothing can be said of slower or faster."""
        units = {o.unit for o in (*self.before, *self.after)}
        return units.pop() if len(units) == 1 else None

    @property
    def delta(self) -> float | None:
        """After minus before, in `unit`; None where that cannot be said."""
        if self.unit is None:
            return None
        before, after = self.value(self.before, self.unit), self.value(self.after, self.unit)
        return None if before is None or after is None else after - before

    def to_json(self) -> dict[str, Any]:
        moved, unit = self.moved, self.unit
        return {
            "kind": self.kind,
            "before": [_brief(o) for o in self.before],
            "after": [_brief(o) for o in self.after],
            "unit": unit,
            "before_value": None if unit is None else self.value(self.before, unit),
            "after_value": None if unit is None else self.value(self.after, unit),
            "delta": self.delta,
            "moved": None if moved is None else {"from": moved[0], "to": moved[1]},
        }


def _eps(operators: Iterable[OperatorMetrics]) -> str:
    return " and ".join(sorted({_ep(o) for o in operators}))


def _brief(operator: OperatorMetrics) -> dict[str, Any]:
    return {
        "op_path": operator.op_path,
        "type": operator.type,
        "op_type": operator.op_type,
        "ep": operator.ep,
        "unit": operator.unit,
        "value": operator.median,
        "onnx_nodes": list(operator.onnx_nodes),
    }


@dataclass(frozen=True)
class TraceDiff:
    """All changes in order of execution, and the most important of them in words."""

    changes: tuple[Change, ...]
    reasons: tuple[str, ...]
    totals: dict[str, dict[str, float | None]]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "changes": [change.to_json() for change in self.changes],
            "counts": dict(Counter(change.kind for change in self.changes)),
            "moved": sum(change.moved is not None for change in self.changes),
            "reasons": list(self.reasons),
            "totals": self.totals,
            "notes": list(self.notes),
        }


def diff(before: OpTraceResult, after: OpTraceResult) -> TraceDiff:
    """What changed from one trace to the other."""
    sides = [[o for o in trace.operators if o.origin != "boundary"] for trace in (before, after)]
    changes = tuple(Change(*members) for members in matched(*sides))
    totals = _totals(before, after)
    return TraceDiff(changes, tuple(_reasons(changes, totals)), totals, tuple(_notes(before, after)))


def _totals(before: OpTraceResult, after: OpTraceResult) -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = {}
    for name, trace in (("before", before), ("after", after)):
        units = {o.unit for o in trace.operators}
        found[name] = {
            "end_to_end_us": trace.summary.get("end_to_end_us"),
            **{f"operators_{u}": sum(o.average or 0.0 for o in trace.operators if o.unit == u) for u in sorted(units)},
        }
    return found


def _notes(before: OpTraceResult, after: OpTraceResult) -> Iterator[str]:
    if before.metadata.ep != after.metadata.ep:
        yield f"the traces are of two EPs: {before.metadata.ep} and {after.metadata.ep}"
    if before.metadata.tracing_backend != after.metadata.tracing_backend:
        yield f"the traces were made by two tools: {before.metadata.tracing_backend}; {after.metadata.tracing_backend}"
    if before.metadata.simulated or after.metadata.simulated:
        yield "cycles of a simulator were compared; they rank operators roughly and say nothing about a device"
    few = min(before.metadata.num_samples, after.metadata.num_samples)
    if few < 5:
        runs = f"{few} measured run{'s' if few != 1 else ''}"
        yield f"one trace has {runs}; take more with `--iterations` before trusting a time"


def _words(change: Change) -> tuple[str, str]:
    """The types on both sides; the EP's own where the model's are the same."""
    sides = [_main(side) for side in (change.before, change.after)]
    words = [o.type if o else "" for o in sides]
    if words[0] == words[1] and sides[0] and sides[1] and sides[0].op_type and sides[1].op_type and not change.moved:
        words = [sides[0].op_type, sides[1].op_type]
    return words[0], words[1]


def _main(operators: Sequence[OperatorMetrics]) -> OperatorMetrics | None:
    """The operator a group is spoken of by: not one that others swallow."""
    inner = [o for o in operators if family(o) not in SWALLOWED]
    return next(iter(inner or operators), None)


def _amount(value: float, unit: Unit) -> str:
    return f"{value:,.0f} {'cycles' if unit == 'cycles' else 'µs'}"


def _time(members: Sequence[Change]) -> tuple[float, str, str]:
    """How much a group changed, its word and its figures; nothing where units differ."""
    unit, deltas = members[0].unit, [m.delta for m in members]
    if unit is None or any(m.unit != unit for m in members) or any(d is None for d in deltas):
        return 0.0, "", ""
    before = sum(m.value(m.before, unit) or 0.0 for m in members)
    after = sum(m.value(m.after, unit) or 0.0 for m in members)
    figures = f"{_amount(before, unit)} -> {_amount(after, unit)}"
    if before and after and after / before >= CHANGED:
        return after - before, "slower", f"{figures}, {after / before:.2f}x"
    if before and after and before / after >= CHANGED:
        return after - before, "faster", f"{figures}, {after / before:.2f}x"
    return after - before, "", figures


def _sentence(count: int, words: tuple[str, str], moved: tuple[str, str] | None, speed: str, figures: str) -> str:
    parts = []
    if words[0] != words[1]:
        parts.append(f"became {words[1]}")
    if moved:
        parts.append(f"moved from {moved[0]} to {moved[1]}")
    if speed and not moved:
        parts.append(f"{'are' if not parts and count > 1 else 'is' if not parts else 'got'} {speed}")
    tail = f" ({figures})" if figures else ""
    return f"{count} {words[0]} {' and '.join(parts)}{tail}"


def _one_sided(changes: Sequence[Change]) -> Iterator[tuple[float, str]]:
    """What appeared or vanished, by type and EP, with what it takes."""
    found: defaultdict[tuple[str, str, Unit, Kind], list[float]] = defaultdict(list)
    for change in changes:
        if change.kind in ("appeared", "vanished"):
            for o in change.before or change.after:
                found[o.type, _ep(o), o.unit, change.kind].append(o.median or 0.0)
    for (name, ep, unit, kind), values in found.items():
        yield sum(values), f"{len(values)} {name} on {ep} {kind} ({_amount(sum(values), unit)})"


def _reasons(changes: Sequence[Change], totals: dict[str, dict[str, float | None]]) -> Iterator[str]:
    """Sentences, the moves first, then by how much time they are about."""
    alike: defaultdict[tuple[tuple[str, str], tuple[str, str] | None], list[Change]] = defaultdict(list)
    for change in changes:
        if change.before and change.after:
            alike[_words(change), change.moved].append(change)
    ranked: list[tuple[bool, float, str]] = []
    for (words, moved), members in alike.items():
        delta, speed, figures = _time(members)
        if moved or words[0] != words[1] or (speed and abs(delta) >= _notable(members, totals)):
            ranked.append((moved is None, -abs(delta), _sentence(len(members), words, moved, speed, figures)))
    ranked += [(True, -value, text) for value, text in _one_sided(changes)]
    yield from (text for _, _, text in sorted(ranked))


def _notable(members: Sequence[Change], totals: dict[str, dict[str, float | None]]) -> float:
    unit = members[0].unit
    total = totals["before"].get(f"operators_{unit}") or 0.0
    return NOTABLE_PCT / 100.0 * total
