"""The report of `winml matrix`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.statistics import median
from winml.modelkit.render.figures.dots import DotRow, dot_figure
from winml.modelkit.render.figures.heatmap import (
    MOST_COLUMNS,
    HeatCell,
    HeatColumn,
    HeatRow,
    heatmap_figure,
)
from winml.modelkit.render.figures.legend import Key
from winml.modelkit.render.figures.shares import Share, share_figure
from winml.modelkit.render.figures.style import STATE_GLYPHS, STATE_ROLES
from winml.modelkit.render.marks import STATES
from winml.modelkit.render.pages.common import notices
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Page, Row, Table, table
from winml.modelkit.render.times import duration
from winml.modelkit.render.units import counted, size, size_unit

if TYPE_CHECKING:
    from winml.modelkit.build_matrix.command import PlanResult, RunResult, RunState, StatusResult
    from winml.modelkit.build_matrix.state import CellPlan, CellRow

_MOST_CELLS = 200
"""Cells that are drawn one by one; of more, models that came out alike are one row."""
_MOST_LISTED = 200
"""Cells of the table."""
_MOST_SIZES = 50
"""Models whose sizes are drawn per target."""
_NAMED = 5
"""Models or cells that a line names."""
AnyCell = TypeVar("AnyCell", bound="CellPlan")


@dataclass(frozen=True)
class CellState:
    """What became of a cell."""

    word: str
    """As people say it."""
    state: str
    """Of `render/marks.py`."""

    @property
    def style(self) -> str:
        return STATES[self.state]


_PLANNED = CellState("planned", "pending")
_ORDER = ("failed", "timeout", "upload failed", "not published", "pending", "planned", "already published", "published",
          "built")  # fmt: skip
"""Words of states, what needs a person first."""


def state_of(cell: CellRow, feed: str | None) -> CellState:
    """What became of a cell: by its build, and where there is a feed by its upload."""
    if cell.build_status is None and cell.upload_status in ("n/a", "skipped"):
        return CellState("pending", "pending")
    if cell.build_status == "timeout":
        return CellState("timeout", "timeout")
    if cell.build_status == "failed":
        return CellState("failed", "failed")
    if cell.upload_status in ("failed", "timeout"):
        return CellState("upload failed", "failed")
    if cell.upload_status == "uploaded":
        return CellState("published", "uploaded")
    if cell.upload_status == "exists-skipped":
        return CellState("already published", "ok")
    return CellState("built", "ok") if feed is None else CellState("not published", "partial")


def matrix_page(result: RunResult | StatusResult | PlanResult) -> Page:
    """Which models are built for which targets, how large they are and what failed."""
    return _plan_page(result) if result.action == "plan" else _run_page(result)


def _plan_page(result: PlanResult) -> Page:
    models, targets = len({c.hf_id for c in result.cells}), len({c.combo for c in result.cells})
    states = [_PLANNED] * len(result.cells)
    answer = f"{_many(len(result.cells), 'cell')} to build: {_many(models, 'model')} for {counted(targets, 'target')}."
    compiled = sum(cell.compile for cell in result.cells)
    blocks = (
        *notices(result.notes),
        *_map_figure(result.cells, states),
        Facts("Run", (("stamp", result.run_stamp), ("compiled", f"{compiled} of {len(result.cells)} cells"))),
        _plan_table(result.cells),
    )
    return Page("matrix", f"Plan of run {result.run_stamp}", answer, blocks, "pending")


def _run_page(result: RunResult | StatusResult) -> Page:
    states = [state_of(cell, result.feed) for cell in result.cells]
    progress = result.progress
    state = "failed" if progress.failed else "pending" if progress.pending else "ok"
    blocks = (
        *notices(result.notes, "note"),
        *_map_figure(result.cells, states),
        *_failures(result.cells, states),
        *_states_figure(states),
        *_sizes(result.cells),
        _facts(result),
        _cell_table(result.cells, states),
        *_nodes(result.nodes),
    )
    return Page("matrix", f"Run {result.run_stamp}", _answer(result), blocks, state)


def _answer(result: RunState) -> str:
    progress = result.progress
    done = "published" if result.feed is not None else "built"
    said = [f"{progress.done:,} of {_many(progress.total, 'cell')} {'is' if progress.total == 1 else 'are'} {done}"]
    if progress.failed:
        said.append(f"{progress.failed:,} failed")
    if progress.pending:
        left = "time left unknown" if progress.seconds_left is None else f"{duration(progress.seconds_left)} left"
        said.append(f"{progress.pending:,} pending, {left}")
    return "; ".join(said) + "."


# The map


def _columns(cells: Sequence[AnyCell]) -> dict[str, list[AnyCell]]:
    """Cells by target; by target and precision where a model is built for a target in several."""
    pairs = Counter((cell.hf_id, cell.combo) for cell in cells)
    several = any(count > 1 for count in pairs.values())
    found: dict[str, list[AnyCell]] = {}
    for cell in cells:
        found.setdefault(f"{cell.combo} {cell.precision}" if several else cell.combo, []).append(cell)
    return found


def _head(cells: Sequence[CellPlan]) -> HeatColumn:
    first = cells[0]
    precisions = list(dict.fromkeys(cell.precision for cell in cells))
    precision = precisions[0] if len(precisions) == 1 else "mixed"
    return HeatColumn((first.ep, first.device, precision), f"{first.target} {precision}")


def _map_figure(cells: Sequence[CellPlan], states: Sequence[CellState]) -> tuple[Block, ...]:
    if not cells:
        return ()
    by_column = list(_columns(cells).values())
    shown = by_column[:MOST_COLUMNS]
    state_by_cell = {id(cell): state for cell, state in zip(cells, states, strict=True)}
    place = {id(cell): number for number, column in enumerate(shown) for cell in column}
    models: dict[str, list[CellPlan | None]] = {}
    for cell in cells:
        row = models.setdefault(cell.hf_id, [None] * len(shown))
        if id(cell) in place:
            row[place[id(cell)]] = cell
    merged = len(models) * len(shown) > _MOST_CELLS
    rows = _merged_rows(models, state_by_cell) if merged else [
        HeatRow(name, tuple(None if cell is None else _heat_cell([cell], state_by_cell[id(cell)]) for cell in row))
        for name, row in models.items()
    ]  # fmt: skip
    most = max(_MOST_CELLS // len(shown), 1)
    heads = [_head(column) for column in shown]
    sentence = _map_sentence(cells, states, by_column)
    if merged:
        sentence += " Models that came out alike are one row."
    if len(rows) > most:
        sentence += f" The {most} most frequent of {len(rows):,} rows are drawn."
        rows = rows[:most]
    if len(by_column) > len(shown):
        sentence += f" {len(shown)} of {len(by_column)} targets are drawn."
    keys = _keys(states)

    def draw(width: float) -> str:
        return heatmap_figure(heads, rows, keys, sentence, width)

    return (Figure("matrix", "Models and targets", sentence, draw),)


def _keys(states: Sequence[CellState]) -> list[Key]:
    """What each glyph stands for here."""
    words: dict[str, list[str]] = {}
    for state in sorted(set(states), key=lambda state: _ORDER.index(state.word)):
        words.setdefault(state.style, []).append(state.word)
    return [Key(STATE_GLYPHS[style], ", ".join(of), STATE_ROLES[style]) for style, of in words.items()]


def _heat_cell(cells: Sequence[CellPlan], state: CellState) -> HeatCell:
    first = cells[0]
    known = [value for cell in cells if (value := getattr(cell, "bytes", None))]
    error = getattr(first, "error", None)
    stage = getattr(first, "build_stage", None) if state.style == "bad" else None
    who = first.hf_id if len(cells) == 1 else f"{_many(len(cells), 'model')} like {first.hf_id}"
    text = size(max(known)) if len(known) == 1 else f"{size(min(known))} to {size(max(known))}" if known else ""
    said = [f"{who} for {first.target} ({first.precision}): {state.word}", f"at {stage}" if stage else "", text,
            _first_line(error) if error and len(cells) == 1 else ""]  # fmt: skip
    return HeatCell(state.style, ", ".join(filter(None, said)), _short_size(known[0]) if len(known) == 1 else "")


def _many(count: int, noun: str) -> str:
    """`counted` for thousands: `16,000 cells`."""
    return counted(count, noun) if count < 1000 else f"{count:,} {noun}s"


def _short_size(count: int) -> str:
    """A size with two or three digits, for a cell."""
    number, _, unit = size(count).partition(" ")
    return f"{float(number):.0f} {unit}" if float(number) >= 10 else f"{number} {unit}"


def _first_line(text: str, most: int = 160) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= most else f"{line[:most]}…"


def _merged_rows(models: Mapping[str, Sequence[CellPlan | None]], states: Mapping[int, CellState]) -> list[HeatRow]:
    """A row per pattern of states, what most models have first."""
    alike: dict[tuple[CellState | None, ...], list[Sequence[CellPlan | None]]] = {}
    for row in models.values():
        pattern = tuple(None if cell is None else states[id(cell)] for cell in row)
        alike.setdefault(pattern, []).append(row)

    rows = []
    for pattern in sorted(alike, key=lambda pattern: -len(alike[pattern])):
        found = alike[pattern]
        name = next((cell.hf_id for cell in found[0] if cell is not None), "")
        label = name if len(found) == 1 else _many(len(found), "model")
        cells = [
            None if state is None else _heat_cell([cell for row in found if (cell := row[place]) is not None], state)
            for place, state in enumerate(pattern)
        ]
        rows.append(HeatRow(label, tuple(cells)))
    return rows


def _map_sentence(
    cells: Sequence[CellPlan], states: Sequence[CellState], by_column: Sequence[Sequence[CellPlan]]
) -> str:
    models = len({cell.hf_id for cell in cells})
    counts = Counter(state.word for state in states)
    listed = ", ".join(f"{counts[word]:,} {word}" for word in reversed(_ORDER) if counts[word])
    said = f"{_many(models, 'model')} for {counted(len(by_column), 'target')}: {listed}."
    bad = [cell for cell, state in zip(cells, states, strict=True) if state.style == "bad"]
    targets, names = ({cell.target for cell in bad}, {cell.hf_id for cell in bad})
    if len(bad) > 1 and len(targets) == 1:
        said += f" All failures are on {bad[0].target}."
    elif len(bad) > 1 and len(names) == 1:
        said += f" All failures are of {bad[0].hf_id}."
    elif len(bad) > 1:
        said += f" Failures are of {_many(len(names), 'model')} on {counted(len(targets), 'target')}."
    return said


# What failed, how many are done, how large they are


def _failures(cells: Sequence[CellRow], states: Sequence[CellState]) -> tuple[Block, ...]:
    """Reasons, each with the cells that have it."""
    groups: dict[tuple[str, str, str], list[CellRow]] = {}
    for cell, state in zip(cells, states, strict=True):
        if state.style == "bad":
            reason = _first_line(cell.error, 400) if cell.error else "no message was kept"
            groups.setdefault((state.word, cell.build_stage or "", reason), []).append(cell)
    if not groups:
        return ()
    rows: list[tuple[Cell | str, ...]] = []
    for (word, stage, reason), found in sorted(groups.items(), key=lambda one: -len(one[1])):
        named = [f"{cell.hf_id} for {cell.target}" for cell in found[:_NAMED]]
        more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        at = stage if word != "upload failed" else "upload"
        rows.append((Cell(f"{len(found):,}", sort=float(len(found))), Cell(word, "failed"), at, reason,
                     ", ".join(named) + more))  # fmt: skip
    shown = rows[:_MOST_LISTED]
    note = f"{len(shown)} of {len(rows):,} reasons." if len(rows) > len(shown) else None
    return (table("What failed", ("cells", "state", "at", "reason", "which"), shown, numeric=(0,), note=note),)


def _states_figure(states: Sequence[CellState]) -> tuple[Block, ...]:
    counts = Counter(states)
    if len(counts) < 2:
        return ()
    ordered = sorted(counts, key=lambda state: -_ORDER.index(state.word))
    total = len(states)
    shares = [
        Share(state.word, f"{state.word}: {counts[state]:,} of {total:,} cells", counts[state],
              f"{counts[state]:,} ({100 * counts[state] / total:.0f} %)", STATE_ROLES[state.style],
              STATE_GLYPHS[state.style])
        for state in ordered
    ]  # fmt: skip
    sentence = f"{counts[ordered[0]]:,} of {total:,} cells are {ordered[0].word}."
    return (Figure("states", "How far it is", sentence, lambda width: share_figure(shares, sentence, width)),)


def _sizes(cells: Sequence[CellRow]) -> tuple[Block, ...]:
    """Sizes of what was built, by target; nothing where nothing was built."""
    built = {}
    for of_column in _columns(cells).values():
        known = sorted(cell.bytes for cell in of_column if cell.build_status == "ok" and cell.bytes)
        if known:
            built[_head(of_column).name] = known
    unit, word = size_unit(max((median(known) for known in built.values()), default=0))
    rows: list[DotRow] = []
    values: list[tuple[Cell | str, ...]] = []
    for name, known in built.items():
        middle = median(known)
        said = f"{name}: median {size(round(middle))} of {_many(len(known), 'model')}"
        said += f", {size(known[0])} to {size(known[-1])}"
        step = -(-len(known) // _MOST_SIZES)
        dots = tuple(value / unit for value in known[::step]) if len(known) > 1 else ()
        rows.append(DotRow(name, said, middle / unit, size(round(middle)), None, dots))
        numbers = (known[0], middle, known[-1], sum(known))
        values.append((name, str(len(known)), *(Cell(size(round(one)), sort=float(one)) for one in numbers)))
    if not rows:
        return ()
    rows.sort(key=lambda row: -row.value)
    sentence = f"What is built for {rows[0].label} is largest: median {rows[0].text}"
    sentence += f"; for {rows[-1].label} it is {rows[-1].text}." if len(rows) > 1 else "."
    if any(len(known) > _MOST_SIZES for known in built.values()):
        sentence += f" Of more than {_MOST_SIZES} models, every n-th is a dot."
    head = ("target", "models", "least", "median", "largest", "all")
    listed = table("Sizes by target", head, values, numeric=range(1, len(head)))
    return (
        Figure("sizes", "Sizes by target", sentence, lambda width: dot_figure(rows, word, sentence, width), listed),
    )


# Facts and tables


def _facts(result: RunResult | StatusResult) -> Facts:
    limit = result.disk.limit_bytes
    used = f"{size(result.disk.in_use_bytes)} in use{'' if limit is None else f' of {size(limit)}'}"
    pairs = [
        ("stamp", result.run_stamp),
        ("folder", result.folder),
        ("feed", result.feed or "none: cells stay in the folder"),
        ("disk", used),
    ]
    if result.action == "run":
        pairs.append(("took", duration(result.seconds)))
        if result.feed is not None:
            pairs.append(("sent to the feed", "unknown" if result.sent_bytes is None else size(result.sent_bytes)))
    if result.cluster is not None:
        pairs.append(("cluster", result.cluster))
    return Facts("Run", tuple(pairs))


def _cell_table(cells: Sequence[CellRow], states: Sequence[CellState]) -> Table:
    ordered = sorted(zip(cells, states, strict=True), key=lambda one: _ORDER.index(one[1].word))
    rows = []
    for cell, state in ordered[:_MOST_LISTED]:
        took, count = cell.seconds, cell.bytes
        rows.append(Row((
            cell.hf_id,
            cell.target,
            cell.precision,
            Cell(state.word, state.state),
            (cell.build_stage or "") if state.style == "bad" else "",
            "" if took is None else Cell(duration(took), sort=took),
            "" if not count else Cell(size(count), sort=float(count)),
            cell.node or "",
            cell.reference or cell.folder,
        )))  # fmt: skip
    head = ("model", "target", "precision", "state", "at", "took", "size", "node", "where")
    return table("Cells", head, rows, numeric=(5, 6), folded=_cells_shown(len(rows), len(cells), ", what failed first"))


def _cells_shown(shown: int, total: int, order: str) -> str:
    return f"all {_many(total, 'cell')}" if shown == total else f"{shown} of {total:,} cells{order}"


def _plan_table(cells: Sequence[CellPlan]) -> Table:
    rows = [
        (cell.hf_id, cell.target, cell.precision, "yes" if cell.compile else "no", cell.priority or "", cell.folder,
         cell.version)
        for cell in cells[:_MOST_LISTED]
    ]  # fmt: skip
    head = ("model", "target", "precision", "compile", "priority", "folder", "version")
    return table("Cells", head, rows, folded=_cells_shown(len(rows), len(cells), ""))


def _nodes(nodes: Mapping[str, Mapping[str, str | int | None]]) -> tuple[Block, ...]:
    if not nodes:
        return ()
    pairs = []
    for name, told in nodes.items():
        known = (f"{key.replace('_', ' ')} {'unknown' if value is None else value}" for key, value in told.items())
        pairs.append((name, ", ".join(known)))
    return (Facts("Nodes", tuple(pairs), counted(len(nodes), "node")),)
