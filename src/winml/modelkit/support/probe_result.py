"""The result of `winml support probe`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from winml.modelkit.building.export.forward import ProposedInputs
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.core.support import RungVerdict, SupportResult
from winml.modelkit.core.values import Names, key

Answer = Literal["nothing", "recipe", "code", "blocked"]
"""What a model needs."""


@dataclass(frozen=True, kw_only=True)
class ProbedModel:
    """The model by content, and its config."""

    reference: str
    exported: bool
    digest: str
    family: str | None
    architecture: str | None
    task: str | None
    parts: Names


@dataclass(frozen=True)
class Attempt:
    """A summary of one command of the probe."""

    what: str
    verdict: RungVerdict
    message: str | None
    """Why it failed; null when it succeeded."""
    target: str | None
    simulated: bool
    nodes: Mapping[str, int]
    """Where nodes ran, by execution provider."""


@dataclass(frozen=True)
class Obstacle:
    """A known obstacle."""

    name: str
    applies: bool | None
    """Null when that could not be determined."""
    because: str


@dataclass(frozen=True, kw_only=True)
class InputSkeleton:
    """Input specs to fill in for a model whose inputs are unknown."""

    proposed: ProposedInputs = key(inline=True)
    reason: str | None
    """Why the class could not be inspected."""


@dataclass(frozen=True, kw_only=True)
class ProbeResult(SupportResult):
    action: Literal["probe"] = "probe"
    model: ProbedModel
    covered: bool | None
    """Whether the exporter knows the class and its task; null for a model that is not exported."""
    build: Attempt
    runs: tuple[Attempt, ...]
    helps: tuple[Attempt, ...]
    """Known changes that were tried because the default does not build."""
    obstacles: tuple[Obstacle, ...]
    knowledge: Names
    """Findings about the family."""
    recipes: Names
    """Shipped recipes for the family."""
    recipe: Recipe | None
    """The recipe of the first working help."""
    skeleton: InputSkeleton | None
    answer: Answer
    sentence: str

    @property
    def obstacles_that_apply(self) -> tuple[str, ...]:
        return tuple(obstacle.name for obstacle in self.obstacles if obstacle.applies)
