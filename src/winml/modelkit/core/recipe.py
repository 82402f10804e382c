"""A recipe: what a model family needs besides the defaults, as data that every command can be given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.sections import choice, each, flag, key, mapping, names, optional, section, sizes, text, whole
from winml.modelkit.core.support import GOALS, VERDICTS

SCHEMA = "winml/recipe/1"


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


def _name(value: Any, where: str) -> str:
    word = text(value, where)
    if not re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", word):
        raise RequestError(f"`{where}` must be lower-case words joined by `-`, `_` or `.` but got {value!r}")
    return word


def _ranges(value: Any, where: str) -> dict[str, tuple[int, int]]:
    """Least and greatest value by input; the name `*` stands for every integer input."""
    found = mapping(value, where)
    for name, pair in found.items():
        low_high = isinstance(pair, list | tuple) and len(pair) == 2 and all(type(v) is int for v in pair)
        if not low_high or pair[0] > pair[1]:
            raise RequestError(f"`{where}.{name}` must be the least and the greatest value but got {pair!r}")
    return {name: (pair[0], pair[1]) for name, pair in found.items()}


def _shapes(value: Any, where: str) -> dict[str, tuple[int, ...]]:
    """The size of an axis, or the sizes of a whole input, by name."""
    found = mapping(value, where)
    for name, given in found.items():
        if not isinstance(given, list | tuple) or not given or not all(type(v) is int and v > 0 for v in given):
            raise RequestError(f"`{where}.{name}` must be a list of sizes but got {given!r}")
    return {name: tuple(given) for name, given in found.items()}


def _specs(value: Any, where: str) -> dict[str, dict[str, Any]]:
    return {name: mapping(given, f"{where}.{name}") for name, given in mapping(value, where).items()}


@dataclass(frozen=True)
class ExportPart:
    """How a Hugging Face model is exported; what is null or empty stays at the default."""

    task: str | None = key(optional(text), None)
    exporter: str | None = key(optional(choice("transformers", "legacy")), None)
    shapes: dict[str, tuple[int, ...]] = key(_shapes, factory=dict)
    dynamic_axes: tuple[str, ...] | None = key(optional(names), None)
    """The axes that stay open; an empty list fixes all of them."""
    input_specs: dict[str, dict[str, Any]] = key(_specs, factory=dict)
    """Keys of input sections by input: `low`, `high`, `values`, `shape`, `dtype`."""

    def words(self, specs: str) -> list[str]:
        """The options of `winml build`, `winml config` and `winml export`; `specs` is the file of `input_specs`."""
        found = [] if self.task is None else ["--task", self.task]
        found += [] if self.exporter is None else ["--exporter", self.exporter]
        found += [word for n, s in self.shapes.items() for word in ("--shape", f"{n}={','.join(map(str, s))}")]
        if self.dynamic_axes is not None:
            found += ["--dynamic-axes", ",".join(self.dynamic_axes) or "none"]
        return found + (["--input-specs", specs] if self.input_specs else [])


@dataclass(frozen=True)
class BuildPart:
    """What a build is given; what is null or empty stays at the default."""

    precision: str | None = key(optional(text), None)
    level: str | None = key(optional(text), None)
    enable: tuple[str, ...] = key(names, ())
    disable: tuple[str, ...] = key(names, ())
    opset: int | None = key(optional(whole(7)), None)
    dims: dict[str, int] = key(sizes, factory=dict)
    optimize: bool = key(flag, True)
    calibration: str | None = key(optional(choice("random")), None)
    """Inputs that are made up, where a precision needs some; data of one's own is no matter of a family."""
    samples: int | None = key(optional(whole(1)), None)
    """How many of them."""

    def words(self) -> list[str]:
        """The options of `winml build` and `winml config`."""
        found = [] if self.precision is None else ["-p", self.precision]
        found += [] if self.calibration is None else ["--calibration", self.calibration]
        found += [] if self.samples is None else ["--samples", str(self.samples)]
        found += [] if self.level is None else ["--level", self.level]
        found += [] if self.opset is None else ["--opset", str(self.opset)]
        found += [word for name in self.enable for word in ("--enable", name)]
        found += [word for name in self.disable for word in ("--disable", name)]
        found += [word for name, size in self.dims.items() for word in ("--dim", f"{name}={size}")]
        return found + ([] if self.optimize else ["--no-optimize"])


@dataclass(frozen=True)
class InputPart:
    """What inputs are made of, wherever some are made."""

    int_ranges: dict[str, tuple[int, int]] = key(_ranges, factory=dict)
    dims: dict[str, int] = key(sizes, factory=dict)

    def words(self) -> list[str]:
        """The options of `winml perf` and `winml compare`."""
        ranges = {n: f"{low}:{high}" for n, (low, high) in self.int_ranges.items()}
        found = [word for n, r in ranges.items() for word in ("--int-range", r if n == "*" else f"{n}={r}")]
        return found + [word for name, size in self.dims.items() for word in ("--dim", f"{name}={size}")]


@dataclass(frozen=True)
class Proof:
    """A model that the recipe was tried on, and what came of it."""

    family: str = key(text)
    model: str = key(text)
    target: str = key(text)
    simulated: bool = key(flag)
    outcome: str = key(choice("proven", "failed"))
    """Whether it came as far as it should, with an effect that was measured."""
    goal: str | None = key(optional(choice(*GOALS)))
    """The highest rung it reached; null when it does not build."""
    review: str | None = key(optional(choice(*VERDICTS)))
    """What `winml support review` said of the evidence; null when it was not asked."""
    shows: str = key(text)


@dataclass(frozen=True)
class Recipe:
    """What supports a family."""

    schema: str = key(_schema)
    name: str = key(_name)
    families: tuple[str, ...] = key(names, ())
    """`model_type` of the models it is for; empty: the one model it was made for."""
    tasks: tuple[str, ...] = key(names, ())
    template: str | None = key(optional(_name), None)
    """The recipe it was made from."""
    parts: tuple[str, ...] = key(names, ())
    """Models that are exported and built apart and run together; empty: a single one."""
    export: ExportPart = key(section(ExportPart), factory=ExportPart)
    build: BuildPart = key(section(BuildPart), factory=BuildPart)
    inputs: InputPart = key(section(InputPart), factory=InputPart)
    notes: tuple[str, ...] = key(names, ())
    proven: tuple[Proof, ...] = key(each(section(Proof)), ())

    @property
    def changes_nothing(self) -> bool:
        """Whether every command would do the same without it."""
        return (self.export, self.build, self.inputs) == (ExportPart(), BuildPart(), InputPart())

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def recipe_from_json(value: Any) -> Recipe:
    return sections.read(Recipe, value, "")
