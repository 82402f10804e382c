"""Presets: fixed lists of hypotheses per target, each a change of config sections with the graphs it is meant for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from winml.modelkit.core.config import OptimizeSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.finding import Condition
from winml.modelkit.core.suggest import did_you_mean
from winml.modelkit.core.values import AtLeast, Names, Text, read
from winml.modelkit.knowledge import files

FOLDER = Path(__file__).with_name("presets")


@dataclass(frozen=True)
class Changes:
    """What a hypothesis changes in the config; null keeps the base's value."""

    optimize: OptimizeSection | None = None
    analyze: bool | None = None
    """false: the passes that analysis would add are skipped."""


@dataclass(frozen=True)
class Hypothesis:
    """One config to try."""

    id: Text
    title: Text
    changes: Changes = Changes()
    needs: tuple[Condition, ...] = ()
    """Conditions on the graph; without them the hypothesis has no effect."""
    because: Names = ()
    """Findings that it tests or that order it."""

    @property
    def passes(self) -> tuple[str, ...]:
        return self.changes.optimize.passes if self.changes.optimize else ()

    @property
    def opset(self) -> int | None:
        return self.changes.optimize.opset if self.changes.optimize else None


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The hypotheses for one target; `h0` is the base."""

    schema: Literal["winml/preset/1"] = "winml/preset/1"
    id: Text
    target: Text
    precision: Text
    opset: Annotated[int, AtLeast(7)]
    """The opset of hypotheses without one."""
    compile: bool
    hypotheses: tuple[Hypothesis, ...]

    def __post_init__(self) -> None:
        ids = [h.id for h in self.hypotheses]
        if len(set(ids)) != len(ids) or ids[:1] != ["h0"]:
            raise RequestError("`hypotheses` must start with `h0` and have every id once")

    def hypothesis(self, name: str) -> Hypothesis:
        found = {h.id: h for h in self.hypotheses}
        if name not in found:
            raise RequestError(f"preset `{self.id}` has no hypothesis `{name}`", hint=did_you_mean(name, found))
        return found[name]


def preset_from_json(value: Any) -> Preset:
    return read(Preset, value)


def load_presets() -> dict[str, Preset]:
    """The shipped presets by name."""
    found = [files.read(path, preset_from_json) for path in files.json_files(FOLDER)]
    return {preset.id: preset for preset in found}


def load_preset(name: str) -> Preset:
    known = load_presets()
    if name not in known:
        raise RequestError(f"unknown preset `{name}`", hint=did_you_mean(name, known))
    return known[name]
