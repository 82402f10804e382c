"""A/A calibrations, kept in the cache: how much rounds of a base vary on this machine."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from winml.modelkit.core.location import cache_root
from winml.modelkit.core.verdict import Clock
from winml.modelkit.store import atomic, digest

SCHEMA = "winml/calibration/1"


@dataclass(frozen=True)
class Calibration:
    """Round values of A/A rounds on both clocks, and what they cost."""

    values: dict[Clock, list[float]]
    seconds: float
    cached: bool

    def to_json(self) -> dict[str, Any]:
        return {"values": self.values, "seconds": self.seconds, "cached": self.cached}


NONE = Calibration({"cpu": [], "wall": []}, 0.0, False)


def key(fingerprint: str, target: str, session: dict[str, Any], inputs: dict[str, Any], plan: dict[str, Any]) -> str:
    """What a calibration belongs to: base graph, target, session section, inputs, protocol and machine."""
    machine = {"node": platform.node(), "machine": platform.machine(), "release": platform.release()}
    parts = {"fingerprint": fingerprint, "target": target, "session": session, "inputs": inputs, "machine": machine}
    measured = {k: plan[k] for k in ("mode", "warmup", "min_pairs", "min_round_s", "calibration_rounds", "priority")}
    return digest.of_json({**parts, "protocol": measured})


def _load(name: str) -> Calibration | None:
    path = cache_root() / "calibrations" / f"{name.removeprefix(digest.PREFIX)}.json"
    try:
        value = json.loads(path.read_bytes())
        if value["schema"] != SCHEMA:
            return None
        values: dict[Clock, list[float]] = {c: [float(v) for v in value["values"][c]] for c in ("cpu", "wall")}
        return Calibration(values, float(value["seconds"]), True)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a cache may forget


def cached(name: str, make: Callable[[], Calibration], *, anew: bool = False) -> Calibration:
    """The stored calibration, or a new one that is then stored."""
    found = None if anew else _load(name)
    if found is not None:
        return found
    made = make()
    value = {"schema": SCHEMA, "values": made.values, "seconds": made.seconds}
    path = cache_root() / "calibrations" / f"{name.removeprefix(digest.PREFIX)}.json"
    atomic.write_bytes(path, json.dumps(value).encode())
    return made
