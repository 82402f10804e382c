"""Presets: fixed lists of hypotheses per target, each a change of config sections with the graph it makes sense for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.finding import Condition
from winml.modelkit.core.sections import each, flag, key, names, optional, section, text, whole
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.knowledge import files

SCHEMA = "winml/preset/1"
FOLDER = Path(__file__).with_name("presets")


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


@dataclass(frozen=True)
class Changes:
    """What a hypothesis changes in the config; null leaves the base alone."""

    optimize: OptimizeSection | None = key(optional(section(OptimizeSection)), None)
    analyze: bool | None = key(optional(flag), None)
    """false: the passes that analysis would add are left out."""


@dataclass(frozen=True)
class Hypothesis:
    """One config to try."""

    id: str = key(text)
    title: str = key(text)
    changes: Changes = key(section(Changes), factory=Changes)
    needs: tuple[Condition, ...] = key(each(section(Condition)), ())
    """All of these hold for a graph it can do something for."""
    because: tuple[str, ...] = key(names, ())
    """Findings it tests or is ordered by."""

    @property
    def passes(self) -> tuple[str, ...]:
        return self.changes.optimize.passes if self.changes.optimize else ()

    @property
    def opset(self) -> int | None:
        return self.changes.optimize.opset if self.changes.optimize else None


@dataclass(frozen=True)
class Preset:
    """The hypotheses for one target; `h0` is the base."""

    schema: str = key(_schema)
    id: str = key(text)
    target: str = key(text)
    precision: str = key(text)
    opset: int = key(whole(7))
    """The opset a hypothesis has that names none."""
    compile: bool = key(flag)
    hypotheses: tuple[Hypothesis, ...] = key(each(section(Hypothesis)))

    def hypothesis(self, name: str) -> Hypothesis:
        found = {h.id: h for h in self.hypotheses}
        if name not in found:
            raise RequestError(f"preset `{self.id}` has no hypothesis `{name}`", hint=did_you_mean(name, found))
        return found[name]

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def preset_from_json(value: Any) -> Preset:
    preset = sections.read(Preset, value, "")
    ids = [h.id for h in preset.hypotheses]
    if len(set(ids)) != len(ids) or ids[:1] != ["h0"]:
        raise RequestError("`hypotheses` must start with `h0` and have every id once")
    return preset


def presets() -> dict[str, Preset]:
    """The shipped presets by name."""
    found = [files.read(path, preset_from_json) for path in files.json_files(FOLDER)]
    return {preset.id: preset for preset in found}


def preset(name: str) -> Preset:
    known = presets()
    if name not in known:
        raise RequestError(f"unknown preset `{name}`", hint=did_you_mean(name, known))
    return known[name]
