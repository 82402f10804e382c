"""The text of `winml trace diff`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from winml.modelkit.render.table import table

if TYPE_CHECKING:
    from winml.modelkit.measuring.trace_diff import Change, ChangeGroup, TraceDiff, TracedOperator

_UNITS = {"us": "µs", "cycles": "cycles"}


def _names(operators: Sequence[TracedOperator]) -> str:
    shown = [f"{o.type} {o.op_path}" for o in operators[:2]]
    more = f" +{len(operators) - 2}" if len(operators) > 2 else ""
    return (" + ".join(shown) + more)[:60]


def _ep(operators: Sequence[TracedOperator]) -> str:
    return " and ".join(sorted({o.short_ep for o in operators}))


def _value(operators: Sequence[TracedOperator]) -> str:
    units, values = {o.unit for o in operators}, [o.value for o in operators if o.value is not None]
    if len(units) != 1 or len(values) < len(operators):
        return ""
    return f"{sum(values):,.1f} {_UNITS[units.pop()]}"


def _weight(change: Change) -> tuple[bool, float]:
    """Moves first, then by the time concerned."""
    if change.delta is not None:
        return change.moved is None, -abs(change.delta)
    return change.moved is None, -sum(o.value or 0.0 for o in change.before or change.after)


def _row(change: Change) -> tuple[str, ...]:
    before, after = change.before, change.after
    what = "moved" if change.moved else change.kind
    return (
        what, _names(before), _ep(before), _value(before), _names(after) if after else "", _ep(after), _value(after),
    )  # fmt: skip


def _rest_lines(groups: Sequence[ChangeGroup]) -> list[str]:
    """Operators without a reason line, so that all are accounted for."""
    kinds: Counter[str] = Counter()
    for group in groups:
        if group.reason is None:
            kinds.update(group.after_types)
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    return [f"  unchanged: {counts}"] if kinds else []


def diff_text(result: TraceDiff, top_k: int) -> str:
    """The reasons, then the largest changes."""
    changed = [c for c in result.changes if c.kind != "same" or c.moved or c.delta]
    lines = ["what changed"]
    lines += [f"  {reason}" for reason in result.reasons[:top_k]] or ["  no significant change"]
    if len(result.reasons) > top_k:
        lines.append(f"  and {len(result.reasons) - top_k} more")
    lines += _rest_lines(result.groups)
    rows = [("", "before", "on", "", "after", "on", ""), *map(_row, sorted(changed, key=_weight)[:top_k])]
    names = ("change", "before", "before on", "before took", "after", "after on", "after took")
    if changed:
        lines += [
            f"operators ({len(changed)} of {len(result.changes)} differ)",
            table(rows, indent="  ", head=True, names=names, drop=(2, 5)),
        ]
    for name, totals in (("before", result.totals.before), ("after", result.totals.after)):
        known = [f"{key.replace('_', ' ')} {value:,.1f}" for key, value in totals.items() if value is not None]
        lines.append(f"{name}  {', '.join(known)}")
    return "\n".join(lines)
