"""The text of `winml quantize` with a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.marks import mark
from winml.modelkit.render.table import table
from winml.modelkit.render.units import size

if TYPE_CHECKING:
    from winml.modelkit.accuracy.mend_result import Attempt, MendResult

_ANSWERS = {"within": "held", "exceeded": "not held", "inconclusive": "cannot tell", "failed": "failed"}
_MOST_NODES = 12


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


def _row(attempt: Attempt) -> tuple[str, ...]:
    return (
        str(attempt.raised),
        str(attempt.kept),
        " + ".join(attempt.mending),
        _number(attempt.value),
        _number(attempt.drop),
        _number(attempt.agreement),
        "" if attempt.bytes is None else size(attempt.bytes),
        mark(attempt.answer, _ANSWERS[attempt.answer]),
    )


def _list(nodes: tuple[str, ...]) -> str:
    return ", ".join(nodes[:_MOST_NODES]) + (" ..." if len(nodes) > _MOST_NODES else "")


def mend_text(result: MendResult) -> str:
    """Every attempt, and the layers that stay in float."""
    quantized = result.quantized
    limits = {"a drop of at most": result.max_drop, "an agreement of at least": result.min_agreement}
    limit = " and ".join(f"{words} {value!r}" for words, value in limits.items() if value is not None)
    name = next((attempt.metric for attempt in result.attempts if attempt.metric), None) or "metric"
    head = ("16 bits", "in float", "changes", name, "drop", "agreement", "size", "limit")
    names = ("layers with 16 bits", "layers in float", "changes", name, "drop", "least median cosine", "size", "limit")
    return "\n".join(
        [
            f"{result.model} -> {result.output} for {quantized.target} · {quantized.precision} within {limit}",
            table([head, *map(_row, result.attempts)], indent="  ", head=True, names=names),
            *([f"16-bit activations: {_list(result.raised)}"] if result.raised else []),
            *([f"stay in float: {_list(result.kept)}"] if result.kept else []),
            *result.summary,
        ]
    )
