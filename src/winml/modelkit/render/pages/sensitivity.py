"""The report of `winml quantize --sensitivity`: what quantizing each layer alone does to the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.figures.effects import cosine_text, effect_figure, percent_text
from winml.modelkit.render.pages.common import model_name, notices
from winml.modelkit.render.pages.debug import decibels_text
from winml.modelkit.render.pages.page import Block, Facts, Figure, Page, Text, table
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.accuracy.sensitivity_result import Effect, SensitivityResult

_MOST_ROWS = 300


def sensitivity_page(result: SensitivityResult) -> Page:
    """What each group of nodes alone does, the one that does most first."""
    answer, *others = result.summary
    blocks = (
        *notices(result.warnings),
        *([Text("\n".join(f"{line}." for line in others))] if others else []),
        *_bars(result),
        _groups(result),
        *notices(result.notes, "note"),
        _facts(result),
    )
    title = f"{model_name(result.model)} at {result.precision} on {result.target}: each {_word(result)} alone"
    return Page("sensitivity", title, f"{answer}.", blocks, "simulated" if result.target.simulated else None)


def _word(result: SensitivityResult) -> str:
    return {"layer": "layer", "op-type": "operator", "block": "block"}[result.grouping]


def _bars(result: SensitivityResult) -> list[Block]:
    """The picture, where anything was measured."""
    if not any(group.effect.worst is not None for group in result.groups):
        return []
    first = next(group for group in result.groups if group.effect.worst is not None)
    sentence = (
        f"{first.label} does most: quantized alone, the noise is {percent_text(first.effect.worst)} of the outputs; "
        f"with all together it is {percent_text(result.whole.worst)}."
    )

    def draw(width: float) -> str:
        return effect_figure(result, width)

    return [Figure("sensitivity", f"Noise of the outputs with each {_word(result)} alone quantized", sentence, draw)]


def _groups(result: SensitivityResult) -> Block:
    shown = result.groups[:_MOST_ROWS]
    rows = [_row(group.label, group.kind, group.effect) for group in shown]
    rows += [_row("all together", "", result.whole), _row("none", "", result.unquantized)]
    head = (_word(result), "operators", "state", "outputs dB", "cosine", f"drop of {result.metric or 'the metric'}")
    left = len(result.groups) - len(shown)
    note = f"{counted(left, 'row')} more are in the result." if left else None
    return table("Effects", head, rows, numeric=(3, 4, 5), note=note)


def _row(label: str, kind: str, effect: Effect) -> tuple[str, ...]:
    state = effect.state if effect.reason is None else f"{effect.state}: {effect.reason}"
    drop = "" if effect.drop is None else f"{effect.drop:.4g}"
    return label, kind, state, decibels_text(effect.worst), cosine_text(effect), drop


def _facts(result: SensitivityResult) -> Facts:
    pairs = (
        ("model", result.model),
        ("target", f"{result.target}{' (simulated)' if result.target.simulated else ''}"),
        ("precision", result.precision),
        ("data", f"{counted(result.samples, 'sample')} of {result.data}"),
        ("nodes that the precision does not quantize", str(result.left)),
        ("variants measured in an earlier run", f"{result.cached} of {len(result.groups) + 2}"),
    )
    return Facts("This run", pairs)
