"""A/A calibrations, kept in the cache: how much rounds of a base vary on this machine."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from typing import Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.environment import Environment
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.json_text import read_json
from winml.modelkit.core.location import cache_root
from winml.modelkit.core.measurement import Arm
from winml.modelkit.core.values import read, to_json
from winml.modelkit.core.verdict import Clock
from winml.modelkit.graph.input_settings import InputSettings
from winml.modelkit.store import atomic, digest


@dataclass(frozen=True, kw_only=True)
class ClockValues:
    """Round values on both clocks."""

    cpu: tuple[float, ...] = ()
    wall: tuple[float, ...] = ()

    def on(self, clock: Clock) -> tuple[float, ...]:
        """Of memory there are none: it hardly varies."""
        return () if clock == "memory" else self.cpu if clock == "cpu" else self.wall


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Round values of A/A rounds, and what they cost."""

    values: ClockValues
    seconds: float
    cached: bool


NONE = Calibration(values=ClockValues(), seconds=0.0, cached=False)


@dataclass(frozen=True, kw_only=True)
class CalibrationFile:
    schema: Literal["winml/calibration/1"] = "winml/calibration/1"
    values: ClockValues
    seconds: float


def key(*, graph: str, arm: Arm, inputs: InputSettings, plan: dict[str, Any], environment: Environment) -> str:
    """What a calibration belongs to: base graph, target, session section, inputs, protocol, machine and versions."""
    data = None if inputs.npz is None else digest.of_file(inputs.npz)
    moving = ("load", "pressure_pct")
    return digest.of_json(
        {
            "graph": graph,
            "target": str(arm.target),
            "session": to_json(arm.session),
            "inputs": {**to_json(inputs), "npz": data},
            "plan": plan,
            "machine": platform.node(),
            "environment": {k: v for k, v in to_json(environment).items() if k not in moving},
        }
    )


def recall(name: str, make: Callable[[], Calibration], *, recalibrate: bool = False) -> Calibration:
    """The stored calibration, or a new one that is then stored."""
    path = cache_root() / "calibrations" / f"{name.removeprefix(digest.PREFIX)}.json"
    if not recalibrate:
        try:
            stored = read(CalibrationFile, read_json(path), strict=False)
            return Calibration(values=stored.values, seconds=stored.seconds, cached=True)
        except (OSError, ValueError, RequestError):
            pass  # what the cache has lost is measured again
    made = make()
    value = CalibrationFile(values=made.values, seconds=made.seconds)
    atomic.write_bytes(path, json.dumps(to_json(value)).encode())
    return made
