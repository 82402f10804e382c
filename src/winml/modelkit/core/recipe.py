"""A recipe: what a model family needs in addition to the defaults, as data that every command can be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.support import Goal, Verdict
from winml.modelkit.core.values import AtLeast, Names, NotEmpty, Ordered, Pattern, Text

RecipeName = Annotated[str, Pattern(r"[a-z0-9]+([._-][a-z0-9]+)*", "lower-case words joined by `-`, `_` or `.`")]
Size = Annotated[int, AtLeast(1)]


@dataclass(frozen=True)
class ExportPart:
    """How a Hugging Face model is exported; what is null or empty stays at the default."""

    task: Text | None = None
    exporter: Literal["transformers", "legacy"] | None = None
    shapes: Mapping[str, Annotated[tuple[Size, ...], NotEmpty()]] = field(default_factory=dict)
    """The size of an axis, or the sizes of a whole input, by name."""
    dynamic_axes: Names | None = None
    """The axes that stay open; an empty list fixes all of them."""
    input_specs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
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

    precision: Text | None = None
    level: Text | None = None
    enable: Names = ()
    disable: Names = ()
    opset: Annotated[int, AtLeast(7)] | None = None
    dims: Mapping[str, Size] = field(default_factory=dict)
    optimize: bool = True
    calibration: Literal["random"] | None = None
    """Synthetic inputs, where a precision needs some; a user's own data is no matter of a family."""
    samples: Size | None = None
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

    int_ranges: Mapping[str, Annotated[tuple[int, int], Ordered()]] = field(default_factory=dict)
    """Least and greatest value by input; the name `*` stands for every integer input."""
    dims: Mapping[str, Size] = field(default_factory=dict)

    def words(self) -> list[str]:
        """The options of `winml perf` and `winml compare`."""
        ranges = {n: f"{low}:{high}" for n, (low, high) in self.int_ranges.items()}
        found = [word for n, r in ranges.items() for word in ("--int-range", r if n == "*" else f"{n}={r}")]
        return found + [word for name, size in self.dims.items() for word in ("--dim", f"{name}={size}")]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A model that the recipe was tried on, and the outcome."""

    family: Text
    model: Text
    target: Text
    simulated: bool
    outcome: Literal["proven", "failed"]
    """Whether it reached its goal, with a measured effect."""
    goal: Goal | None
    """The highest rung it reached; null when it does not build."""
    review: Verdict | None
    """The verdict of `winml support review` on the evidence; null when there was no review."""
    shows: Text


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What supports a family."""

    schema: Literal["winml/recipe/1"] = "winml/recipe/1"
    name: RecipeName
    families: Names = ()
    """`model_type` of the models it is for; empty: the one model it was made for."""
    tasks: Names = ()
    template: RecipeName | None = None
    """The recipe it was made from."""
    parts: Names = ()
    """Models that are exported and built apart and run together; empty: a single one."""
    export: ExportPart = field(default_factory=ExportPart)
    build: BuildPart = field(default_factory=BuildPart)
    inputs: InputPart = field(default_factory=InputPart)
    notes: Names = ()
    proven: tuple[Proof, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        """Whether every command would do the same without it."""
        return (self.export, self.build, self.inputs) == (ExportPart(), BuildPart(), InputPart())
