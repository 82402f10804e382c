"""The report of an operator trace: what took the time, and which part of the model ran where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.render.figures.bars import Bar, bar_figure
from winml.modelkit.render.figures.canvas import is_narrow
from winml.modelkit.render.figures.legend import Key
from winml.modelkit.render.figures.strip import MOST_PIECES, Piece, strip_figure
from winml.modelkit.render.figures.style import ep_style
from winml.modelkit.render.figures.treemap import Tile, TileGroup, treemap_figure
from winml.modelkit.render.pages.common import model_name, notices, short_ep
from winml.modelkit.render.pages.page import Block, Cell, Facts, Figure, Page, Table, table
from winml.modelkit.render.units import amount, counted, size

if TYPE_CHECKING:
    from winml.modelkit.core.op_trace import OperatorMetrics, OpTraceResult, Unit

UNITS = {"us": "µs", "cycles": "cycles"}
_MOST_BARS = 12
_MOST_ROWS = 100
"""Rows of a table of operators; the file of the trace has all of them."""
_ENOUGH = 99.5
"""Percent from which on operators are counted, not drawn."""
_SOME = 5
"""Operators from which their types say more than they do."""
_MANY = 12
"""Operators from which areas show more than bars do."""
_MOST_TILES = 100
_LITTLE = 5.0
_SMALL = 1.0
"""Percent below which operators are drawn together where there are more than `_MOST_TILES`."""
_MOST_GROUPS = 14
_NAMED = 0.8
"""Part of the operators whose nodes have a scope in their names, from which on scopes are worth showing."""
_MOST_OF = 80.0
"""Percent that "most of the time" is."""
_MUCH_MORE = 1.5
_LARGE = 100_000
"""Values from which on a label has them in short."""
_EDGES = ("QuantizeLinear", "DequantizeLinear", "Cast", "Identity")


def op_trace_page(trace: OpTraceResult) -> Page:
    """What every operator took."""
    about = trace.metadata
    where = about.ep if about.ep == about.device else f"{about.ep}/{about.device}"
    title = f"Operators of {'a model' if about.model is None else model_name(about.model)} on {where}"
    notes = trace.summary.get("notes")
    lines = [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []
    if trace.status == "basic_fallback":
        lines.insert(0, f"the trace is basic instead of detail ({trace.fallback_reason})")
    blocks = (*notices(lines), *op_trace_blocks(trace))
    if not trace.operators:
        why = trace.error or "the monitor gave no reason"
        return Page("op-trace", title, f"There is no operator trace ({trace.status}): {why}.", blocks, "failed")
    return Page("op-trace", title, _answer(trace), blocks, "simulated" if about.simulated else None)


def op_trace_blocks(trace: OpTraceResult) -> tuple[Block, ...]:
    """Pictures and facts of a trace; the first ones are in the unit that most of the work was measured in."""
    found: list[Block] = []
    for number, weighed in enumerate(_by_unit(trace)):
        suffix = f"-{weighed.unit}" if number else ""
        figures = [_operators(weighed, suffix)]
        if len(weighed.operators) >= _SOME and 1 < len(weighed.types) < len(weighed.operators):
            # Of operators that are all small, their types say where to begin.
            figures.insert(0 if _share(weighed.operators[0]) < _LITTLE else 1, _types(weighed, suffix))
        found += figures
        if sum(_share(one) > 0 for one in weighed.operators) >= _MANY:
            found.append(_treemap(weighed, suffix))
    return (*_execution(trace), *found, *_facts(trace))


@dataclass(frozen=True)
class _Weighed:
    """Operators that were measured in one unit, largest first."""

    unit: Unit
    operators: tuple[OperatorMetrics, ...]
    simulated: bool

    @cached_property
    def eps(self) -> str:
        return " and ".join(sorted({short_ep(one.ep) for one in self.operators}))

    @property
    def what(self) -> str:
        """What their shares are shares of."""
        if self.unit == "us":
            return f"the time of operators on {self.eps}"
        return f"the cycles that {'the simulator of ' if self.simulated else ''}{self.eps} counted"

    @property
    def where(self) -> str:
        """The end of a title."""
        return f"on {self.eps}" if self.unit == "us" else f"on {self.eps}, by cycles"

    @cached_property
    def keys(self) -> list[Key]:
        """The legend of EPs; none where one EP ran all of them."""
        keys = ep_keys({one.ep for one in self.operators})
        return keys if len(keys) > 1 else []

    @cached_property
    def types(self) -> list[tuple[str, str, list[float]]]:
        """Types of operators with their EP and the shares of their operators, the largest first."""
        shares: dict[tuple[str, str], list[float]] = {}
        for one in self.operators:
            shares.setdefault((one.type, one.ep), []).append(_share(one))
        ranked = sorted(shares.items(), key=lambda found: (-sum(found[1]), found[0]))
        return [(kind, ep, found) for (kind, ep), found in ranked]


def ep_keys(eps: Iterable[str]) -> list[Key]:
    """A legend of EPs, each once."""
    found = {short_ep(ep): ep_style(ep) for ep in eps}
    return [Key(style.glyph, name, style.role) for name, style in sorted(found.items())]


def _by_unit(trace: OpTraceResult) -> list[_Weighed]:
    found = []
    for unit in ("cycles", "us"):
        known = [one for one in trace.operators if one.unit == unit and one.percent_of_total is not None]
        known.sort(key=lambda one: (-_share(one), one.op_path))
        if known:
            found.append(_Weighed("cycles" if unit == "cycles" else "us", tuple(known), trace.metadata.simulated))
    return found


def _share(operator: OperatorMetrics) -> float:
    return operator.percent_of_total or 0.0


def _answer(trace: OpTraceResult) -> str:
    weighed = _by_unit(trace)
    if not weighed:
        return f"{counted(len(trace.operators), 'operator')} ran, and nothing is known of what they took."
    return f"{_largest(weighed[0])} {_concentration(weighed[0])}"


def _largest(weighed: _Weighed) -> str:
    """The operator that takes most; the type, where its operators take much more together."""
    first, (kind, _, shares) = weighed.operators[0], weighed.types[0]
    if len(shares) > 1 and sum(shares) > _MUCH_MORE * _share(first):
        return f"{counted(len(shares), f'{kind} operator')} take {_percent(sum(shares))} of {weighed.what}."
    return _first(weighed)


def _first(weighed: _Weighed) -> str:
    first = weighed.operators[0]
    return f"{_name(first)} ({_type(first)}) takes {_percent(_share(first))} of {weighed.what}."


def _concentration(weighed: _Weighed) -> str:
    """How many operators most of it is."""
    whole, added = len(weighed.operators), 0.0
    if whole == 1:
        return "It is the only operator."
    for number, one in enumerate(weighed.operators, 1):
        added += _share(one)
        if added >= _MOST_OF and number < whole:
            return f"{number} of {whole} operators {'makes' if number == 1 else 'make'} up {_percent(added)}."
    return f"{whole} operators were measured."


def _percent(share: float) -> str:
    return f"{share:.1f} %" if share >= 0.05 or share == 0 else "below 0.1 %"


def _name(operator: OperatorMetrics) -> str:
    """The model's node where there is one, with how many others it does the work of."""
    if operator.origin == "inserted" and operator.neighbour:
        return f"{operator.op_type or operator.name} before {operator.neighbour}"
    if operator.origin in ("inserted", "boundary", "unknown") or not operator.onnx_nodes:
        return operator.op_path
    more = f" +{len(operator.onnx_nodes) - 1}" if len(operator.onnx_nodes) > 1 else ""
    return operator.onnx_nodes[0] + more


