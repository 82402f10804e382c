"""A contribution: a model, its goal, what was reached, and the digest of every file.

contribution/
  contribution.json      this value
  contribution.md        the same as a text for a pull request
  recipe.json            what the model needs; input-specs.json is made from it
  findings/*.json        findings to add, one claim each
  code/                  files of the repository that it changes
  evidence/              every command: record, JSON result, log
  artifacts/ inputs/ data/   what commands wrote and read
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.plain_text import markdown
from winml.modelkit.core.support import ArtifactLevel, Effort, Goal, Outcome
from winml.modelkit.core.values import AtLeast, AtMost, Digest, Names, NotEmpty, Pattern, Text, Unique
from winml.modelkit.support.probe_result import Answer, ProbedModel, ProbeResult
from winml.modelkit.support.review.effect import Effect
from winml.modelkit.support.review.evidence import Moment, require_moment
from winml.modelkit.support.review.ladder import Rung
from winml.modelkit.support.review.plan import MetricData

FILE = "contribution.json"
REPORT = "contribution.md"
Trigger = Literal[
    "cli-surprise",
    "doc-drift",
    "silent-failure",
    "new-verdict",
    "reviewer-gap",
    "effort-misjudged",
    "mined-change",
    "catalog-only",
]
"""Events that require a methodology finding."""

# These become file names or arguments of commands.
PartName = Annotated[str, Pattern(r"[a-z0-9]+([_-][a-z0-9]+)*", "a plain name")]
StepName = Annotated[str, Pattern(r"[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*", "the name of a command")]
TargetWord = Annotated[str, Pattern(r"[A-Za-z0-9_]+(/[A-Za-z0-9_]+)?", "a target, as `qnn/npu`,")]


@dataclass(frozen=True, kw_only=True)
class ContributedModel:
    """What is supported."""

    reference: Text
    """As it was given; a reviewer may give another path with the same content."""
    exported: bool
    digest: Digest
    family: Text | None
    task: Text | None
    parts: Annotated[tuple[PartName, ...], Unique()]


@dataclass(frozen=True, kw_only=True)
class Tiers:
    """Effort, goal and outcome."""

    effort: Effort
    goal: Goal
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class ProbeClaim:
    """What happens with the defaults."""

    answer: Answer
    sentence: Text
    obstacles: Names
    covered: bool | None
    """Whether the exporter knows the model; null for a model that is not exported."""


@dataclass(frozen=True, kw_only=True)
class Methodology:
    """What was learned about the process."""

    statement: Text
    triggers: tuple[Trigger, ...]
    findings: Names


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """Everything a reviewer is asked to believe."""

    schema: Literal["winml/contribution/1"] = "winml/contribution/1"
    winml: Text
    created: Moment
    model: ContributedModel
    tiers: Tiers
    reached: Goal | None
    targets: Annotated[tuple[TargetWord, ...], NotEmpty(), Unique()]
    precision: Text
    cosine: Annotated[float, AtLeast(0), AtMost(1)]
    """Least cosine with the reference that the precision requires."""
    probe: ProbeClaim
    effect: Effect | None
    ladder: tuple[Rung, ...]
    levels: Mapping[str, Annotated[tuple[ArtifactLevel, ...], Unique()]]
    numbers: Mapping[str, Mapping[str, Annotated[float, AtLeast(-1e18), AtMost(1e18)]]]
    """By command."""
    steps: Annotated[tuple[StepName, ...], Unique()]
    """The commands that were run, in their order."""
    recipe: Text | None
    """Name of the recipe in recipe.json."""
    index_row: Text
    """The row for the list of models."""
    findings: Names
    methodology: Methodology
    metric: MetricData | None
    environment: Mapping[str, str]
    files: Mapping[str, Digest]
    """Digest of every other file, by path."""

    def __post_init__(self) -> None:
        require_moment(self.created, "created")


def describe_model(probed: ProbedModel) -> ContributedModel:
    """The model that a probe was about."""
    return ContributedModel(
        reference=probed.reference,
        exported=probed.exported,
        digest=probed.digest,
        family=probed.family,
        task=probed.task,
        parts=probed.parts,
    )


def claim_probe(result: ProbeResult) -> ProbeClaim:
    """The claims of a contribution about its probe."""
    return ProbeClaim(
        answer=result.answer,
        sentence=result.sentence,
        obstacles=result.obstacles_that_apply,
        covered=result.covered,
    )


def index_row(label: str, recipe: str | None, targets: tuple[str, ...], precision: str, reached: str | None) -> str:
    """The row for the list of models."""
    cells = (label, recipe or "none", ", ".join(targets), precision, reached or "none")
    return f"| {' | '.join(map(markdown, cells))} |"
