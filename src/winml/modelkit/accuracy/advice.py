"""What a result says to people: which layers lose most, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from winml.modelkit.accuracy.mend_result import Attempt
from winml.modelkit.accuracy.noise import Noise
from winml.modelkit.accuracy.result import FusedLayers, LayerNoise, OutputNoise
from winml.modelkit.core.target import Target

MOST = 3
TARGET_DB = 6.0
"""What a target loses beyond the CPU before it is said: half of the amplitude."""
CLIPPED = 0.001
"""The share of values beyond the range that is said."""


def summarize(
    layers: Sequence[LayerNoise], outputs: Sequence[OutputNoise], fused: FusedLayers | None, target: Target
) -> Iterator[str]:
    """Sentences, the most important first."""
    for found in outputs:
        yield f"output {found.output}: {describe(found.noise)} on {target}"
    if fused is not None:
        names = ", ".join(f"{node.name} ({node.op})" for node in fused.nodes[:MOST])
        yield (
            f"{names}: right by itself, wrong with its neighbours on {target}: while its value is an output of the "
            f"model the outputs are at {describe(fused.after)} instead of {describe(fused.before)}"
        )
    for row in [row for row in layers if row.unexplained_db is not None][:MOST]:
        own, within = ("not measured" if one is None else describe(one) for one in (row.own, row.within))
        yield (
            f"{row.label} ({row.kind}) goes wrong within the model only: {within} on {target} against what it gives "
            f"by itself for the same inputs ({own} against the reference)"
        )
    broken = [row for row in layers if row.own is not None and row.own.not_finite]
    for row in broken[:MOST]:
        yield f"{row.label} ({row.kind}) gives NaN or infinity where the reference has numbers"
    worst = [row for row in layers if row.effect is not None and not row.effect.equal and not row.alone_only]
    for row in sorted(worst, key=lambda row: row.effect.rank if row.effect is not None else 0.0)[:MOST]:
        assert row.effect is not None
        text = f"{row.label} ({row.kind}) alone leaves the outputs at {describe(row.effect)}"
        if row.clipped is not None and row.clipped >= CLIPPED:
            text += f"; {100 * row.clipped:.2g} % of its values lie beyond the range it was calibrated for"
        lost = row.lost_on_target_db
        if lost is not None and lost >= TARGET_DB:
            text += f"; on {target} it loses {lost:.0f} dB that the CPU does not lose"
        yield text
    for row in [row for row in layers if row.state in ("refused", "crashed")][:MOST]:
        yield f"{row.label} ({row.kind}) {row.state}: {row.reason}"


def summarize_mend(first: Attempt, last: Attempt, layers: Sequence[LayerNoise], target: Target) -> Iterator[str]:
    """What was wrong, what is done about it and what that comes to; nothing where nothing had to be done."""
    changed = f"with {', '.join(last.mending)}" if last.mending else ""
    if not layers and not changed:
        return
    parts = [_gain(first, last), _growth(first, last), _placement(first, last)]
    parts.append("speed not known (simulated)" if target.simulated else "speed to be measured with `winml compare`")
    effect = ", ".join(part for part in parts if part)
    if not layers:
        yield f"{changed}: {effect}"
        return
    worst = layers[0]
    others = len(layers) - 1
    it = "it" if not others else f"it and {others} more layer{'s' if others > 1 else ''}"
    way = "with 16-bit activations" if last.raised else "in float"
    yield f"{_blame(worst, target)}; {it} {way}{f', {changed}' if changed else ''}: {effect}"


def _blame(layer: LayerNoise, target: Target) -> str:
    """What a layer does, in the words of what is worst about it."""
    name, lost = f"{layer.label} ({layer.kind})", layer.lost_on_target_db
    if layer.unexplained_db is not None:
        return f"{name} goes wrong on {target} within the model only, by {layer.unexplained_db:.0f} dB"
    if lost is not None and lost >= TARGET_DB:
        return f"{name} on {target} loses {lost:.0f} dB that the CPU does not lose"
    if layer.effect is not None:
        return f"{name} alone leaves the outputs at {describe(layer.effect)} on {target}"
    return f"{name} loses most on {target}"


def _gain(first: Attempt, last: Attempt) -> str:
    if first.metric is not None and first.value is not None and last.value is not None:
        return f"{first.metric} {first.value:.4g} -> {last.value:.4g}"
    if first.agreement is None or last.agreement is None:
        return ""
    return f"cosine {first.agreement:.3f} -> {last.agreement:.4f}"


def _growth(first: Attempt, last: Attempt) -> str:
    if not first.bytes or not last.bytes:
        return ""
    share = 100.0 * (last.bytes / first.bytes - 1.0)
    return "size unchanged" if abs(share) < 0.05 else f"{abs(share):.2g} % {'larger' if share > 0 else 'smaller'}"


def _placement(first: Attempt, last: Attempt) -> str:
    """Whether nodes left the EP: pairs that convert are nodes as well, so that numbers alone may grow."""
    if first.placed is None or last.placed is None:
        return ""
    cpu = [placed.get("CPUExecutionProvider", 0) for placed in (first.placed, last.placed)]
    if len(first.placed) == 1 == len(last.placed) or cpu[0] == cpu[1]:
        return "placement unchanged"
    return f"nodes on the CPU {cpu[0]} -> {cpu[1]}"


def describe(noise: Noise) -> str:
    """`31.2 dB, cosine 0.9996`."""
    if noise.not_finite:
        return f"{noise.not_finite} numbers are NaN or infinite"
    if noise.equal:
        return "equal to the reference"
    ratio = "no signal" if noise.sqnr_db is None else f"{noise.sqnr_db:.1f} dB"
    return ratio if noise.cosine is None else f"{ratio}, cosine {noise.cosine:.4f}"
