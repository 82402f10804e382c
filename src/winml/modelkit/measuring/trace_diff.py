"""What changed between two operator traces: pure, from the traces alone.

Every operator of both traces is in exactly one change, every change in exactly one group, and a group holds changes of
one direction only: sums over groups are sums over what the runtime ran.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, Unit
from winml.modelkit.core.values import in_json, key
from winml.modelkit.measuring.trace_match import SWALLOWED, family, match_operators

Kind = Literal["same", "fused", "split", "appeared", "vanished"]
Direction = Literal["slower", "faster", "same", "unknown"]
Words = tuple[str, str]
"""The types on both sides, as a sentence names them."""

NOTABLE_PCT = 1.0
"""Share of a trace below which a change of time is not reported."""
CHANGED = 1.05
"""Ratio from which an operator counts as slower or faster."""


@dataclass(frozen=True, kw_only=True)
class TracedOperator:
    op_path: str
    type: str
    """Of the model's node where it is known."""
    op_type: str | None
    """The EP's own."""
    ep: str
    unit: Unit
    value: float | None
    """The median of its runs."""
    onnx_nodes: tuple[str, ...]

    @property
    def short_ep(self) -> str:
        return self.ep.removesuffix("ExecutionProvider")


@dataclass(frozen=True, kw_only=True)
class Move:
    """The EPs that operators left and went to."""

    source: str = key("from")
    target: str = key("to")


@dataclass(frozen=True, kw_only=True)
class Change:
    """Operators of one trace and those that correspond to them in the other; empty where none do."""

    before: tuple[TracedOperator, ...]
    after: tuple[TracedOperator, ...]

    @property
    @in_json
    def kind(self) -> Kind:
        if not self.before or not self.after:
            return "appeared" if self.after else "vanished"
        if len(self.before) == len(self.after):
            return "same"
        return "fused" if len(self.before) > len(self.after) else "split"

    @property
    @in_json
    def moved(self) -> Move | None:
        """Null where it stayed."""
        if not self.before or not self.after:
            return None
        move = Move(source=_eps(self.before), target=_eps(self.after))
        return None if move.source == move.target else move

    @property
    @in_json
    def unit(self) -> Unit | None:
        """The unit both sides are measured in; null where they differ, so that slower and faster are unknown."""
        units = {o.unit for o in (*self.before, *self.after)}
        return units.pop() if len(units) == 1 else None

    @property
    @in_json
    def before_value(self) -> float | None:
        return None if self.unit is None else _sum(o.value for o in self.before)

    @property
    @in_json
    def after_value(self) -> float | None:
        return None if self.unit is None else _sum(o.value for o in self.after)

    @property
    @in_json
    def delta(self) -> float | None:
        """After minus before, in `unit`; null where it is unknown."""
        before, after = self.before_value, self.after_value
        return None if before is None or after is None else after - before

    @property
    @in_json
    def direction(self) -> Direction:
        """Slower or faster by its own times; unknown where they cannot be compared."""
        before, after = self.before_value, self.after_value
        if before is None or after is None or not self.before or not self.after:
            return "unknown"
        if after > before * CHANGED:
            return "slower"
        return "faster" if before > after * CHANGED else "same"


def _sum(values: Iterable[float | None]) -> float | None:
    """None when one of them is not known."""
    found = list(values)
    known = [v for v in found if v is not None]
    return sum(known) if len(known) == len(found) else None


def _eps(operators: Iterable[TracedOperator]) -> str:
    return " and ".join(sorted({o.short_ep for o in operators}))


