"""How arms are compared on each kind of device: data, one row per kind.

`boundary_p` is the one-sided p value a look has to beat. It is calibrated by `benchmarks/verdicts/calibrate.py` so that
a candidate that gains nothing is kept in 0.3 % of all comparisons, over all looks together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from winml.modelkit.core.target import Device

DESIGN_RATE = 0.003


@dataclass(frozen=True)
class CompareProtocol:
    """A round is one fresh process (or pair of them); its value is the median log ratio of its pairs."""

    device: Device
    warmup: int = 3
    min_pairs: int = 12
    min_round_s: float = 0.6
    long_round_s: float = 3.0
    """A slow model may end a round after this long with fewer pairs, but at least `few_pairs`."""
    few_pairs: int = 4
    first_look: int = 3
    first_look_alone: int = 4
    """First look without an A/A calibration to lend its variance."""
    lent_df: int = 3
    """Degrees of freedom a calibration lends, however many rounds it has: it may be from quieter times."""
    max_rounds: int = 16
    calibration_rounds: int = 16
    boundary_p: float = 0.0005
    boundary_p_alone: float = 0.00045
    gate_p: float = 0.005
    """One-sided p value a look has to beat for a gate to pass."""
    keep_pct: float = 1.0
    """Smaller gains are not kept, however sure."""
    marginal_pct: float = 2.0
    """Kept gains below this are marginal; a candidate whose 95 % interval ends below it is discarded."""
    confirm_below_pct: float | None = None
    """Kept gains below this are confirmed on fresh rounds before they count."""
    cool_down_s: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "name": "paired-sequential/1",
            "device": self.device,
            "warmup": self.warmup,
            "min_pairs": self.min_pairs,
            "min_round_s": self.min_round_s,
            "long_round_s": self.long_round_s,
            "few_pairs": self.few_pairs,
            "first_look": self.first_look,
            "first_look_alone": self.first_look_alone,
            "lent_df": self.lent_df,
            "max_rounds": self.max_rounds,
            "calibration_rounds": self.calibration_rounds,
            "boundary_p": self.boundary_p,
            "boundary_p_alone": self.boundary_p_alone,
            "gate_p": self.gate_p,
            "keep_pct": self.keep_pct,
            "marginal_pct": self.marginal_pct,
            "confirm_below_pct": self.confirm_below_pct,
            "cool_down_s": self.cool_down_s,
        }


PROTOCOLS: dict[Device, CompareProtocol] = {
    "cpu": CompareProtocol("cpu"),
    "gpu": CompareProtocol("gpu", warmup=10, min_round_s=1.0),
    # Session medians of an NPU move with its clock frequency alone (finding npu-007): a session is the unit, it rests
    # between sessions, and a gain below 10 % has to show twice.
    "npu": CompareProtocol("npu", warmup=10, min_round_s=2.0, cool_down_s=5.0, confirm_below_pct=10.0),
}
