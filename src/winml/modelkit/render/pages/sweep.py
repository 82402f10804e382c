"""The report of `winml autoconfig` on several models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from winml.modelkit.render.figures.dots import DotRow, dot_figure
from winml.modelkit.render.figures.style import STATE_GLYPHS, STATE_ROLES
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.common import model_name, notices
from winml.modelkit.render.pages.page import Block, Cell, Figure, Page, Table, table
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.search.result import Champion, SweepResult, SweepRow

_DRAWN = 30
"""Models that are drawn; the table has all of them."""
_STATUS = {"KEEP_CONFIRMED": "confirmed", "BASELINE_IS_BEST": "no gain"}


def sweep_page(result: SweepResult) -> Page:
    """What a search gained for every model of a list."""
    failed = [row for row in result.models if row.champion is None]
    gained = [row for row in result.models if row.champion is not None and _is_gain(row.champion)]
    left = result.total - len(result.models)
    state = "confirmed" if gained else "no gain"
    if failed or left:
        state = "partial" if len(failed) < len(result.models) else "failed" if failed else "pending"
    return Page(
        "autoconfig",
        f"Searches of {counted(result.total, 'model')}",
        _answer(result, gained, len(failed), left),
        (*notices(result.notes, "note"), *_figure(result), *_failures(failed), _table(result)),
        state,
        result.next,
    )


def _is_gain(champion: Champion) -> bool:
    return champion.status == "KEEP_CONFIRMED"


def _is_timed(rows: Sequence[SweepRow]) -> bool:
    """Whether the searches were for speed; what they count has no speedup."""
    return all(row.champion.speedup is not None for row in rows if row.champion is not None)


def _answer(result: SweepResult, gained: Sequence[SweepRow], failed: int, left: int) -> str:
    better = "faster" if _is_timed(result.models) else "better by the objective"
    said = [f"{len(gained)} of {counted(result.total, 'model')} got a config that is proven {better}"]
    if gained:
        factors = sorted(row.champion.factor for row in gained if row.champion is not None)
        low, high = f"{factors[0]:.2f}x", f"{factors[-1]:.2f}x"
        said.append(f", by {low}" if low == high else f", by {low} to {high}")
    same = len(result.models) - len(gained) - failed
    rest = [f"{same} without a gain" if same else "", f"{failed} failed" if failed else "",
            f"{left} not searched yet" if left else ""]  # fmt: skip
    said += [f"; {part}" for part in rest if part]
    return "".join(said) + "."


def _figure(result: SweepResult) -> tuple[Block, ...]:
    found = [row for row in result.models if row.champion is not None]
    if not found:
        return ()
    found.sort(key=lambda row: -_champion(row).factor)
    rows = [_dot(row) for row in found[:_DRAWN]]
    timed = _is_timed(found)
    best, factor = found[0], _champion(found[0]).factor
    said = [f"{_name(best)} gains most: {factor:.2f}x." if factor > 1 else "No model gains anything."]
    if timed:
        said.append("Lines are 95 % intervals of fresh rounds.")
    if len(found) > _DRAWN:
        said.append(f"The {_DRAWN} models that gain most are drawn, of {len(found)}.")
    sentence = " ".join(said)
    axis, line = ("times as fast as the baseline", "same speed") if timed else ("times as good", "as the baseline")

    def draw(width: float) -> str:
        return dot_figure(rows, axis, sentence, width, line=(1.0, line), log=True, most_label=300.0)

    return (Figure("models", "What every model gains", sentence, draw),)


def _champion(row: SweepRow) -> Champion:
    assert row.champion is not None
    return row.champion


def _name(row: SweepRow) -> str:
    return model_name(row.model)


def _dot(row: SweepRow) -> DotRow:
    best = _champion(row)
    state = _STATUS[best.status]
    style, bounds = STATES[state], best.speedup_interval
    between = "" if bounds is None else f" ({bounds[0]:.2f} … {bounds[1]:.2f})"
    return DotRow(
        _name(row),
        f"{_name(row)}: {best.factor:.2f}x{between}, {state}, {best.trial.label}, {counted(row.trials, 'trial')}",
        best.factor,
        f"{best.factor:.2f}x {STATE_GLYPHS[style]}",
        bounds,
        (),
        STATE_ROLES[style],
    )


def _failures(failed: Sequence[SweepRow]) -> tuple[Block, ...]:
    if not failed:
        return ()
    why = {row.model: row.error.message if row.error else "no champion" for row in failed}
    counts = Counter(why.values())
    ordered = sorted(failed, key=lambda row: -counts[why[row.model]])
    rows = [(_name(row), row.error.code if row.error else "", why[row.model],
             (row.error.hint or "") if row.error else "") for row in ordered]  # fmt: skip
    return (table("Models that failed", ("model", "error", "what happened", "hint"), rows),)


def _table(result: SweepResult) -> Table:
    kinds = {row.champion.trial.accuracy.kind for row in result.models if row.champion and row.champion.trial.accuracy}
    quality = "agreement" if kinds == {"agreement"} else "accuracy"
    rows: list[tuple[Cell | str, ...]] = []
    for row in result.models:
        best = row.champion
        folder, node = PurePath(row.folder).name, row.node or ""
        if best is None:
            rows.append((_name(row), Cell("failed", "failed"), "", "", "", "", "", folder, node))
            continue
        known, bounds, state = best.trial.accuracy, best.speedup_interval, _STATUS[best.status]
        value = None if known is None else known.value
        rows.append((
            _name(row),
            Cell(state, state),
            best.trial.label,
            Cell(f"{best.factor:.2f}x", sort=best.factor),
            "" if bounds is None else f"{bounds[0]:.2f} … {bounds[1]:.2f}",
            "" if value is None else Cell(f"{value:.4f}", sort=value),
            str(row.trials),
            folder,
            node,
        ))  # fmt: skip
    head = ("model", "state", "champion", "gain", "95 %", quality, "trials", "folder", "node")
    return table("Models", head, rows, numeric=(3, 5, 6))
