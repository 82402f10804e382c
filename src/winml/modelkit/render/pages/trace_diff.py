"""The report of `winml trace diff`: which operators took longer, moved, came and went, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from winml.modelkit.render.figures.slope import Slope, slope_figure
from winml.modelkit.render.pages.common import model_name, notices
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Page, Table, table
from winml.modelkit.render.units import amount, counted

if TYPE_CHECKING:
    from winml.modelkit.core.op_trace import Unit
    from winml.modelkit.measuring.trace import TraceDiffResult
    from winml.modelkit.measuring.trace_diff import Change, ChangeGroup, TraceDiff, TracedOperator

_UNITS = {"us": "µs", "cycles": "cycles"}
_MOST_SLOPES = 8
_MOST_REASONS = 12
_MOST_ROWS = 100
_ALIKE = 0.005
"""Part of the largest value below which a group did not change."""


def trace_diff_page(result: TraceDiffResult) -> Page:
    """What changed from one trace to another."""
    title = f"From {model_name(result.before)} to {model_name(result.after)}"
    named = Facts("Traces", (("before", result.before), ("after", result.after)))
    blocks = (*notices(result.diff.notes), *trace_diff_blocks(result.diff), named)
    return Page(
        "trace diff", title, diff_sentence(result.diff), blocks, None if _has_changes(result.diff) else "no change"
    )


def trace_diff_blocks(diff: TraceDiff) -> tuple[Block, ...]:
    """Slopes per unit, the reasons in words and the operators that differ."""
    units = ("cycles", "us") if any(group.unit == "cycles" for group in diff.groups) else ("us",)
    found: list[Block] = []
    for unit in units:
        found += _slopes(diff, unit, f"-{unit}" if found else "")
    return (*found, *_reasons(diff), *_change_table(diff), _totals(diff))


def diff_sentence(diff: TraceDiff) -> str:
    """What the whole took before and takes now, and what that is due to."""
    said = []
    for name, unit in (("end_to_end_us", "us"), ("operators_cycles", "cycles"), ("operators_us", "us")):
        before, after = diff.totals.before.get(name), diff.totals.after.get(name)
        if before is None or after is None:
            continue
        what = "A run" if name == "end_to_end_us" else "All operators together"
        verb = "takes" if name == "end_to_end_us" else "take"
        said.append(f"{what} {verb} {_amount(after, unit)} and took {_amount(before, unit)}{_times(before, after)}.")
        break
    if diff.moved:
        said.append(f"{counted(diff.moved, 'operator')} went to another EP.")
    if not _has_changes(diff):
        said.append("No operator changed notably.")
    elif diff.reasons:
        said.append(f"Most notable: {diff.reasons[0]}.")
    return " ".join(said)


def _has_changes(diff: TraceDiff) -> bool:
    return bool(diff.reasons or diff.moved)


def _times(before: float, after: float) -> str:
    return f" ({after / before:.2f} times)" if before > 0 and after > 0 else ""


def _amount(value: float, unit: str) -> str:
    """`11.2 M cycles`, `187.6 ms`, `41.0 µs`."""
    if unit == "us":
        return f"{value:.1f} µs" if value < 1000 else f"{value / 1000:,.1f} ms"
    return f"{amount(round(value))} cycles"


def _exact(value: float | None, unit: str | None) -> str:
    return "unknown" if value is None or unit is None else f"{value:,.1f} {_UNITS[unit]}"


def _slopes(diff: TraceDiff, unit: str, suffix: str) -> list[Block]:
    """The groups that changed most in one unit; nothing where none did."""
    known = [
        (group, group.before_value, group.after_value)
        for group in diff.groups
        if group.unit == unit and group.before_value is not None and group.after_value is not None
    ]
    known.sort(key=lambda one: -abs(one[2] - one[1]))
    largest = max((max(before, after) for _, before, after in known), default=0.0)
    changed = [one for one in known if abs(one[2] - one[1]) > _ALIKE * largest]
    if not changed:
        return []
    slopes = [_slope(group, before, after, unit) for group, before, after in changed[:_MOST_SLOPES]]
    slower = sum(after - before for _, before, after in known if after > before)
    faster = sum(before - after for _, before, after in known if after < before)
    sentence = f"{_how(*changed[0], unit)} All groups together: {_amount(slower, unit)} more and "
    sentence += f"{_amount(faster, unit)} less." if faster else "nothing less."
    left = len(known) - len(slopes)
    if left:
        sentence += f" {counted(left, 'group')} that changed less {'is' if left == 1 else 'are'} not drawn."
    if unit == "cycles":
        sentence += " Cycles are no time: operators of an accelerator run beside each other."
    title = "Before and after" if unit == "us" else "Before and after, in cycles"
    return [Figure(f"changes{suffix}", title, sentence, lambda width: slope_figure(slopes, sentence, width),
                   _group_table(known, unit))]  # fmt: skip


def _how(group: ChangeGroup, before: float, after: float, unit: str) -> str:
    if group.kind == "appeared":
        return f"{_label(group)} appeared: {_amount(after, unit)}."
    if group.kind == "vanished":
        return f"{_label(group)} vanished: {_amount(before, unit)}."
    return f"{_label(group)}: from {_amount(before, unit)} to {_amount(after, unit)}."


def _slope(group: ChangeGroup, before: float, after: float, unit: str) -> Slope:
    """A group; what is not there on one side is drawn from zero, but not called zero."""
    grew, came, went = after > before, group.kind == "appeared", group.kind == "vanished"
    arrow = "▲" if grew else "▼"
    change = f"{arrow} new" if came else f"{arrow} gone" if went else f"{arrow} {_ratio(before, after)}"
    old = "not there" if came else _exact(before, unit)
    new = "not there" if went else _exact(after, unit)
    reason = f"; {group.reason}" if group.reason else ""
    return Slope(
        _label(group),
        f"{_label(group)}: before {old}, after {new}{reason}",
        before,
        after,
        "not there" if came else _short(before),
        "not there" if went else _short(after),
        change,
        "bad" if grew else "good",
    )


def _ratio(before: float, after: float) -> str:
    """`8.64 ×`; in words where a ratio says nothing."""
    if before <= 0 or after <= 0:
        return "to zero" if after <= 0 else "from zero"
    return f"{after / before:.2f} ×" if after / before >= 0.005 else "below 0.01 ×"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 100 else amount(round(value))


def _label(group: ChangeGroup) -> str:
    """`3 Conv2d + Relu → Conv2d`."""
    before, after = _types(group.before_types, group.count), _types(group.after_types, group.count)
    many = f"{group.count} × " if group.count > 1 else ""
    if group.moved is not None:
        after = f"{after} on {group.moved.target}"
    return many + (before or after if not before or not after or before == after else f"{before} → {after}")


def _types(types: Mapping[str, int], count: int) -> str:
    """Types of one change of a group that holds `count` of them."""
    words = [kind if n <= count else f"{round(n / count)} {kind}" for kind, n in sorted(types.items())]
    return " + ".join(words[:3]) + (f" + {len(words) - 3} more" if len(words) > 3 else "")


def _group_table(known: Sequence[tuple[ChangeGroup, float, float]], unit: str) -> Table:
    word = _UNITS[unit]
    rows = [
        (
            _label(group),
            str(group.count),
            "not there" if group.kind == "appeared" else Cell(f"{before:,.1f}", sort=before),
            "not there" if group.kind == "vanished" else Cell(f"{after:,.1f}", sort=after),
            Cell(f"{after - before:+,.1f}", sort=after - before),
            Cell(f"{after / before:.2f}", sort=after / before) if before > 0 else "",
        )
        for group, before, after in known[:_MOST_ROWS]
    ]
    head = ("operators", "changes", f"before {word}", f"after {word}", "difference", "ratio")
    folded = None if len(known) <= _MOST_ROWS else f"numbers of the {_MOST_ROWS} largest of {len(known)} groups"
    return table("Groups", head, rows, numeric=(1, 2, 3, 4, 5), folded=folded)


def _reasons(diff: TraceDiff) -> tuple[Block, ...]:
    """What is notable in words; what is not, as a count."""
    rows = [(group.reason, _what(group)) for group in diff.groups if group.reason is not None]
    quiet = sum(group.count for group in diff.groups if group.reason is None)
    note = None if not quiet else f"{counted(quiet, 'operator')} stayed as {'it was' if quiet == 1 else 'they were'}."
    if not rows:
        return ()
    shown, left = rows[:_MOST_REASONS], rows[_MOST_REASONS:]
    head = ("what happened", "kind")
    blocks: list[Block] = [table("What changed", head, shown, note=note)]
    if left:
        more = counted(len(left), "smaller change")
        blocks.append(table(f"{more[0].upper()}{more[1:]}", head, left[:_MOST_ROWS], folded=more))
    return tuple(blocks)


def _what(group: ChangeGroup) -> str | Cell:
    if group.moved is not None:
        return f"moved to {group.moved.target}"
    if group.direction in ("slower", "faster"):
        return Cell(group.direction, state=group.direction)
    return group.kind


def _change_table(diff: TraceDiff) -> tuple[Block, ...]:
    changed = [one for one in diff.changes if one.kind != "same" or one.moved or one.delta]
    if not changed:
        return ()
    changed.sort(key=_weight)
    rows = [
        (
            "moved" if one.moved else one.kind,
            _names(one.before),
            _eps(one.before),
            _names(one.after),
            _eps(one.after),
            _side(one.before),
            _side(one.after),
            "" if one.delta is None else Cell(f"{one.delta:+,.1f}", sort=one.delta),
        )
        for one in changed[:_MOST_ROWS]
    ]
    head = ("", "before", "on", "after", "on", "took", "takes", "difference")
    count = f"{counted(len(changed), 'operator')} of {len(diff.changes)} differ"
    if len(changed) > _MOST_ROWS:
        count += f"; the {_MOST_ROWS} that differ most"
    return (table("Operators that differ", ("kind", *head[1:]), rows, numeric=(5, 6, 7), folded=count),)


def _weight(change: Change) -> tuple[bool, float]:
    """Moves first, then by the time concerned."""
    about = change.delta
    if about is None:
        about = sum(one.value or 0.0 for one in change.before or change.after)
    return change.moved is None, -abs(about)


def _names(operators: Sequence[TracedOperator]) -> str:
    shown = [f"{one.type} {one.op_path}" for one in operators[:2]]
    return " + ".join(shown) + (f" + {len(operators) - 2} more" if len(operators) > 2 else "")


def _eps(operators: Sequence[TracedOperator]) -> str:
    return " and ".join(sorted({one.short_ep for one in operators}))


def _side(operators: Sequence[TracedOperator]) -> Cell | str:
    units: set[Unit] = {one.unit for one in operators}
    values = [one.value for one in operators if one.value is not None]
    if len(units) != 1 or len(values) < len(operators):
        return "unknown" if operators else ""
    return Cell(f"{sum(values):,.1f} {_UNITS[units.pop()]}", sort=sum(values))


def _totals(diff: TraceDiff) -> Facts:
    pairs = []
    for name in dict.fromkeys((*diff.totals.before, *diff.totals.after)):
        unit = "cycles" if name.endswith("cycles") else "us"
        before, after = diff.totals.before.get(name), diff.totals.after.get(name)
        shown = f"before {_exact(before, unit)}, after {_exact(after, unit)}"
        if before is not None and after is not None:
            shown += _times(before, after)
        pairs.append((_TOTALS.get(name, name.replace("_", " ")), shown))
    counts = ", ".join(f"{count} {kind}" for kind, count in diff.counts.items())
    return Facts("Totals", (*pairs, ("operators", counts or "none")))


_TOTALS = {
    "end_to_end_us": "a whole run",
    "operators_us": "operators in time",
    "operators_cycles": "operators in cycles",
}
