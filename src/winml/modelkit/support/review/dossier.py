"""A contribution's folder as a reviewer reads it, and the objections to it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.models import ModelFinding
from winml.modelkit.support.review import derive, ladder
from winml.modelkit.support.review.contribution import FILE, Contribution
from winml.modelkit.support.review.embedded import repositories_inside
from winml.modelkit.support.review.evidence import Record, record_path, result_path
from winml.modelkit.support.review.judging import judge_steps
from winml.modelkit.support.review.plan import RECIPE_FILE, Step, Subject, make_plan
from winml.modelkit.support.review.results import Result, read_result

Severity = Literal["reject", "changes"]


@dataclass(frozen=True)
class Item:
    """An objection to a contribution."""

    check: str
    severity: Severity
    reason: str


def reject(check: str, reason: str) -> Item:
    return Item(check, "reject", reason)


def changes(check: str, reason: str) -> Item:
    return Item(check, "changes", reason)


LARGEST_BYTES = 64 * 2**20


class NotAContribution(ValueError):
    """The folder holds nothing to review."""


def _refuse_repositories(folder: Path) -> None:
    """Raise before anything else is read: git run in such a folder executes its configuration."""
    try:
        found = next(repositories_inside(folder), None)
    except OSError as error:
        raise NotAContribution(f"`{error.filename}` cannot be listed: {error.strerror}") from error
    if found is not None:
        where = folder if found == "." else folder / found
        raise NotAContribution(f"`{where}` is a git repository, or points to one; a contribution must not contain any")


class Dossier:
    """A contribution's folder, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / FILE
        if not folder.is_dir():
            raise NotAContribution(f"`{folder}` is not a folder")
        _refuse_repositories(folder)
        if not file.is_file():
            raise NotAContribution(f"there is no `{FILE}` in `{folder}`")
        if file.is_symlink():
            raise NotAContribution(f"`{FILE}` points outside the folder")
        if file.stat().st_size > LARGEST_BYTES:
            raise NotAContribution(f"`{FILE}` is larger than any that `winml support produce` writes")
        try:
            self.contribution: Contribution = files.load(folder / FILE, Contribution)
        except ModelkitError as error:
            raise NotAContribution(error.message) from error

    @cached_property
    def recipe(self) -> Recipe | None:
        path = self.folder / RECIPE_FILE
        return files.load(path, Recipe) if path.is_file() else None

    @cached_property
    def subject(self) -> Subject:
        stated = self.contribution
        return Subject(
            exported=stated.model.exported,
            parts=stated.model.parts,
            recipe=self.recipe,
            targets=stated.targets,
            goal=stated.tiers.goal,
            metric=stated.metric,
        )

    @cached_property
    def plan(self) -> tuple[Step, ...]:
        return make_plan(self.subject)

    @cached_property
    def records(self) -> dict[str, Record]:
        """The records of the commands that were run; an unreadable one raises."""
        return {name: files.load(self.folder / record_path(name), Record) for name in self.contribution.steps}

    @cached_property
    def results(self) -> dict[str, Result | None]:
        """The results of the commands of the plan; a malformed one raises."""
        return {step.id: self._read_result(step) for step in self.plan if step.id in self.records}

    def _read_result(self, step: Step) -> Result | None:
        if self.records[step.id].result is None:
            return None
        return files.read(self.folder / result_path(step.id), lambda value: read_result(step.purpose, value))

    @cached_property
    def numbers(self) -> dict[str, derive.Numbers]:
        found = {name: derive.numbers(result) for name, result in self.results.items()}
        return {name: values for name, values in found.items() if values}

    @property
    def exits(self) -> dict[str, int | None]:
        return {name: record.exit_code for name, record in self.records.items()}

    @cached_property
    def verdicts(self) -> list[ladder.StepVerdict]:
        steps = [step for step in self.plan if step.id in self.records]
        return judge_steps(steps, self.results, self.exits, self.contribution.precision)

    @cached_property
    def findings(self) -> list[ModelFinding]:
        return [files.load(path, ModelFinding) for path in files.json_files(self.folder / "findings")]

    @property
    def code(self) -> tuple[str, ...]:
        """Files of the repository that it changes."""
        return tuple(self.code_digests)

    @property
    def code_digests(self) -> dict[str, str]:
        return {p.removeprefix("code/"): d for p, d in self.contribution.files.items() if p.startswith("code/")}
