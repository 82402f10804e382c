"""The text of `winml run` and of `winml serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from winml.modelkit.render.table import table as make_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from winml.modelkit.core.placement import Placement
    from winml.modelkit.serving.prediction import (
        Answer,
        Areas,
        Boxes,
        Classes,
        Embedding,
        Entities,
        GapWords,
        OutputFacts,
        PredictionResult,
        Similarity,
    )
    from winml.modelkit.serving.serve_command import ServeReady

_MOST_TEXT = 60


def _table(rows: Sequence[tuple[str, ...]], right: int | None = None) -> list[str]:
    return make_table(rows, right=frozenset() if right is None else frozenset({right})).split("\n")


def _headline(result: PredictionResult) -> str:
    runtime = result.environment.runtime
    words = f"{runtime.name} {runtime.version}" if result.runtime is None else result.runtime.name
    simulated = " (simulated)" if result.simulated else ""
    is_file = result.input in ("image", "audio", "arrays")
    shown = Path(result.source).name if is_file else _cut(result.source)
    task = f" · {result.task}" if result.task else ""
    return f"{Path(result.model).name} on {result.target}{simulated} ({words}){task} · {result.input} {shown}"


def _cut(text: str) -> str:
    one_line = " ".join(text.split())
    return one_line if len(one_line) <= _MOST_TEXT else f"{one_line[: _MOST_TEXT - 1]}…"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _labels(answer: Classes) -> list[str]:
    return _table([(one.label, _percent(one.score)) for one in answer.labels], right=1)


def _entities(answer: Entities) -> list[str]:
    found = [(one.text, one.label, _percent(one.score)) for one in answer.entities]
    return _table(found, right=2) if found else ["no entity"]


def _words(answer: GapWords) -> list[str]:
    gaps = enumerate(answer.gaps, 1)
    return _table([(f"gap {number}", one.label, _percent(one.score)) for number, gap in gaps for one in gap], right=2)


def _boxes(answer: Boxes) -> list[str]:
    head = ("", "score", "left top width height")
    rows = [(one.label, _percent(one.score), " ".join(f"{edge:.0f}" for edge in one.box)) for one in answer.boxes]
    return _table([head, *rows], right=1) if rows else [f"no box with a score of at least {answer.threshold:g}"]


def _areas(answer: Areas) -> list[str]:
    return _table([(one.label, f"{_percent(one.share)} of the pixels") for one in answer.areas], right=1)


def _similarity(answer: Similarity) -> list[str]:
    return ["unknown: a vector has no direction" if answer.cosine is None else f"cosine {answer.cosine:.4f}"]


def _embedding(answer: Embedding) -> list[str]:
    first = ", ".join(f"{value:.4g}" for value in answer.first)
    more = ", …" if answer.size > len(answer.first) else ""
    return [f"vector of {answer.size} numbers, length {answer.norm:.4f}: {first}{more}"]


_TEXTS: dict[str, Callable[[Any], list[str]]] = {
    "classes": _labels,
    "entities": _entities,
    "span": lambda answer: [answer.text],
    "words": _words,
    "boxes": _boxes,
    "areas": _areas,
    "similarity": _similarity,
    "embedding": _embedding,
    "text": lambda answer: answer.text.splitlines() or ["(no text)"],
    "outputs": lambda answer: [f"no answer in words: {answer.reason}"],
}


def answer_lines(answer: Answer) -> list[str]:
    """What the model answers, in words."""
    return _TEXTS[answer.kind](answer)


def _output_row(output: OutputFacts) -> tuple[str, ...]:
    shape = f"{output.type}[{', '.join(map(str, output.shape))}]"
    spread = "" if output.lowest is None else f"{output.lowest:.4g} … {output.highest:.4g}"
    if output.not_finite:
        spread += f" ({output.not_finite} not finite)"
    first = ", ".join(
        "not finite" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in output.first
    )
    return output.name, shape, spread, _cut(first)


def _outputs(outputs: Sequence[OutputFacts]) -> list[str]:
    return _table([("output", "type", "range", "first values"), *map(_output_row, outputs)])


def _placement(placement: Placement | None) -> list[str]:
    if placement is None or not placement.total:
        return []
    nodes = ", ".join(f"{name.removesuffix('ExecutionProvider')} {count}" for name, count in placement.nodes.items())
    return [f"nodes: {nodes}"]


def run_text(result: PredictionResult, *, streamed: bool = False) -> str:
    """The answer of a model; `streamed` where its text was written already."""
    lines = [] if streamed else ["", *(f"  {line}" for line in answer_lines(result.answer))]
    if result.answer.kind == "outputs":
        lines += ["", *(f"  {line}" for line in _outputs(result.outputs))]
    if result.answer.kind == "text" and result.answer.tokens is not None:
        ended = {"stop": "ended by itself", "length": "ended by the limit", None: ""}[result.answer.finish]
        lines += ["", f"{result.answer.tokens} tokens, {ended}"]
    return "\n".join([_headline(result), *lines, *_placement(result.placement)])


def ready_text(result: ServeReady) -> str:
    """Where a server listens, and what it needs to be asked."""
    lines = [result.address]
    if result.token is not None:
        lines.append(f"Authorization: Bearer {result.token}")
    return "\n".join(lines)
