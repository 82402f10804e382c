"""Two runs of one kind side by side: what differs first, then picture beside picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.core.errors import RequestError
from winml.modelkit.render.pages.page import Block, Columns, Facts, Figure, Group, Page, Row, Table, Text
from winml.modelkit.reporting.runs import Run

if TYPE_CHECKING:
    from winml.modelkit.measuring.perf import PerfResult


def pair_page(runs: Sequence[Run], pages: Sequence[Page]) -> Page:
    """One page of two; runs of different kinds have nothing to put side by side."""
    first, second = pages
    if first.kind != second.kind:
        raise RequestError(
            f"`{runs[0].path}` is a run of `{first.kind}` and `{runs[1].path}` one of `{second.kind}`",
            hint="give two runs of one command",
        )
    labels = short_labels([run.path for run in runs])
    title = f"{labels[0]} and {labels[1]}"
    answers = Table(
        "Answers", ("run", "", ""), tuple(Row((label, page.title, page.answer))
                                          for label, page in zip(labels, pages, strict=True))
    )  # fmt: skip
    compare = _COMPARISONS.get(runs[0].kind)
    answer, blocks = ("Two runs side by side.", ()) if compare is None else compare(runs, labels)
    return Page(first.kind, title, answer, (answers, *blocks, *_beside(first.blocks, second.blocks, labels)))


def short_labels(paths: Sequence[Path]) -> list[str]:
    """The last parts of two paths that tell them apart."""
    parts = [path.absolute().parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        labels = ["/".join(one[-count:]) for one in parts]
        if len(set(labels)) == len(labels):
            return labels
    return [f"{path.name} ({number})" for number, path in enumerate(paths, 1)]


def _beside(first: Sequence[Block], second: Sequence[Block], labels: Sequence[str]) -> list[Block]:
    """Blocks of one name beside each other; what only one run has stands under its label."""
    found: list[Block] = []
    left = list(second)
    for block in first:
        other = next((one for one in left if _key(one) == _key(block)), None)
        if other is None:
            found.append(Group(f"Only in {labels[0]}", (block,)))
            continue
        left.remove(other)
        found.append(_merge(block, other, labels))
    found += [Group(f"Only in {labels[1]}", (block,)) for block in left]
    return found


def _key(block: Block) -> tuple[str, str]:
    match block:
        case Figure():
            return "figure", block.name
        case Table() | Facts() | Group():
            return type(block).__name__, block.title
        case Text():
            return "text", block.title or ""
        case _:
            return type(block).__name__, ""


def _merge(block: Block, other: Block, labels: Sequence[str]) -> Block:
    if isinstance(block, Facts) and isinstance(other, Facts):
        return _merge_facts(block, other, labels)
    if isinstance(block, Figure) and isinstance(other, Figure):
        return Columns((_label_figure(block, labels[0], 0), _label_figure(other, labels[1], 1)))
    if isinstance(block, Group) and isinstance(other, Group):
        return Group(block.title, tuple(_beside(block.blocks, other.blocks, labels)))
    return Columns((Group(labels[0], (block,)), Group(labels[1], (other,))))


def _label_figure(figure: Figure, label: str, number: int) -> Figure:
    """A picture with the label of its run, and a name of its own for `--svg`."""
    name = figure.name if number == 0 else f"{figure.name}-2"
    return Figure(name, f"{figure.title}: {label}", figure.sentence, figure.draw, figure.values)


def _merge_facts(block: Facts, other: Facts, labels: Sequence[str]) -> Table:
    """Facts as one table; lines that differ are marked."""
    mine, theirs = dict(block.pairs), dict(other.pairs)
    names = list(dict.fromkeys([*mine, *theirs]))
    rows = tuple(
        Row((name, mine.get(name, "not known"), theirs.get(name, "not known")), mine.get(name) != theirs.get(name))
        for name in names
    )
    differing = sum(row.marked for row in rows)
    folded = None if block.folded is None else f"{differing} of {len(rows)} lines differ"
    return Table(block.title, ("", *labels), rows, folded=folded)


def _perf_pair(runs: Sequence[Run], labels: Sequence[str]) -> tuple[str, tuple[Block, ...]]:
    from winml.modelkit.render.pages.perf import perf_pair

    values: list[PerfResult] = [run.value for run in runs]
    return perf_pair(values, labels)


def _trace_pair(runs: Sequence[Run], labels: Sequence[str]) -> tuple[str, tuple[Block, ...]]:
    from winml.modelkit.measuring.trace_diff import diff
    from winml.modelkit.render.pages.trace_diff import trace_diff_blocks

    found = diff(runs[0].value, runs[1].value)
    return f"Operators of {labels[0]} against those of {labels[1]}.", trace_diff_blocks(found)


_COMPARISONS: dict[str, Callable[[Sequence[Run], Sequence[str]], tuple[str, tuple[Block, ...]]]] = {
    "perf": _perf_pair,
    "op-trace": _trace_pair,
}
"""Kinds whose two values are compared in a picture of their own."""
