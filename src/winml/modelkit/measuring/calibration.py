"""A/A calibrations, kept in the cache: how much rounds of a base vary on this machine."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.location import cache_root
from winml.modelkit.core.measurement import Arm
from winml.modelkit.core.values import to_json
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


def key(*, graph: str, arm: Arm, inputs: dict[str, Any], plan: dict[str, Any], environment: dict[str, Any]) -> str:
    """What a calibration belongs to: base graph, target, session section, inputs, protocol, machine and versions."""
    data = None if not inputs.get("npz") else digest.of_file(inputs["npz"])
    moving = ("load", "pressure_pct")
    return digest.of_json(
        {
            "graph": graph,
            "target": str(arm.target),
            "session": to_json(arm.session),
            "inputs": {**inputs, "npz": data},
            "plan": plan,
            "machine": platform.node(),
            "environment": {k: v for k, v in environment.items() if k not in moving},
        }
    )


def _load(name: str) -> Calibration | None:
    path = cache_root() / "calibrations" / f"{name.removeprefix(digest.PREFIX)}.json"
    try:
        value = read_json(path)
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
