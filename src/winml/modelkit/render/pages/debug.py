"""The report of `winml debug`: which layers lose accuracy, and what each does to the outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.figures.bars import Bar, bar_figure
from winml.modelkit.render.figures.effects import amplitude, percent_text
from winml.modelkit.render.pages.common import model_name, notices
from winml.modelkit.render.pages.page import Block, Facts, Figure, Page, Text, table
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.accuracy.noise import Noise
    from winml.modelkit.accuracy.result import DebugResult, LayerNoise

_MOST_BARS = 16
_MOST_ROWS = 200


def debug_page(result: DebugResult) -> Page:
    """The layers of a model, the one that loses most first."""
    answer, *others = (*result.summary, "no output could be compared")
    blocks = (
        *notices(result.warnings),
        *([Text("\n".join(f"{line}." for line in others[:-1]))] if len(others) > 1 else []),
        *_bars(result),
        _layers(result),
        *notices(result.notes, "note"),
        _facts(result),
    )
    title = f"{model_name(result.model)} on {result.target} against {model_name(result.reference)}"
    return Page("debug", title, f"{answer}.", blocks, "simulated" if result.target.simulated else None)


def _bars(result: DebugResult) -> list[Block]:
    rows = [layer for layer in result.layers if layer.effect is not None][:_MOST_BARS]
    bars = tuple(_bar(layer) for layer in rows)
    if not bars:
        return []
    worst = rows[0]
    sentence = f"{worst.label} does most: the noise that it makes alone is {percent_text(worst.effect)} of the outputs."

    def draw(width: float) -> str:
        return bar_figure(bars, "Noise of the outputs by layer", width, heads=("outputs", "own"))

    return [Figure("layers", "What the noise of each layer alone does to the outputs", sentence, draw)]


def _bar(layer: LayerNoise) -> Bar:
    texts = (percent_text(layer.effect), percent_text(layer.own))
    said = f"{layer.label}: {texts[0]} of the outputs, {texts[1]} of its own value"
    return Bar(layer.label, said, amplitude(layer.effect), texts, detail=layer.kind)


def decibels_text(noise: Noise | None) -> str:
    if noise is None:
        return ""
    if noise.not_finite:
        return "NaN"
    return "equal" if noise.equal else "no signal" if noise.sqnr_db is None else f"{noise.sqnr_db:.1f}"


def _layers(result: DebugResult) -> Block:
    rows = [
        (
            layer.label,
            layer.kind,
            layer.state if layer.reason is None else f"{layer.state}: {layer.reason}",
            decibels_text(layer.effect),
            decibels_text(layer.own),
            decibels_text(layer.on_cpu),
            decibels_text(layer.accumulated),
            (layer.ep or "").removesuffix("ExecutionProvider"),
        )
        for layer in result.layers[:_MOST_ROWS]
    ]
    head = ("layer", "operators", "state", "outputs dB", "own dB", "own dB on the CPU", "accumulated dB", "on")
    left = len(result.layers) - len(rows)
    note = f"{counted(left, 'layer')} more are in the result." if left else None
    return table("Layers", head, rows, numeric=(3, 4, 5, 6), note=note)


def _facts(result: DebugResult) -> Facts:
    matching = result.matching
    pairs = (
        ("model", result.model),
        ("reference", result.reference),
        ("target", f"{result.target}{' (simulated)' if result.target.simulated else ''}"),
        ("data", f"{counted(result.samples, 'sample')} of {result.data}"),
        ("values that both models have", f"{matching.matched}, {matching.by_structure} of them by their place"),
        ("values of the reference alone", str(matching.unmatched_count)),
        ("noise within the model", "one session" if result.method == "exposed" else "layer after layer"),
        ("sessions on the target", str(result.sessions)),
    )
    return Facts("This run", pairs)
