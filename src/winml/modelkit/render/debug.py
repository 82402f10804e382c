"""The text of `winml debug`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.table import table
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.accuracy.noise import Noise
    from winml.modelkit.accuracy.result import DebugResult, LayerNoise

LAYERS = 12
_NAMES = ("layer", "operators", "outputs dB", "own dB", "own dB on the CPU", "accumulated dB", "placed on")


def ratio_text(noise: Noise | None) -> str:
    """`31.2`; `equal` without noise."""
    if noise is None:
        return ""
    if noise.not_finite:
        return "NaN"
    if noise.equal:
        return "equal"
    return "no signal" if noise.sqnr_db is None else f"{noise.sqnr_db:.1f}"


def _headline(result: DebugResult) -> str:
    simulated = " (simulated)" if result.target.simulated else ""
    return (
        f"{Path(result.model).name} on {result.target}{simulated} against {Path(result.reference).name} · "
        f"{counted(result.samples, 'sample')} of {Path(result.data).name} · {counted(len(result.layers), 'layer')}"
    )


def _row(layer: LayerNoise, *, elsewhere: bool) -> tuple[str, ...]:
    cpu = (ratio_text(layer.on_cpu),) if elsewhere else ()
    own = ratio_text(layer.own) if layer.state == "measured" else layer.state
    place = (layer.ep or "").removesuffix("ExecutionProvider")
    return (layer.label, layer.kind, ratio_text(layer.effect), own, *cpu, ratio_text(layer.accumulated), place)


def debug_text(result: DebugResult, layers: int = LAYERS) -> str:
    """What was found in sentences, then the layers that lose most."""
    elsewhere = result.target.ep != "cpu"
    cpu = ("own on CPU",) if elsewhere else ()
    head = ("layer", "operators", "outputs", "own", *cpu, "accumulated", "on")
    shown = result.layers[:layers]
    rows = [head, *(_row(layer, elsewhere=elsewhere) for layer in shown)]
    names = _NAMES if elsewhere else tuple(name for name in _NAMES if name != "own dB on the CPU")
    listed = table(rows, indent="  ", head=True, names=names, drop=(len(head) - 1, 1))
    left = len(result.layers) - len(shown)
    return "\n".join(
        [
            _headline(result),
            *(f"  {line}" for line in result.summary),
            "signal to noise in dB: outputs with the noise of a layer alone, the layer by itself, and within the model",
            listed,
            *([f"  and {counted(left, 'more layer')}"] if left else []),
        ]
    )
