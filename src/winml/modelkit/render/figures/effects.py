"""What quantizing layers does to the outputs, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from winml.modelkit.render.figures.bars import Bar, bar_figure

if TYPE_CHECKING:
    from winml.modelkit.accuracy.noise import Noise
    from winml.modelkit.accuracy.sensitivity_result import Effect, GroupEffect, SensitivityResult

_MOST_BARS = 24


def amplitude(noise: Noise | None) -> float | None:
    """Noise as a part of the signal; None where it is not known."""
    if noise is None or noise.not_finite:
        return None
    if noise.equal:
        return 0.0
    return None if noise.sqnr_db is None else float(10.0 ** (-noise.sqnr_db / 20.0))


def percent_text(noise: Noise | None) -> str:
    found = amplitude(noise)
    if found is None:
        return "NaN" if noise is not None and noise.not_finite else ""
    return f"{100 * found:.3g} %"


def cosine_text(effect: Effect) -> str:
    worst = effect.worst
    if worst is None or worst.cosine is None:
        return ""
    return f"{worst.cosine:.5f}"


def effect_figure(result: SensitivityResult, width: float) -> str:
    """Bars of the groups that do most."""
    rows = [group for group in result.groups if group.effect.worst is not None][:_MOST_BARS]
    bars = tuple(_bar(group) for group in rows)
    return bar_figure(bars, "Noise of the outputs", width, heads=("outputs", "cosine"))


def _bar(group: GroupEffect) -> Bar:
    noise = percent_text(group.effect.worst)
    texts = (noise, cosine_text(group.effect))
    said = f"{group.label}: noise of {noise} of the outputs"
    return Bar(group.label, said, amplitude(group.effect.worst), texts, detail=group.kind)