def _type(operator: OperatorMetrics) -> str:
    """The type of the node that does the work, and those of the nodes it absorbed."""
    if not operator.onnx_op_type:
        return operator.type  # the whole operator has a name, such as Gelu
    others = dict.fromkeys(kind for _, kind in operator.absorbed if kind not in _EDGES)
    shown = [operator.onnx_op_type, *list(others)[:3]]
    return "+".join(shown) + (f"+{len(others) - 3} more" if len(others) > 3 else "")


def _amount(value: float | None, unit: Unit) -> str:
    """`7,528 µs`."""
    return "unknown" if value is None else f"{_number(value)} {UNITS[unit]}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == 0 else f"{value:.1f}"


def _detail(operator: OperatorMetrics) -> str:
    """What an operator is, and what it took."""
    words = {"inserted": "inserted", "boundary": "edge of the graph"}
    kind, value = words.get(operator.origin) or _type(operator), operator.average
    if value is None or value < _LARGE:
        return f"{kind} · {_amount(value, operator.unit)}"
    return f"{kind} · {amount(round(value))} {UNITS[operator.unit]}"


def _operators(weighed: _Weighed, suffix: str) -> Figure:
    """The largest operators as bars; the others as one line."""
    several = bool(weighed.keys)
    bars: list[Bar] = []
    added = 0.0
    for one in weighed.operators[:_MOST_BARS]:
        if added >= _ENOUGH and len(weighed.operators) - len(bars) > 1:
            break
        added += _share(one)
        style = ep_style(one.ep)
        said = (
            f"{_name(one)}, {_type(one)} on {short_ep(one.ep)}: {_amount(one.average, one.unit)} on average, "
            f"p90 {_amount(one.p90, one.unit)}, {_percent(_share(one))}; {_percent(added)} with those above"
        )
        texts = (_percent(_share(one)), _percent(added))
        glyph = style.glyph if several else ""
        bars.append(Bar(_name(one), said, _share(one), texts, _detail(one), style.role, glyph))
    left = weighed.operators[len(bars) :]
    if left:
        name, rest = counted(len(left), "more operator"), sum(map(_share, left))
        largest = _percent(_share(left[0]))
        most = f"each {largest}" if largest.startswith("below") else f"each at most {largest}"
        bars.append(Bar(name, f"{name}: {_percent(rest)}, {most}", None, (_percent(rest), "100.0 %"), most, "plain"))
    sentence = f"{_first(weighed)} {_concentration(weighed)}"
    return Figure(
        f"operators{suffix}",
        f"Largest operators {weighed.where}",
        sentence,
        lambda width: bar_figure(bars, sentence, width, heads=("share", "together"), keys=weighed.keys),
        _operator_table(weighed),
    )


