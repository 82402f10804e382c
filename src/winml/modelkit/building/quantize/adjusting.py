"""What adjustments of a model did, in words."""

from __future__ import annotations

from winml.modelkit.building.quantize.result import Adjustment, Fidelity


def least_db(compared: Fidelity) -> float | None:
    """The signal to noise of the output that agrees least; None where it was not measured or has no noise."""
    return min((output.sqnr_db for output in compared.outputs if output.sqnr_db is not None), default=None)


def note(found: Adjustment) -> str:
    """One line on an adjustment: what was done, what was left, and what it changed."""
    if found.name == "smoothing":
        done = f"smoothing moved ranges of activations into the weights of {found.layers} products"
        if found.added_nodes:
            done += f", with {found.added_nodes} nodes more"
    else:
        done = f"bias correction shifted {found.layers} products"
    left = "".join(f"; {count} were left: {reason}" for reason, count in found.left.items())
    effect = ""
    if found.without_db is not None and found.with_db is not None:
        effect = f"; the outputs have {found.with_db:.1f} dB, without it {found.without_db:.1f} dB"
    return done + left + effect
