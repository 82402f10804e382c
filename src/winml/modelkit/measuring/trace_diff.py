"""What changed between two operator traces: pure, from the traces alone.

Every operator of both traces is in exactly one change, every change in exactly one group, and a group holds changes of
one direction only: sums over groups are sums over what the runtime ran.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, Unit
from winml.modelkit.measuring.trace_match import SWALLOWED, family, matched

Kind = Literal["same", "fused", "split", "appeared", "vanished"]
Direction = Literal["slower", "faster", "same", "unknown"]

NOTABLE_PCT = 1.0
"""Share of a trace below which a change of time is not worth a sentence."""
CHANGED = 1.05
"""Ratio from which an operator counts as slower or faster."""


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

    @property
    def direction(self) -> Direction:
        """Slower or faster by its own times; unknown where they cannot be compared."""
        if self.unit is None or not self.before or not self.after:
            return "unknown"
        before, after = self.value(self.before, self.unit), self.value(self.after, self.unit)
        if before is None or after is None:
            return "unknown"
        if after > before * CHANGED:
            return "slower"
        return "faster" if before > after * CHANGED else "same"

    def to_json(self) -> dict[str, Any]:
        moved, unit = self.moved, self.unit
        return {
            "kind": self.kind,
            "direction": self.direction,
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
class Group:
    """Changes that are alike: the same types on both sides, the same EPs, the same direction."""

    changes: tuple[Change, ...]
    words: tuple[str, str]
    """The types on both sides, as a sentence says them."""
    told: bool
    """Whether it is worth a sentence; what is not stayed as it was."""

    @property
    def values(self) -> tuple[float | None, float | None]:
        unit = self.unit
        if unit is None:
            return None, None
        sides = [
            [c.value(side, unit) for c in self.changes for side in ((c.before, c.after)[at],) if side] for at in (0, 1)
        ]
        before, after = (None if None in side else sum(v or 0.0 for v in side) for side in sides)
        return before, after

    @property
    def unit(self) -> Unit | None:
        units = {c.unit for c in self.changes}
        return units.pop() if len(units) == 1 else None

    @property
    def delta(self) -> float:
        before, after = self.values
        return 0.0 if before is None or after is None else after - before

    @property
    def sentence(self) -> str:
        first = self.changes[0]
        if first.kind in ("appeared", "vanished"):
            where = _eps(first.before or first.after)
            return f"{len(self.changes)} {''.join(self.words)} on {where} {first.kind}{self._figures()}"
        moved, parts, many = first.moved, [], len(self.changes) > 1
        if self.words[0] != self.words[1]:
            parts.append(f"became {self.words[1]}")
        if moved:
            parts.append(f"moved from {moved[0]} to {moved[1]}")
        if first.direction in ("slower", "faster"):
            parts.append(f"{'got' if parts else 'are' if many else 'is'} {first.direction}")
        elif first.direction == "same":
            parts.append("takes as long" if not many else "take as long")
        return f"{len(self.changes)} {self.words[0]} {' and '.join(parts)}{self._figures()}"

    def _figures(self) -> str:
        unit, (before, after) = self.unit, self.values
        if unit is None or before is None or after is None:
            return ""
        if self.changes[0].kind in ("appeared", "vanished"):
            return f" ({_amount(before + after, unit)})"
        ratio = f", {after / before:.2f}x" if before and after else ""
        return f" ({_amount(before, unit)} -> {_amount(after, unit)}{ratio})"

    def to_json(self) -> dict[str, Any]:
        before, after = self.values
        moved = self.changes[0].moved
        return {
            "count": len(self.changes),
            "kind": self.changes[0].kind,
            "direction": self.changes[0].direction,
            "before_types": dict(Counter(_word(o) for c in self.changes for o in c.before)),
            "after_types": dict(Counter(_word(o) for c in self.changes for o in c.after)),
            "moved": None if moved is None else {"from": moved[0], "to": moved[1]},
            "unit": self.unit,
            "before_value": before,
            "after_value": after,
            "reason": self.sentence if self.told else None,
        }


@dataclass(frozen=True)
class TraceDiff:
    """All changes in order of execution, and what they come to in words."""

    changes: tuple[Change, ...]
    groups: tuple[Group, ...]
    """The moves first, then by how much time they are about; what stayed as it was last."""
    totals: dict[str, dict[str, float | None]]
    notes: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(group.sentence for group in self.groups if group.told)

    def to_json(self) -> dict[str, Any]:
        return {
            "changes": [change.to_json() for change in self.changes],
            "counts": dict(Counter(change.kind for change in self.changes)),
            "moved": sum(change.moved is not None for change in self.changes),
            "groups": [group.to_json() for group in self.groups],
            "reasons": list(self.reasons),
            "totals": self.totals,
            "notes": list(self.notes),
        }


def diff(before: OpTraceResult, after: OpTraceResult) -> TraceDiff:
    """What changed from one trace to the other."""
    sides = [[o for o in trace.operators if o.origin != "boundary"] for trace in (before, after)]
    changes = tuple(Change(*members) for members in matched(*sides))
    totals = _totals(before, after)
    return TraceDiff(changes, tuple(_groups(changes, totals)), totals, tuple(_notes(before, after)))


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
        yield f"one trace has {runs}; take more with `winml perf --iterations 20` before trusting a time"


def _word(operator: OperatorMetrics) -> str:
    """The type in the runtime's own words, as its profile counts it."""
    return operator.op_type or operator.type


def _words(change: Change) -> tuple[str, str]:
    """The types on both sides, the one that does the work first; those of the model where the EPs differ."""
    name = (lambda o: o.type) if change.moved else _word
    found = []
    for side in (change.before, change.after):
        ordered = sorted(side, key=lambda o: family(o) in SWALLOWED)
        counts = Counter(name(o) for o in ordered)
        found.append(" + ".join(kind if n == 1 else f"{n} {kind}" for kind, n in counts.items()))
    return found[0], found[1]


def _amount(value: float, unit: Unit) -> str:
    return f"{value:,.0f} {'cycles' if unit == 'cycles' else 'µs'}"


def _groups(changes: Sequence[Change], totals: dict[str, dict[str, float | None]]) -> list[Group]:
    """Alike changes together; those of one type that became another tell also how many of the type did not."""
    alike: defaultdict[tuple[Any, ...], list[Change]] = defaultdict(list)
    for change in changes:
        where = change.moved or _eps(change.before or change.after)
        alike[_words(change), change.kind, where, change.direction, change.unit].append(change)
    became = {words[0] for words, *_ in alike if words[0] and words[1] and words[0] != words[1]}
    found = []
    for (words, *_), members in alike.items():
        group = Group(tuple(members), words, told=True)
        same = members[0].moved is None and words[0] == words[1]
        if same and words[0] not in became:
            unit = group.unit
            limit = NOTABLE_PCT / 100.0 * (totals["before"].get(f"operators_{unit}") or 0.0)
            worth = members[0].direction in ("slower", "faster") and abs(group.delta) >= limit
            group = Group(tuple(members), words, told=worth)
        found.append(group)
    return sorted(found, key=_rank)


def _rank(group: Group) -> tuple[bool, bool, float, str]:
    """What is told first, moves before all; then by how much time it is about."""
    one_sided = group.changes[0].kind in ("appeared", "vanished")
    before, after = group.values
    about = (before or 0.0) + (after or 0.0) if one_sided else abs(group.delta)
    return not group.told, group.changes[0].moved is None, -about, group.sentence
