"""A contribution's folder as a reviewer reads it, and what speaks against it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from winml.modelkit.core.errors import DataError, ModelkitError
from winml.modelkit.core.recipe import Recipe, recipe_from_json
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.models import ModelFinding, finding_from_json
from winml.modelkit.support.review import derive, ladder
from winml.modelkit.support.review.contribution import FILE, Contribution, contribution_from_json
from winml.modelkit.support.review.embedded import repositories_inside
from winml.modelkit.support.review.evidence import Record, record_from_json, record_path, result_path
from winml.modelkit.support.review.judging import judged
from winml.modelkit.support.review.plan import RECIPE_FILE, Metric, Step, Subject, plan

Severity = Literal["reject", "changes"]


@dataclass(frozen=True)
class Item:
    """Something that speaks against a contribution."""

    check: str
    severity: Severity
    reason: str

    def to_json(self) -> dict[str, str]:
        return {"check": self.check, "severity": self.severity, "reason": self.reason}


def reject(check: str, reason: str) -> Item:
    return Item(check, "reject", reason)


def changes(check: str, reason: str) -> Item:
    return Item(check, "changes", reason)


LARGEST_BYTES = 64 * 2**20


class NotAContribution(ValueError):
    """There is nothing that could be reviewed."""


def _refuse_repositories(folder: Path) -> None:
    """Before anything else is read: whoever asks git about such a folder takes orders from it."""
    try:
        found = next(repositories_inside(folder), None)
    except OSError as error:
        raise NotAContribution(f"`{error.filename}` cannot be listed: {error.strerror}") from error
    if found is not None:
        where = folder if found == "." else folder / found
        raise NotAContribution(f"`{where}` is a git repository, or leads to one; a contribution holds none")


class Dossier:
    """A contribution's folder, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / FILE
        if not folder.is_dir():
            raise NotAContribution(f"there is no `{FILE}` in `{folder}`, which is no folder")
        _refuse_repositories(folder)
        if not file.is_file():
            raise NotAContribution(f"there is no `{FILE}` in `{folder}`")
        if file.is_symlink():
            raise NotAContribution(f"`{FILE}` leads out of the folder")
        if file.stat().st_size > LARGEST_BYTES:
            raise NotAContribution(f"`{FILE}` is larger than any that `winml support produce` writes")
        try:
            self.contribution: Contribution = files.read(folder / FILE, contribution_from_json)
        except ModelkitError as error:
            raise NotAContribution(error.message) from error

    @cached_property
    def recipe(self) -> Recipe | None:
        path = self.folder / RECIPE_FILE
        return files.read(path, recipe_from_json) if path.is_file() else None

    @cached_property
    def subject(self) -> Subject:
        stated = self.contribution
        metric = stated.metric
        return Subject(
            exported=stated.model.exported,
            parts=stated.model.parts,
            recipe=self.recipe,
            targets=stated.targets,
            goal=stated.tiers.goal,  # type: ignore[arg-type]  # a choice of the goals
            metric=None if metric is None else Metric(metric.file, metric.task, metric.min_metric),
        )

    @cached_property
    def plan(self) -> tuple[Step, ...]:
        return plan(self.subject)

    @cached_property
    def records(self) -> dict[str, Record]:
        """The records of the commands that were run; one that is unreadable raises."""
        return {name: files.read(self.folder / record_path(name), record_from_json) for name in self.contribution.steps}

    @cached_property
    def results(self) -> dict[str, dict[str, Any] | None]:
        return {name: self._result(name, record) for name, record in self.records.items()}

    def _result(self, name: str, record: Record) -> dict[str, Any] | None:
        if record.result is None:
            return None
        found = files.read(self.folder / result_path(name), lambda value: value)
        if not isinstance(found, dict):
            raise DataError(f"`{result_path(name)}` is not a JSON object")
        return found

    @cached_property
    def numbers(self) -> dict[str, derive.Numbers]:
        by_id = {step.id: step for step in self.plan}
        found = {name: derive.numbers(by_id[name].purpose, result) for name, result in self.results.items()}
        return {name: values for name, values in found.items() if values}

    @property
    def exits(self) -> dict[str, int | None]:
        return {name: record.exit_code for name, record in self.records.items()}

    @cached_property
    def judged(self) -> list[ladder.Judged]:
        steps = [step for step in self.plan if step.id in self.records]
        return judged(self.subject, steps, self.results, self.exits, self.contribution.precision)

    @cached_property
    def findings(self) -> list[ModelFinding]:
        return [files.read(path, finding_from_json) for path in files.json_files(self.folder / "findings")]

    @property
    def code(self) -> tuple[str, ...]:
        """Files of the repository that it changes."""
        return tuple(self.code_digests)

    @property
    def code_digests(self) -> dict[str, str]:
        return {p.removeprefix("code/"): d for p, d in self.contribution.files.items() if p.startswith("code/")}