@dataclass(frozen=True, kw_only=True)
class ChangeGroup:
    """Changes that are alike: the same types on both sides, the same EPs, the same direction."""

    count: int
    kind: Kind
    direction: Direction
    before_types: Mapping[str, int]
    after_types: Mapping[str, int]
    moved: Move | None
    unit: Unit | None
    before_value: float | None
    after_value: float | None
    reason: str | None
    """A sentence where the change is notable; null where it is not."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    before: Mapping[str, float | None]
    after: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class TraceDiff:
    """All changes in order of execution, and a summary of them in groups."""

    changes: tuple[Change, ...]
    groups: tuple[ChangeGroup, ...]
    """The moves first, then by how much time they are about; what stayed as it was last."""
    totals: Totals
    notes: tuple[str, ...] = ()

    @property
    @in_json
    def counts(self) -> Mapping[str, int]:
        """Changes by kind."""
        return Counter(change.kind for change in self.changes)

    @property
    @in_json
    def moved(self) -> int:
        """How many went to another EP."""
        return sum(change.moved is not None for change in self.changes)

    @property
    @in_json
    def reasons(self) -> tuple[str, ...]:
        return tuple(group.reason for group in self.groups if group.reason is not None)


def diff(before: OpTraceResult, after: OpTraceResult) -> TraceDiff:
    """What changed from one trace to the other."""
    sides = [[o for o in trace.operators if o.origin != "boundary"] for trace in (before, after)]
    totals = Totals(before=_totals(before), after=_totals(after))
    changes: list[Change] = []
    alike: defaultdict[tuple[object, ...], list[Change]] = defaultdict(list)
    words_of: dict[tuple[object, ...], Words] = {}
    for left, right in match_operators(*sides):
        change = Change(before=tuple(map(_brief, left)), after=tuple(map(_brief, right)))
        changes.append(change)
        words = _describe_types(change, left, right)
        where = change.moved or _eps(change.before or change.after)
        like = (words, change.kind, where, change.direction, change.unit)
        alike[like].append(change)
        words_of[like] = words
    became = {words[0] for words in words_of.values() if words[0] and words[1] and words[0] != words[1]}
    groups = [_group(members, words_of[like], became, totals) for like, members in alike.items()]
    groups.sort(key=lambda found: found[0])
    return TraceDiff(
        changes=tuple(changes),
        groups=tuple(group for _, group in groups),
        totals=totals,
        notes=tuple(_notes(before, after)),
    )


def _brief(operator: OperatorMetrics) -> TracedOperator:
    return TracedOperator(
        op_path=operator.op_path,
        type=operator.type,
        op_type=operator.op_type,
        ep=operator.ep,
        unit=operator.unit,
        value=operator.median,
        onnx_nodes=operator.onnx_nodes,
    )


def _totals(trace: OpTraceResult) -> dict[str, float | None]:
    units = sorted({o.unit for o in trace.operators})
    return {
        "end_to_end_us": trace.summary.get("end_to_end_us"),
        **{f"operators_{u}": sum(o.average or 0.0 for o in trace.operators if o.unit == u) for u in units},
    }


def _notes(before: OpTraceResult, after: OpTraceResult) -> Iterator[str]:
    if before.metadata.ep != after.metadata.ep:
        yield f"the traces come from different EPs: {before.metadata.ep} and {after.metadata.ep}"
    if before.metadata.tracing_backend != after.metadata.tracing_backend:
        tools = f"{before.metadata.tracing_backend}; {after.metadata.tracing_backend}"
        yield f"the traces were made by different tools: {tools}"
    if before.metadata.simulated or after.metadata.simulated:
        yield "cycles of a simulator were compared; they rank operators roughly and say nothing about a device"
    few = min(before.metadata.num_samples, after.metadata.num_samples)
    if few < 5:
        runs = f"{few} measured run{'s' if few != 1 else ''}"
        yield f"one trace has {runs}; take more with `winml perf --iterations 20` before trusting a time"


def _describe_types(change: Change, before: Sequence[OperatorMetrics], after: Sequence[OperatorMetrics]) -> Words:
    """The types on both sides, the one that does the work first; those of the model where the EPs differ."""
    found = []
    for side in (before, after):
        ordered = sorted(side, key=lambda o: family(o) in SWALLOWED)
        counts = Counter(o.type if change.moved else o.op_type or o.type for o in ordered)
        found.append(" + ".join(kind if n == 1 else f"{n} {kind}" for kind, n in counts.items()))
    return found[0], found[1]


Rank = tuple[bool, bool, float, str]
"""Sort key: reported groups first, moves before others, then by how much time they are about."""


def _group(members: Sequence[Change], words: Words, became: set[str], totals: Totals) -> tuple[Rank, ChangeGroup]:
    """Alike changes; those of a type of which some became another are reported with the others of that type."""
    first, unit = members[0], members[0].unit
    before = _sum(c.before_value for c in members if c.before) if unit else None
    after = _sum(c.after_value for c in members if c.after) if unit else None
    delta = 0.0 if before is None or after is None else after - before
    reported = True
    if first.moved is None and words[0] == words[1] and words[0] not in became:
        limit = NOTABLE_PCT / 100.0 * (totals.before.get(f"operators_{unit}") or 0.0)
        reported = first.direction in ("slower", "faster") and abs(delta) >= limit
    sentence = _sentence(members, words, unit, before, after)
    group = ChangeGroup(
        count=len(members),
        kind=first.kind,
        direction=first.direction,
        before_types=Counter(o.op_type or o.type for c in members for o in c.before),
        after_types=Counter(o.op_type or o.type for c in members for o in c.after),
        moved=first.moved,
        unit=unit,
        before_value=before,
        after_value=after,
        reason=sentence if reported else None,
    )
    one_sided = first.kind in ("appeared", "vanished")
    about = (before or 0.0) + (after or 0.0) if one_sided else abs(delta)
    return (not reported, first.moved is None, -about, sentence), group


def _sentence(
    members: Sequence[Change], words: Words, unit: Unit | None, before: float | None, after: float | None
) -> str:
    first, many = members[0], len(members) > 1
    if first.kind in ("appeared", "vanished"):
        amount = "" if unit is None or before is None or after is None else f" ({_amount(before + after, unit)})"
        return f"{len(members)} {''.join(words)} on {_eps(first.before or first.after)} {first.kind}{amount}"
    parts = []
    if words[0] != words[1]:
        parts.append(f"became {words[1]}")
    if first.moved:
        parts.append(f"moved from {first.moved.source} to {first.moved.target}")
    if first.direction in ("slower", "faster"):
        parts.append(f"{'got' if parts else 'are' if many else 'is'} {first.direction}")
    elif first.direction == "same":
        parts.append("take as long" if many else "takes as long")
    figures = ""
    if unit is not None and before is not None and after is not None:
        ratio = f", {after / before:.2f}x" if before and after else ""
        figures = f" ({_amount(before, unit)} -> {_amount(after, unit)}{ratio})"
    return f"{len(members)} {words[0]} {' and '.join(parts)}{figures}"


def _amount(value: float, unit: Unit) -> str:
    return f"{value:,.0f} {'cycles' if unit == 'cycles' else 'µs'}"
