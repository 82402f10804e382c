"""`winml support review`: checks a contribution for consistency and runs its commands again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from winml.modelkit.core.build_folder import ANALYSIS, CONFIG, EXPORT
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, ModelkitError, RequestError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.json_text import read_object
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.support import Goal, SupportResult, Verdict
from winml.modelkit.core.values import Names
from winml.modelkit.knowledge.files import knowledge_folder
from winml.modelkit.knowledge.models import ModelKnowledge
from winml.modelkit.render.contribution import contribution_markdown
from winml.modelkit.store import digest
from winml.modelkit.support.commands import Commands, CommandStarted, describe_environment
from winml.modelkit.support.model import SupportModel, read_model
from winml.modelkit.support.place import FOLDER, ReviewPlace, SandboxUse, find_place
from winml.modelkit.support.review import checklist, repository, scope
from winml.modelkit.support.review.contribution import REPORT, Tiers
from winml.modelkit.support.review.dossier import Dossier, Item, NotAContribution, changes, reject
from winml.modelkit.support.review.evidence import CommandRun
from winml.modelkit.support.review.outputs_question import OutputsAnswer, OutputsQuestion
from winml.modelkit.support.review.plan import RECIPE_FILE, SPECS_FILE, Step, list_written, output_file
from winml.modelkit.support.review.rerun import contradictions
from winml.modelkit.support.review.results import (
    CompareEvidence,
    MetricEvidence,
    ParityEvidence,
    PerfEvidence,
    Result,
    find,
    read_result,
)
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.sandbox import ENDED

CLOCKS_APART = timedelta(days=1)
"""How far clocks of two machines may differ."""
READ_BY_PEOPLE: dict[str, tuple[str, ...]] = {
    ANALYSIS: ("model",),
    CONFIG: ("model",),
    EXPORT: ("seconds", "peak_memory_bytes", "parity", "files"),
}
"""Files of a build that a reviewer reads, with the keys that differ from run to run."""


@dataclass(frozen=True)
class ReviewRequest:
    """Everything the user decided."""

    folder: str
    model: str | None = None
    """Where the model is; None takes what the contribution names."""
    knowledge: str | None = None
    timeout_s: float | None = None
    repo: str | None = None
    """The repository that it changes; None takes the one that contains it, if any."""
    base: str | None = None
    """The base of the change; None takes main."""
    unsandboxed: bool = False
    """Whether commands are run again without a sandbox."""


@dataclass(frozen=True, kw_only=True)
class ReviewedContribution:
    """A summary of what was reviewed."""

    model: str
    digest: str
    tiers: Tiers
    reached: Goal | None


@dataclass(frozen=True, kw_only=True)
class ScopeAnswer:
    """What a contribution changes, according to the repository."""

    asked: bool
    """False: git could not be queried, which does not mean that nothing changed."""
    reason: str | None
    repository: str | None
    base: str | None
    head: str | None
    files: Names | None


@dataclass(frozen=True, kw_only=True)
class StepAgain:
    """A command that was run again."""

    step: str
    exit_code: int | None
    seconds: float
    contradictions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ReviewFound(SupportResult):
    """The fields of every review."""

    action: Literal["review"] = "review"
    folder: str
    items: tuple[Item, ...]
    """The objections to the contribution."""
    rerun: tuple[StepAgain, ...]


@dataclass(frozen=True, kw_only=True)
class NoContribution(ReviewFound):
    """The result for a folder without a contribution."""

    verdict: Literal["REJECT"] = "REJECT"


@dataclass(frozen=True, kw_only=True)
class ReviewReading(ReviewFound):
    """The result of reading a contribution, with nothing run again."""

    contribution: ReviewedContribution
    scope: ScopeAnswer
    sandbox: SandboxUse | None
    """Null where nothing was run again."""


@dataclass(frozen=True, kw_only=True)
class ReviewResult(ReviewReading):
    verdict: Verdict


def review(request: ReviewRequest, on_event: OnEvent) -> ReviewResult:
    """Approve a contribution, or report the objections."""
    try:
        dossier = Dossier(Path(request.folder))
    except NotAContribution as error:
        nothing = NoContribution(folder=request.folder, items=(reject("contribution", str(error)),), rerun=())
        raise RequestError(f"not a contribution: {error}", hint=near_path(request.folder), result=nothing) from error
    items = read_against_itself(dossier, request)
    changed, outside = _scope(dossier, request, items)
    items += outside
    stated = dossier.contribution
    reading = ReviewReading(
        folder=request.folder,
        items=tuple(items),
        rerun=(),
        contribution=ReviewedContribution(
            model=stated.model.reference, digest=stated.model.digest, tiers=stated.tiers, reached=stated.reached
        ),
        scope=changed,
        sandbox=None,
    )
    model = None if any(item.severity == "reject" for item in items) else _model(dossier, request)
    if isinstance(model, Item):
        items.append(model)
    elif model is not None:
        place = find_place(request.timeout_s, unsandboxed=request.unsandboxed, known=reading)
        again, against = _rerun(dossier, model, place, on_event)
        items += against
        reading = replace(reading, sandbox=place.sandbox_use, rerun=tuple(again))
    verdict: Verdict = "APPROVE"
    if items:
        verdict = "REJECT" if any(item.severity == "reject" for item in items) else "REQUEST_CHANGES"
    result = ReviewResult(**{**vars(reading), "items": tuple(items), "verdict": verdict})
    if items:
        first = next((i for i in items if i.severity == "reject"), items[0])
        raise CheckFailed(f"{verdict}: {first.check}: {first.reason}", result=result)
    return result


def read_against_itself(dossier: Dossier, request: ReviewRequest) -> list[Item]:
    """Every check that needs no command to run."""
    items = [*checklist.run_checks(dossier), *_report(dossier), *_here(dossier), *_check_findings(dossier, request)]
    if not any(item.severity == "reject" for item in items):  # this starts a process
        for step in (s for s in dossier.plan if s.id in dossier.records):
            items += [reject("outputs", f"{step.id}: {what}") for what in _outputs(dossier, step)]
    return items


def _scope(dossier: Dossier, request: ReviewRequest, items: list[Item]) -> tuple[ScopeAnswer, list[Item]]:
    """What it changes according to the repository, and which of that its effort does not allow."""
    if any(item.check == "files" for item in items):
        return _not_asked("the files do not match the contribution, and are reviewed first"), []
    folder = dossier.folder.resolve()
    try:
        change = repository.find_change(folder, request.repo, request.base)
    except repository.NotAsked as error:
        return _not_asked(str(error)), []
    root = change.repository.resolve()
    own = folder.relative_to(root).as_posix() if folder != root and folder.is_relative_to(root) else None
    effort = dossier.contribution.tiers.effort
    wrong = scope.find_change_problems(change.files, effort, own=own, code=dossier.code_digests)
    found = [reject("scope", reason) for reason in wrong]
    missing = sorted(set(dossier.code) - set(change.files))
    found += [changes("scope", f"the contribution adds `{path}`, but the repository does not") for path in missing]
    answer = ScopeAnswer(
        asked=True,
        reason=None,
        repository=str(change.repository),
        base=change.base,
        head=change.head,
        files=tuple(sorted(change.files)),
    )
    return answer, found


def _not_asked(reason: str) -> ScopeAnswer:
    return ScopeAnswer(asked=False, reason=reason, repository=None, base=None, head=None, files=None)


def _outputs(dossier: Dossier, step: Step, again: Path | None = None) -> tuple[str, ...]:
    """Contradictions between saved outputs and claimed distances; `again` is the folder of another run."""
    result = find(dossier.results, step.id, ParityEvidence)
    if result is None:
        return ()
    file = output_file(step.part)
    asked = OutputsQuestion(
        file=(dossier.folder / file).absolute(),
        again=None if again is None else again / file,
        arrays=result.outputs.arrays,
        distance=result.distance,
    )
    try:
        with Worker() as worker:
            what = "reading the outputs that were kept"
            return worker.ask(OutputsAnswer, "review.outputs", asked, what=what).problems
    except ModelkitError as error:
        return (error.message,)


def _report(dossier: Dossier) -> Iterator[Item]:
    path = dossier.folder / REPORT
    if not path.is_file():
        yield reject("report", f"`{REPORT}` is missing")
    elif path.read_bytes() != contribution_markdown(dossier.contribution).encode():
        yield changes("report", f"`{REPORT}` does not match the contribution")


def _here(dossier: Dossier) -> Iterator[Item]:
    """The contribution was made with the versions of the tools that are installed here."""
    here, stated = describe_environment(), dossier.contribution.environment
    if datetime.fromisoformat(dossier.contribution.created) > datetime.now(UTC) + CLOCKS_APART:
        yield reject("environment", f"it was made at {dossier.contribution.created}, which is in the future")
    skipped = ("system", "architecture", "cores", "python")
    differs = [k for k in sorted({*here, *stated}) if k not in skipped and here.get(k) != stated.get(k)]
    if differs:
        words = ", ".join(f"{k} {stated.get(k)} (here {here.get(k)})" for k in differs)
        yield changes("environment", f"made with {words}; make it again with the versions installed here")


def _check_findings(dossier: Dossier, request: ReviewRequest) -> Iterator[Item]:
    """Findings are only added, so none may be known already."""
    known = {finding.id for finding in ModelKnowledge(knowledge_folder(request.knowledge)).findings}
    for name in dossier.contribution.findings:
        if name in known:
            yield changes("findings", f"`{name}` already exists; findings are added, never changed")


def _model(dossier: Dossier, request: ReviewRequest) -> SupportModel | Item:
    """The model to run commands on again, or the objection to it."""
    word = request.model or dossier.contribution.model.reference
    try:
        model = read_model(word)
    except ModelkitError as error:
        return reject("rerun", f"the model cannot be read, so nothing can be run again: {error.message}")
    if model.digest != dossier.contribution.model.digest:
        return reject("rerun", f"`{word}` is not the model of the contribution")
    return model


def _rerun(
    dossier: Dossier, model: SupportModel, place: ReviewPlace, on_event: OnEvent
) -> tuple[list[StepAgain], list[Item]]:
    """Run every command again, in an empty folder with an empty cache; returns the runs and the objections."""
    again: list[StepAgain] = []
    with tempfile.TemporaryDirectory(prefix="winml-review-", ignore_cleanup_errors=True) as name:
        run = place.commands(model, Path(name), targets=dossier.contribution.targets)
        folder = Path(name) / FOLDER
        for path in (RECIPE_FILE, SPECS_FILE, "data"):  # inputs that no command produces
            source = dossier.folder / path
            if source.is_dir():
                shutil.copytree(source, folder / path)
            elif source.is_file():
                shutil.copyfile(source, folder / path)
        for step in (s for s in dossier.plan if s.id in dossier.records):
            on_event(CommandStarted(f"{step.id} again"))
            again.append(_run_again(dossier, step, run, folder))
    items = [reject("rerun", f"{row.step}: {reason}") for row in again for reason in row.contradictions]
    return again, items


def _run_again(dossier: Dossier, step: Step, run: Commands, folder: Path) -> StepAgain:
    then, done = dossier.records[step.id].exit_code, run(step.words)
    if done.exit_code == then:
        found = _differences(dossier, step, done, folder)
    else:
        ended = [line for line in done.stderr.splitlines()[-1:] if line.startswith(ENDED)]
        found = [*ended, f"it exits with {done.exit_code}, not {then}"]
    return StepAgain(step=step.id, exit_code=done.exit_code, seconds=done.seconds, contradictions=tuple(found))


def _differences(dossier: Dossier, step: Step, done: CommandRun, folder: Path) -> list[str]:
    """How a run differs from the recorded one; malformed evidence counts as a difference too."""
    try:
        now = None if done.result is None else read_result(step.purpose, done.result)
        return [
            *contradictions(dossier.results[step.id], now, same_machine=_same_machine(dossier, now)),
            *_other_inputs(dossier, step, folder),
            *_other_files(dossier, step, folder),
            *_outputs(dossier, step, folder),
        ]
    except ModelkitError as error:
        return [error.message]


def _same_machine(dossier: Dossier, now: Result | None) -> bool:
    """Whether times may be compared: the same machine, as results describe it."""
    machines = [r.environment.machine for r in (now, *dossier.results.values()) if isinstance(r, _MEASURED)]
    return isinstance(now, _MEASURED) and all(machine == machines[0] for machine in machines)


_MEASURED = (PerfEvidence, CompareEvidence, ParityEvidence, MetricEvidence)
"""Results that record their machine."""


def _other_inputs(dossier: Dossier, step: Step, folder: Path) -> Iterator[str]:
    if step.purpose != "inputs":
        return
    path = step.words[step.words.index("-o") + 1]
    if not (folder / path).is_file() or digest.of_file(folder / path) != dossier.contribution.files.get(path):
        yield f"`{path}` is not what the command produces"


def _other_files(dossier: Dossier, step: Step, folder: Path) -> Iterator[str]:
    """Differences in the files that a command writes, and in the parts of them that people read."""
    claimed = set(dossier.records[step.id].writes)
    now = set(list_written(folder, step))
    if claimed != now:
        yield f"it writes different files: {', '.join(sorted(claimed ^ now))}"
    for path in sorted(claimed & now):
        ignored = READ_BY_PEOPLE.get(path.rpartition("/")[2])
        if ignored is not None:
            then, again = (
                {key: value for key, value in read_object(place / path).items() if key not in ignored}
                for place in (dossier.folder, folder)
            )
            if then != again:
                yield f"`{path}` has different content"