def _operator_table(weighed: _Weighed) -> Table:
    unit, added, rows = UNITS[weighed.unit], 0.0, []
    timed = weighed.unit == "cycles" and any(one.times_us for one in weighed.operators)
    for one in weighed.operators[:_MOST_ROWS]:
        added += _share(one)
        read, hit = one.detail.get("dram_read_bytes"), one.detail.get("vtcm_hit_ratio")
        rows.append(
            (
                _name(one),
                _type(one),
                short_ep(one.ep),
                _cell(one.average),
                _cell(one.p90),
                _cell(sum(one.times_us) / len(one.times_us) if timed and one.times_us else None),
                Cell(f"{_share(one):.2f} %", sort=_share(one)),
                Cell(f"{added:.1f} %", sort=added),
                "" if read is None else Cell(size(int(read)), sort=read),
                "" if hit is None else Cell(f"{100 * hit:.0f} %", sort=hit),
                _shape(one),
            )
        )
    count = len(weighed.operators)
    folded = f"numbers of {counted(count, 'operator')}"
    if count > _MOST_ROWS:
        folded = f"numbers of the {_MOST_ROWS} largest of {count:,} operators; the trace has all"
    head = ("node", "type", "on", f"mean {unit}", f"p90 {unit}", "mean µs", "share", "together", "DRAM read",
            "VTCM hits", "output")  # fmt: skip
    return table("Operators", head, rows, numeric=(3, 4, 5, 6, 7, 8, 9), folded=folded)


def _cell(value: float | None) -> Cell | str:
    return "" if value is None else Cell(_number(value), sort=value)


def _shape(operator: OperatorMetrics) -> str:
    if operator.dims is None:
        return ""
    return f"{operator.data_type or ''}[{', '.join(map(str, operator.dims))}]"


