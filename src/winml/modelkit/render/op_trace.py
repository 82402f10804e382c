"""An operator trace as a table: largest share first, with cumulative shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from winml.modelkit.render.marks import with_bar
from winml.modelkit.render.screen import current_screen
from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.core.op_trace import OperatorEntry, OpTraceResult, Unit

_WIDTH = 46
_UNITS = {"us": "µs", "cycles": "cycles"}


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _short(text: str) -> str:
    """The end of a long name, which is more specific than its start."""
    columns = current_screen().width
    width = _WIDTH if columns is None else min(_WIDTH, max(columns // 3, 16))
    return text if len(text) <= width else "…" + text[-width + 1 :]


def _node(operator: OperatorEntry) -> str:
    """The model's node where there is one; an inserted operator is named with its neighbour."""
    if operator.origin == "inserted":
        at = f" (before {operator.neighbour})" if operator.neighbour else ""
        return _short(f"+ {operator.op_path}{at}")
    if operator.origin in ("boundary", "unknown") or not operator.onnx_nodes:
        return _short(operator.op_path)
    more = f" +{len(operator.onnx_nodes) - 1}" if len(operator.onnx_nodes) > 1 else ""
    return _short(operator.onnx_nodes[0]) + more


_EDGES = ("QuantizeLinear", "DequantizeLinear", "Cast", "Identity")


def _type(operator: OperatorEntry) -> str:
    """The type of the node that does the work, and those of the nodes it absorbed."""
    kind = operator.onnx_op_type or operator.op_type or operator.name
    if not operator.onnx_op_type:
        return kind  # the whole operator has a name, such as Gelu
    others = dict.fromkeys(a.op_type for a in operator.absorbed if a.op_type not in _EDGES)
    shown = [kind, *list(others)[:3]]
    return "+".join(shown) + (f"+{len(others) - 3} more" if len(others) > 3 else "")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _rows(operators: Sequence[OperatorEntry], unit: Unit, *, detail: bool) -> list[tuple[str, ...]]:
    word = _UNITS[unit]
    timed = unit == "cycles" and any(o.avg_us is not None for o in operators)
    extra = (*(("avg µs",) if timed else ()), *(("DRAM read", "VTCM hit") if detail else ()))
    head = ("node", "type", f"avg {word}", f"p90 {word}", with_bar("share", 0.0), "sum", *extra)
    rows: list[tuple[str, ...]] = [head]
    added = 0.0
    for o in operators:
        share = o.percent_of_total or 0.0
        added += share
        more: tuple[str, ...] = (_number(o.avg_us),) if timed else ()
        more += (_bytes(o.detail.dram_read_bytes), _ratio(o.detail.vtcm_hit_ratio)) if detail else ()
        average, p90 = (o.avg_cycles, o.p90_cycles) if unit == "cycles" else (o.avg_us, o.p90_us)
        rows.append(
            (
                _node(o),
                _type(o),
                _number(average),
                _number(p90),
                with_bar(f"{share:.1f} %", share / 100),
                f"{added:.1f} %",
                *more,
            )
        )
    return rows


def _bytes(value: float | None) -> str:
    return "" if value is None else size(int(value))


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f} %"


def _section(operators: Sequence[OperatorEntry], unit: Unit, top_k: int) -> list[str]:
    timed = [o for o in operators if o.unit == unit and o.percent_of_total is not None]
    if not timed:
        return []
    timed.sort(key=lambda o: (-(o.percent_of_total or 0.0), o.op_path))
    eps = " and ".join(sorted({o.ep.removesuffix("ExecutionProvider") for o in timed}))
    shown = timed[:top_k]
    detail = any(o.detail.dram_read_bytes is not None for o in shown)
    head = f"  {_count(len(timed), 'operator')} on {eps}, share of their {_UNITS[unit]}"
    more = f", the first {top_k}" if len(timed) > top_k else ""
    rows = _rows(shown, unit, detail=detail)
    drop = (*range(len(rows[0]) - 1, 5, -1), 3, 5)
    return [head + more, table(rows, indent="    ", right=frozenset(range(2, 9)), head=True, drop=drop)]


def _whole(summary: Mapping[str, Any]) -> list[str]:
    """The sum of operators against the whole run."""
    lines = []
    if summary.get("unexplained_us") is not None:
        known = summary["end_to_end_us"] - summary["unexplained_us"]
        lines.append(
            f"  explained  {_number(known)} of {_number(summary['end_to_end_us'])} µs per run; "
            f"{_number(abs(summary['unexplained_us']))} µs ({summary['unexplained_pct']:.1f} %) are outside operators"
        )
    if summary.get("accelerator_cycles"):
        lines.append(
            f"  cycles     {_number(summary['operators_cycles'])} of {_number(summary['accelerator_cycles'])} "
            "the accelerator counted"
        )
    absorbed = len(summary.get("absorbed_nodes", ()))
    if absorbed:
        lines.append(
            f"  absorbed   {_count(absorbed, 'node')} of the model, into other operators or when it was opened"
        )
    return lines


def op_trace_text(trace: OpTraceResult, top_k: int) -> str:
    """The largest operators per unit, and the time outside operators."""
    metadata = trace.metadata
    runs = f"{_count(metadata.num_samples, 'run')} after {_count(metadata.warmup_samples, 'warm-up')}"
    simulated = ", simulated" if metadata.simulated else ""
    head = f"operators ({metadata.tracing_backend}{simulated}; {runs})"
    operators = [o.to_value() for o in trace.operators]
    sections = [*_section(operators, "cycles", top_k), *_section(operators, "us", top_k)]
    return "\n".join([head, *sections, *_whole(trace.summary)])
