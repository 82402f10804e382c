"""A recorded sweep: medians per session for each config of one model on one target, where raw samples are gone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.sections import choice, each, key, names, number, optional, read, section, text, whole

ORDERS = ("sequential", "interleaved", "unknown")

milliseconds = number(math.ulp(0.0), 1e9)


@dataclass(frozen=True)
class Config:
    """One config of a sweep with the median of each of its sessions, in the order they ran."""

    id: str = key(text)
    opset: int | None = key(optional(whole(1)), None)
    passes: tuple[str, ...] | None = key(optional(names), None)
    """Passes switched on; null when that was not recorded."""
    sessions_ms: tuple[float, ...] = key(each(milliseconds), ())

    def equals(self, other: Config) -> bool:
        """Whether both are recorded as the same config; what was not recorded is never the same."""
        known = None not in (self.opset, other.opset, self.passes, other.passes)
        return known and self.opset == other.opset and set(self.passes or ()) == set(other.passes or ())


def _unique(value: Any, where: str) -> tuple[Config, ...]:
    configs: tuple[Config, ...] = each(section(Config))(value, where)
    if len({c.id for c in configs}) != len(configs):
        raise RequestError(f"`{where}` must have every id once")
    return configs


@dataclass(frozen=True)
class Sweep:
    """All configs of one model on one target, in the order they were measured."""

    order: str = key(choice(*ORDERS))
    configs: tuple[Config, ...] = key(_unique)
    measured_on: str | None = key(optional(text), None)

    def config(self, name: str) -> Config | None:
        return next((c for c in self.configs if c.id == name), None)


@dataclass(frozen=True)
class RecordedPair:
    """Two configs of a recorded sweep and what is claimed of them: evidence where raw samples are gone."""

    base: str = key(text)
    candidate: str = key(text)
    claim: str = key(choice("faster", "slower", "neutral"))
    sweep: Sweep = key(section(Sweep))


def pair_from_json(value: Any, where: str) -> RecordedPair:
    """The pair in a JSON value; both of its configs are in the sweep."""
    pair = read(RecordedPair, value, where)
    for side in ("base", "candidate"):
        if pair.sweep.config(getattr(pair, side)) is None:
            raise RequestError(f"`{where}.{side}` names no config of the sweep: {getattr(pair, side)!r}")
    return pair