def _types(weighed: _Weighed, suffix: str) -> Figure:
    """Operators of one type on one EP together."""
    several, ranked = bool(weighed.keys), weighed.types
    bars: list[Bar] = []
    added = 0.0
    for kind, ep, shares in ranked[:_MOST_BARS]:
        if added >= _ENOUGH and len(ranked) - len(bars) > 1:
            break
        added += sum(shares)
        style = ep_style(ep)
        said = f"{counted(len(shares), f'{kind} operator')} on {short_ep(ep)}: {_percent(sum(shares))}"
        bars.append(Bar(f"{len(shares)} × {kind}", said, sum(shares), (_percent(sum(shares)), _percent(added)), "",
                        style.role, style.glyph if several else ""))  # fmt: skip
    left = ranked[len(bars) :]
    if left:
        rest, name = sum(sum(shares) for _, _, shares in left), counted(len(left), "more type")
        bars.append(Bar(name, f"{name}: {_percent(rest)}", None, (_percent(rest), "100.0 %"), "", "plain"))
    kind, _, shares = ranked[0]
    take = "takes" if len(shares) == 1 else "take"
    sentence = f"{counted(len(shares), f'{kind} operator')} {take} {_percent(sum(shares))} of {weighed.what}."
    values = table(
        "Types",
        ("type", "on", "operators", "share"),
        [(kind, short_ep(ep), str(len(shares)), Cell(f"{sum(shares):.2f} %", sort=sum(shares)))
         for kind, ep, shares in ranked[:_MOST_ROWS]],
        numeric=(2, 3),
    )  # fmt: skip
    return Figure(
        f"op-types{suffix}",
        f"Operator types {weighed.where}",
        sentence,
        lambda width: bar_figure(bars, sentence, width, heads=("share", "together"), keys=weighed.keys),
        values,
    )


