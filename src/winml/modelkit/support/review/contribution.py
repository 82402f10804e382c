"""A contribution: a model, what was committed to, what was reached, and the digest of every file behind it.

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

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from winml.modelkit.core import sections
from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.plain_text import markdown
from winml.modelkit.core.sections import (
    choice,
    each,
    flag,
    key,
    mapping,
    names,
    number,
    optional,
    section,
    text,
    words,
)
from winml.modelkit.core.support import ARTIFACT_LEVELS, EFFORTS, GOALS, OUTCOMES
from winml.modelkit.support.review.effect import Effect
from winml.modelkit.support.review.evidence import moment
from winml.modelkit.support.review.ladder import Rung

SCHEMA = "winml/contribution/1"
FILE = "contribution.json"
REPORT = "contribution.md"
ANSWERS = ("nothing", "recipe", "code", "blocked")
TRIGGERS = (
    "cli-surprise",
    "doc-drift",
    "silent-failure",
    "new-verdict",
    "reviewer-gap",
    "effort-misjudged",
    "mined-change",
    "catalog-only",
)
"""What in the work asks for a methodology finding."""


def _schema(value: Any, where: str) -> str:
    if value != SCHEMA:
        raise RequestError(f"`{where}` must be `{SCHEMA}` but got {value!r}")
    return SCHEMA


def _numbers(value: Any, where: str) -> dict[str, dict[str, float]]:
    return {
        step: {name: number(-1e18, 1e18)(v, f"{where}.{step}.{name}") for name, v in mapping(of, where).items()}
        for step, of in mapping(value, where).items()
    }


def _levels(value: Any, where: str) -> dict[str, tuple[str, ...]]:
    found = {part: names(of, f"{where}.{part}") for part, of in mapping(value, where).items()}
    for part, of in found.items():
        for level in of:
            choice(*ARTIFACT_LEVELS)(level, f"{where}.{part}")
    return found


def _written_as(pattern: str, what: str) -> Callable[[Any, str], tuple[str, ...]]:
    """Names of one form: they become names of files, or words of a command."""

    def check(value: Any, where: str) -> tuple[str, ...]:
        found = names(value, where)
        for name in found:
            if not re.fullmatch(pattern, name, re.ASCII):
                raise RequestError(f"`{where}` must be {what} but got {name!r}")
        return found

    return check


_parts = _written_as(r"[a-z0-9]+([_-][a-z0-9]+)*", "plain names")
_steps = _written_as(r"[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*", "names of commands")
_target_words = _written_as(r"\w+(/\w+)?", "targets, as `qnn/npu`,")


def _targets(value: Any, where: str) -> tuple[str, ...]:
    found = _target_words(value, where)
    if not found:
        raise RequestError(f"`{where}` must name at least one target")
    return found


def _data_file(value: Any, where: str) -> str:
    word = text(value, where)
    if not re.fullmatch(r"data/[^/\\]+", word) or word.endswith(("/.", "/..")):
        raise RequestError(f"`{where}` must be a file in `data` but got {value!r}")
    return word


@dataclass(frozen=True)
class Model:
    """What is supported."""

    reference: str = key(text)
    """As it was named; a reviewer may name another place with the same content."""
    exported: bool = key(flag)
    digest: str = key(text)
    family: str | None = key(optional(text), None)
    task: str | None = key(optional(text), None)
    parts: tuple[str, ...] = key(_parts, ())


@dataclass(frozen=True)
class Tiers:
    """Effort, goal and outcome."""

    effort: str = key(choice(*EFFORTS))
    goal: str = key(choice(*GOALS))
    outcome: str = key(choice(*OUTCOMES))


@dataclass(frozen=True)
class Probed:
    """What happens without any help."""

    answer: str = key(choice(*ANSWERS))
    sentence: str = key(text)
    obstacles: tuple[str, ...] = key(names, ())
    covered: bool | None = key(optional(flag), None)
    """Whether the exporter knows the model; null for a model that is not exported."""


@dataclass(frozen=True)
class MetricClaim:
    """The data of the task metric."""

    file: str = key(_data_file)
    task: str | None = key(optional(text), None)
    min_metric: float | None = key(optional(number(-1, 1)), None)


@dataclass(frozen=True)
class Methodology:
    """What the work taught about the work."""

    statement: str = key(text)
    triggers: tuple[str, ...] = key(each(choice(*TRIGGERS)), ())
    findings: tuple[str, ...] = key(names, ())


@dataclass(frozen=True)
class Contribution:
    """Everything a reviewer is asked to believe."""

    schema: str = key(_schema)
    winml: str = key(text)
    created: str = key(moment)
    model: Model = key(section(Model))
    tiers: Tiers = key(section(Tiers))
    reached: str | None = key(optional(choice(*GOALS)))
    targets: tuple[str, ...] = key(_targets)
    precision: str = key(text)
    cosine: float = key(number(0, 1))
    """Least cosine with the reference that the precision asks for."""
    probe: Probed = key(section(Probed))
    effect: Effect | None = key(optional(section(Effect)))
    ladder: tuple[Rung, ...] = key(each(section(Rung)))
    levels: dict[str, tuple[str, ...]] = key(_levels)
    numbers: dict[str, dict[str, float]] = key(_numbers)
    """By command."""
    steps: tuple[str, ...] = key(_steps)
    """The commands that were run, in their order."""
    recipe: str | None = key(optional(text))
    """Name of the recipe in recipe.json."""
    index_row: str = key(text)
    """The line for the list of models."""
    findings: tuple[str, ...] = key(names)
    methodology: Methodology = key(section(Methodology))
    metric: MetricClaim | None = key(optional(section(MetricClaim)))
    environment: dict[str, str] = key(words)
    files: dict[str, str] = key(words)
    """Digest of every other file, by path."""

    def to_json(self) -> dict[str, Any]:
        value: dict[str, Any] = sections.plain(self)
        return value


def contribution_from_json(value: Any) -> Contribution:
    """The contribution in a JSON value; an error names the first key that does not fit."""
    return sections.read(Contribution, value, "")


def index_row(label: str, recipe: str | None, targets: tuple[str, ...], precision: str, reached: str | None) -> str:
    """The line for the list of models."""
    cells = (label, recipe or "none", ", ".join(targets), precision, reached or "none")
    return f"| {' | '.join(map(markdown, cells))} |"
