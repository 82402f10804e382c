"""The text of `winml quantize --sensitivity`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from winml.modelkit.render.debug import ratio_text
from winml.modelkit.render.figures.effects import cosine_text
from winml.modelkit.render.table import table
from winml.modelkit.render.units import counted

if TYPE_CHECKING:
    from winml.modelkit.accuracy.sensitivity_result import Effect, SensitivityResult

GROUPS = 20
_WORDS = {"layer": "layer", "op-type": "operator", "block": "block"}


def _headline(result: SensitivityResult) -> str:
    simulated = " (simulated)" if result.target.simulated else ""
    word = _WORDS[result.grouping]
    return (
        f"{Path(result.model).name} at {result.precision} on {result.target}{simulated} · "
        f"{counted(result.samples, 'sample')} of {Path(result.data).name} · {counted(len(result.groups), word)}, "
        "each quantized alone"
    )


def _row(label: str, kind: str, effect: Effect, *, metric: bool) -> tuple[str, ...]:
    noise = ratio_text(effect.worst) if effect.state == "measured" else effect.state
    drop = "" if effect.drop is None else f"{effect.drop:+.4g}"
    return (label, kind, noise, cosine_text(effect), *((drop,) if metric else ()))


def sensitivity_text(result: SensitivityResult, groups: int = GROUPS) -> str:
    """What was found in sentences, then what each group does, the one that does most first."""
    metric = result.metric is not None
    word = _WORDS[result.grouping]
    drop = (f"drop of {result.metric}",) if metric else ()
    head = (word, "operators", "outputs", "cosine", *(("drop",) if metric else ()))
    names = (word, "operators", "outputs dB", "cosine", *drop)
    shown = result.groups[:groups]
    rows = [head, *(_row(group.label, group.kind, group.effect, metric=metric) for group in shown)]
    rows.append(_row("all together", "", result.whole, metric=metric))
    rows.append(_row("none", "", result.unquantized, metric=metric))
    left = len(result.groups) - len(shown)
    return "\n".join(
        [
            _headline(result),
            *(f"  {line}" for line in result.summary),
            f"signal to noise of the outputs in dB, with this {word} alone quantized",
            table(rows, indent="  ", head=True, names=names, drop=(1,)),
            *([f"  and {counted(left, f'more {word}')}"] if left else []),
        ]
    )