def _treemap(weighed: _Weighed, suffix: str) -> Figure:
    """Shares as areas; in a large model, small operators of a group are drawn together by type."""
    group_of, by = _scopes(weighed.operators)
    groups: dict[str, list[OperatorMetrics]] = {}
    for one in weighed.operators:
        groups.setdefault(group_of(one), []).append(one)
    ranked = sorted(((name, sum(map(_share, found))) for name, found in groups.items()), key=lambda one: -one[1])
    for name, _ in ranked[_MOST_GROUPS:]:
        groups.setdefault("other", []).extend(groups.pop(name))
    keys = weighed.keys

    def draw(width: float) -> str:
        many = len(weighed.operators) > (_MOST_TILES // 2 if is_narrow(width) else _MOST_TILES)
        tiles = [_tile_group(name, found, together=many, several=bool(keys)) for name, found in groups.items()]
        return treemap_figure(tiles, sentence, width, keys)

    sentence = f"{ranked[0][0]} takes {_percent(ranked[0][1])} of {weighed.what}; areas are shares, grouped by {by}."
    if len(weighed.operators) > _MOST_TILES:
        sentence += f" Operators of a group below {_SMALL:g} % are drawn together by type."
    values = table(
        "Groups",
        (by, "share"),
        [(name, Cell(f"{share:.2f} %", sort=share)) for name, share in ranked[:_MOST_ROWS]],
        numeric=(1,),
    )
    title = "Where the time goes" if weighed.unit == "us" else "Where the cycles go"
    return Figure(f"treemap{suffix}", f"{title} on {weighed.eps}", sentence, draw, values)


def _tile_group(name: str, operators: Sequence[OperatorMetrics], *, together: bool, several: bool) -> TileGroup:
    """The operators of a group as tiles; with `together`, small ones as one per type and EP."""
    tiles: list[Tile] = []
    small: dict[tuple[str, str], list[OperatorMetrics]] = {}
    for one in operators:
        if together and _share(one) < _SMALL:
            small.setdefault((one.type, one.ep), []).append(one)
        else:
            said = f"{_name(one)}, {_detail(one)}, {_percent(_share(one))} on {short_ep(one.ep)}"
            tiles.append(_tile(one.type, said, _share(one), one.ep, several=several))
    for (kind, ep), found in small.items():
        share, count = sum(map(_share, found)), counted(len(found), f"{kind} operator")
        label = kind if len(found) == 1 else f"{len(found)} × {kind}"
        said = f"{count} of {name} on {short_ep(ep)}: {_percent(share)}"
        tiles.append(_tile(label, said, share, ep, several=several))
    return TileGroup(f"{name} · {_percent(sum(tile.value for tile in tiles))}", tuple(tiles))


def _tile(label: str, description: str, share: float, ep: str, *, several: bool) -> Tile:
    style = ep_style(ep)
    return Tile(f"{style.glyph} {label}" if several else label, description, share, _percent(share), style.role)


def _scopes(operators: Sequence[OperatorMetrics]) -> tuple[Callable[[OperatorMetrics], str], str]:
    """The group of an operator: by the part of node names that tells them apart, else by type.

    Of many numbered layers, those that are alike belong together: `layers.*/mlp`.
    """
    inside = [_path(one) for one in operators if one.origin != "boundary"]
    known = [path for path in inside if len(path) > 1]
    if not known or len(known) < _NAMED * len(inside):
        return (lambda one: one.type), "type"
    depth = 0
    while all(len(path) > depth + 1 and path[depth] == known[0][depth] for path in known):
        depth += 1

    def scope_of(one: OperatorMetrics) -> str:
        path = _path(one)[depth:]
        return path[0] if len(path) > 1 else "outside of scopes"

    def kind_of(one: OperatorMetrics) -> str:
        path = _path(one)[depth:-1]
        return re.sub(r"[0-9]+", "*", "/".join(path[:2])) if path else "outside of scopes"

    for group_of, name in ((scope_of, "the scope in node names"), (kind_of, "the kind of scope in node names")):
        if 1 < len({group_of(one) for one in operators}) <= min(_MOST_GROUPS, len(operators) / 2):
            return group_of, name
    return (lambda one: one.type), "type"


def _path(operator: OperatorMetrics) -> list[str]:
    """The parts of the name of a node; an inserted operator belongs to its neighbour."""
    name = operator.onnx_nodes[0] if operator.onnx_nodes else operator.neighbour or ""
    return [part for part in name.split("/") if part]


@dataclass(frozen=True)
class _Stretch:
    """Operators that ran one after the other on one EP, in one partition."""

    ep: str
    operators: tuple[OperatorMetrics, ...]

    @property
    def types(self) -> str:
        kinds = Counter(one.type for one in self.operators)
        words = [kind if n == 1 else f"{n} {kind}" for kind, n in kinds.most_common(3)]
        return " + ".join(words) + (f" + {len(kinds) - 3} more" if len(kinds) > 3 else "")


def stretches(trace: OpTraceResult) -> list[_Stretch]:
    """The graph as it ran, in order: where the EP or the partition changes, another stretch begins."""
    inside = [one for one in trace.operators if one.origin != "boundary"]
    return [
        _Stretch(ep, tuple(found))
        for (ep, _), found in groupby(inside, key=lambda one: (one.ep, one.stream))
    ]  # fmt: skip


def _execution(trace: OpTraceResult) -> tuple[Block, ...]:
    """Which parts ran where; nothing where one EP ran everything in one piece."""
    parts = stretches(trace)
    if len(parts) < 2:
        return ()
    sentence = _execution_sentence(parts)
    pieces = _pieces(parts) if len(parts) <= MOST_PIECES else _equal_pieces(parts)
    if len(parts) > MOST_PIECES:
        sentence += f" The {len(parts)} pieces are drawn in {len(pieces)} equal parts, divided by EP."
    keys = ep_keys({part.ep for part in parts})
    values = table(
        "Pieces",
        ("piece", "on", "operators", "types"),
        [(str(number), short_ep(part.ep), str(len(part.operators)), part.types)
         for number, part in enumerate(parts[:_MOST_ROWS], 1)],
        numeric=(0, 2),
        folded=None if len(parts) <= _MOST_ROWS else f"the first {_MOST_ROWS} of {len(parts)} pieces",
    )  # fmt: skip
    return (
        Figure("execution", "What ran where, in order", sentence,
               lambda width: strip_figure(pieces, sentence, width, keys), values),
    )  # fmt: skip


def _main_ep(parts: Sequence[_Stretch]) -> str:
    """The EP the model was placed on: the one with most operators that is not the CPU."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts[part.ep] += len(part.operators)
    ranked = sorted(counts, key=lambda ep: (ep == "CPUExecutionProvider", -counts[ep]))
    return ranked[0]


def _execution_sentence(parts: Sequence[_Stretch]) -> str:
    main = _main_ep(parts)
    places = [number for number, part in enumerate(parts) if part.ep == main]
    count = sum(len(parts[number].operators) for number in places)
    between = [part for number, part in enumerate(parts) if part.ep != main and places[0] < number < places[-1]]
    before, after = parts[: places[0]], parts[places[-1] + 1 :]
    pieces = "one piece" if len(places) == 1 else f"{len(places)} pieces"
    said = f"{short_ep(main)} ran {counted(count, 'operator')} in {pieces}"
    if between:
        kinds = Counter(one.type for part in between for one in part.operators)
        listed = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common(4))
        more = f" and {len(kinds) - 4} more types" if len(kinds) > 4 else ""
        on = " and ".join(sorted({short_ep(part.ep) for part in between}))
        said += f": {listed}{more} on {on} split it"
    ends = []
    if before:
        ends.append(f"{_short_types(before)} before it")
    if after:
        ends.append(f"{_short_types(after)} after it")
    if ends:
        eps = " and ".join(sorted({short_ep(part.ep) for part in (*before, *after)}))
        said += f"; {eps} ran {' and '.join(ends)}"
    return f"{said}."


def _short_types(parts: Sequence[_Stretch]) -> str:
    return _Stretch("", tuple(one for part in parts for one in part.operators)).types


def _pieces(parts: Sequence[_Stretch]) -> list[Piece]:
    main = _main_ep(parts)
    found = []
    for part in parts:
        style = ep_style(part.ep)
        count = len(part.operators)
        said = f"{counted(count, 'operator')} on {short_ep(part.ep)}: {part.types}"
        label = counted(count, "operator") if part.ep == main else part.types
        found.append(Piece(label, said, count, ((style.role, 1.0),), style.glyph, first=part.ep != main))
    return found


def _equal_pieces(parts: Sequence[_Stretch]) -> list[Piece]:
    """As many pieces as can be told apart, each divided by the EPs of its operators."""
    eps = [part.ep for part in parts for _ in part.operators]
    found = []
    for number in range(MOST_PIECES):
        begin, end = (len(eps) * n // MOST_PIECES for n in (number, number + 1))
        counts = Counter(eps[begin:end])
        if not counts:
            continue
        ranked = sorted(counts.items(), key=lambda one: one[0])
        listed = ", ".join(f"{n} on {short_ep(ep)}" for ep, n in ranked)
        divided = tuple((ep_style(ep).role, n / (end - begin)) for ep, n in ranked)
        found.append(Piece("", f"operators {begin + 1} to {end}: {listed}", end - begin, divided))
    return found


def _facts(trace: OpTraceResult) -> tuple[Block, ...]:
    about, summary = trace.metadata, trace.summary
    pairs = [
        ("tool", f"{about.tracing_backend}, {about.tracing_level}{', simulated' if about.simulated else ''}"),
        ("runs", f"{counted(about.num_samples, 'run')} after {counted(about.warmup_samples, 'warm-up')}"),
        ("operators", _operator_counts(trace)),
    ]
    whole, outside = _value(summary, "end_to_end_us"), _value(summary, "unexplained_us")
    explained = None
    if whole is None or outside is None:
        pairs.append(("explained", "unknown: the trace has no time of a whole run"))
    else:
        pct = 100 * (whole - outside) / whole if whole else 0.0
        explained = f"operators explain {pct:.1f} % of a run"
        pairs.append(
            ("explained", f"{_number(whole - outside)} of {_number(whole)} µs per run ({pct:.1f} %); the rest is "
             "outside of operators")
        )  # fmt: skip
    counted_cycles, cycles = _value(summary, "accelerator_cycles"), _value(summary, "operators_cycles")
    if counted_cycles and cycles is not None:
        pairs.append(("cycles", f"{_number(cycles)} of {_number(counted_cycles)} that the accelerator counted"))
    absorbed = summary.get("absorbed_nodes")
    if isinstance(absorbed, list | tuple) and absorbed:
        pairs.append(("absorbed", f"{counted(len(absorbed), 'node')} of the model, by other operators or when it was "
                      "opened"))  # fmt: skip
    unknown = sum(one.percent_of_total is None for one in trace.operators)
    if unknown:
        pairs.append(("without a value", counted(unknown, "operator")))
    folded = f"{about.tracing_backend}, {counted(about.num_samples, 'run')}"
    return (Facts("Trace", tuple(pairs), folded if explained is None else f"{folded}; {explained}"),)


def _operator_counts(trace: OpTraceResult) -> str:
    counts = Counter(short_ep(one.ep) for one in trace.operators)
    listed = ", ".join(f"{n:,} on {ep}" for ep, n in counts.most_common())
    units = " and ".join(UNITS[unit] for unit in sorted({one.unit for one in trace.operators}))
    return f"{listed}; measured in {units}" if listed else "none"


def _value(summary: Mapping[str, Any], name: str) -> float | None:
    found = summary.get(name)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
