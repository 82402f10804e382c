"""How arms are compared on each kind of device: data, one row per kind.

`boundary_p` is the one-sided p value a look has to beat. It is calibrated by `benchmarks/verdicts/calibrate.py` so that
a candidate that gains nothing is kept in 0.3 % of all comparisons, over all looks together.
"""

from __future__ import annotations

from winml.modelkit.core.measurement import CompareProtocol
from winml.modelkit.core.target import Device

DESIGN_RATE = 0.003


PROTOCOLS: dict[Device, CompareProtocol] = {
    "cpu": CompareProtocol("cpu"),
    "gpu": CompareProtocol("gpu", warmup=10, min_round_s=1.0),
    # Session medians of an NPU move with its clock frequency alone (finding npu-007): a session is the unit, it rests
    # between sessions, and a gain below 10 % has to show twice.
    "npu": CompareProtocol("npu", warmup=10, min_round_s=2.0, cool_down_s=5.0, confirm_below_pct=10.0),
}
