"""`winml support review`: whether a contribution holds, by reading it against itself and running it again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from winml.modelkit.core.build_folder import ANALYSIS, CONFIG, EXPORT
from winml.modelkit.core.errors import CheckFailed, ModelkitError, RequestError
from winml.modelkit.findings.kb_command import knowledge_folder
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.models import ModelKnowledge
from winml.modelkit.render.contribution import contribution_markdown
from winml.modelkit.store import digest
from winml.modelkit.support.commands import Commands, environment
from winml.modelkit.support.model import SupportModel, read_model
from winml.modelkit.support.place import FOLDER, Place, find_place
from winml.modelkit.support.review import checklist, repository, scope
from winml.modelkit.support.review.contribution import REPORT
from winml.modelkit.support.review.dossier import Dossier, Item, NotAContribution, changes, reject
from winml.modelkit.support.review.evidence import UNFIT, CommandRun
from winml.modelkit.support.review.plan import RECIPE_FILE, SPECS_FILE, Step, output_file, written
from winml.modelkit.support.review.rerun import contradictions
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.sandbox import ENDED

SCHEMA = "winml/support/1"
CLOCKS_APART = timedelta(days=1)
"""How far clocks of two machines may differ."""
READ_BY_PEOPLE: dict[str, tuple[str, ...]] = {
    ANALYSIS: ("model",),
    CONFIG: ("model",),
    EXPORT: ("seconds", "parity", "files"),
}
"""Files of a build that a reviewer reads, with the keys that differ from run to run."""
Json = dict[str, Any]
OnEvent = Callable[[Json], None]


@dataclass(frozen=True)
class ReviewRequest:
    """Everything the user decided."""

    folder: str
    model: str | None = None
    """Where the model lies; None takes what the contribution names."""
    knowledge: str | None = None
    timeout_s: float | None = None
    repo: str | None = None
    """The repository that it changes; None takes the one that it lies in, if there is one."""
    base: str | None = None
    """What the change branched off; None takes main."""
    unsandboxed: bool = False
    """Whether commands are run again without a sandbox."""


def review(request: ReviewRequest, on_event: OnEvent) -> dict[str, Any]:
    """Approve a contribution, or say what speaks against it."""
    folder = Path(request.folder)
    try:
        dossier = Dossier(folder)
    except NotAContribution as error:
        raise RequestError(f"not a contribution: {error}", details=_rejected(request.folder, str(error))) from error
    items = read_against_itself(dossier, request)
    changed, outside = _scope(dossier, request, items)
    items += outside
    again: list[Json] = []
    found: Json = {"scope": changed, "sandbox": None}
    model = None if any(item.severity == "reject" for item in items) else _model(dossier, request)
    if isinstance(model, Item):
        items.append(model)
    elif model is not None:
        known = {**_result(request.folder, dossier, items, again), **found}
        place = find_place(request.timeout_s, unsandboxed=request.unsandboxed, known=known)
        found["sandbox"] = place.to_json()
        again, against = _rerun(dossier, model, place, on_event)
        items += against
    result = {**_result(request.folder, dossier, items, again), **found}
    if items:
        first = next((i for i in items if i.severity == "reject"), items[0])
        raise CheckFailed(f"{result['verdict']}: {first.check}: {first.reason}", details=result)
    return result


def read_against_itself(dossier: Dossier, request: ReviewRequest) -> list[Item]:
    """Everything that can be said without running anything."""
    items = [*checklist.checked(dossier), *_report(dossier), *_here(dossier), *_known(dossier, request)]
    if not any(item.severity == "reject" for item in items):  # it starts a process
        for step in (s for s in dossier.plan if s.id in dossier.records):
            items += [reject("outputs", f"{step.id}: {what}") for what in _outputs(dossier, step)]
    return items


def _scope(dossier: Dossier, request: ReviewRequest, items: list[Item]) -> tuple[dict[str, Any], list[Item]]:
    """What the repository says it changes, and what of it the effort does not allow."""
    if any(item.check == "files" for item in items):
        return repository.not_asked("the files are not those of the contribution, and come first"), []
    folder = dossier.folder.resolve()
    try:
        change = repository.change(folder, request.repo, request.base)
    except repository.NotAsked as error:
        return repository.not_asked(str(error)), []
    root = change.repository.resolve()
    own = folder.relative_to(root).as_posix() if folder != root and folder.is_relative_to(root) else None
    effort = dossier.contribution.tiers.effort
    wrong = scope.wrong_change(change.files, effort, own=own, code=dossier.code_digests)  # type: ignore[arg-type]
    items = [reject("scope", reason) for reason in wrong]
    missing = sorted(set(dossier.code) - set(change.files))
    items += [changes("scope", f"the contribution brings `{path}`, and the repository does not") for path in missing]
    return change.to_json(), items


def _outputs(dossier: Dossier, step: Step, again: Path | None = None) -> list[str]:
    """What the outputs that were kept say against the claimed distances; `again` is the folder of another run."""
    result = dossier.results[step.id]
    if step.purpose != "parity" or not result or not result.get("ok"):
        return []
    args = {
        "file": str((dossier.folder / output_file(step.part)).absolute()),
        "again": again and str(again / output_file(step.part)),
        "arrays": result["outputs"]["arrays"],
        "distance": result["distance"],
    }
    try:
        with Worker() as worker:
            found = worker.call("review.outputs", args, what="reading the outputs that were kept")
    except ModelkitError as error:
        return [error.message]
    return list(found["problems"])


def _result(folder: str, dossier: Dossier, items: list[Item], again: list[dict[str, Any]]) -> dict[str, Any]:
    verdict = "APPROVE"
    if items:
        verdict = "REJECT" if any(item.severity == "reject" for item in items) else "REQUEST_CHANGES"
    return {
        "schema": SCHEMA,
        "ok": True,
        "action": "review",
        "folder": folder,
        "verdict": verdict,
        "items": [item.to_json() for item in items],
        "rerun": again,
        "contribution": {
            "model": dossier.contribution.model.reference,
            "digest": dossier.contribution.model.digest,
            "tiers": vars(dossier.contribution.tiers),
            "reached": dossier.contribution.reached,
        },
    }


def _rejected(folder: str, reason: str) -> dict[str, Any]:
    """What is said of a folder that holds no contribution."""
    item = reject("contribution", reason)
    return {"action": "review", "folder": folder, "verdict": "REJECT", "items": [item.to_json()], "rerun": []}


def _report(dossier: Dossier) -> Iterator[Item]:
    path = dossier.folder / REPORT
    if not path.is_file():
        yield reject("report", f"`{REPORT}` is missing")
    elif path.read_bytes() != contribution_markdown(dossier.contribution.to_json()).encode():
        yield changes("report", f"`{REPORT}` does not say what the contribution says")


def _here(dossier: Dossier) -> Iterator[Item]:
    """Numbers of other versions of the tools say nothing about these."""
    here, stated = environment(), dossier.contribution.environment
    if datetime.fromisoformat(dossier.contribution.created) > datetime.now(UTC) + CLOCKS_APART:
        yield reject("environment", f"it was made at {dossier.contribution.created}, which is not yet")
    skipped = ("system", "architecture", "cores", "python")
    differs = [k for k in sorted({*here, *stated}) if k not in skipped and here.get(k) != stated.get(k)]
    if differs:
        words = ", ".join(f"{k} {stated.get(k)} (here {here.get(k)})" for k in differs)
        yield changes("environment", f"made with {words}; make it again with what is here")


def _known(dossier: Dossier, request: ReviewRequest) -> Iterator[Item]:
    """Findings are added, so that none may be known already."""
    known = {finding.id for finding in ModelKnowledge(knowledge_folder(request.knowledge)).findings}
    for name in dossier.contribution.findings:
        if name in known:
            yield changes("findings", f"`{name}` is known; findings are added, never changed")


def _model(dossier: Dossier, request: ReviewRequest) -> SupportModel | Item:
    """The model that commands are run again on, or what speaks against the one that was found."""
    word = request.model or dossier.contribution.model.reference
    try:
        model = read_model(word)
    except ModelkitError as error:
        return reject("rerun", f"the model cannot be read, so nothing can be run again: {error.message}")
    if model.digest != dossier.contribution.model.digest:
        return reject("rerun", f"`{word}` is another model than the one of the contribution")
    return model


def _rerun(dossier: Dossier, model: SupportModel, place: Place, on_event: OnEvent) -> tuple[list[Json], list[Item]]:
    """Every command once more, in an empty folder with an empty cache: what it came to, and what speaks against it."""
    again: list[Json] = []
    items: list[Item] = []
    with tempfile.TemporaryDirectory(prefix="winml-review-", ignore_cleanup_errors=True) as name:
        run = place.commands(model, Path(name), targets=dossier.contribution.targets)
        folder = Path(name) / FOLDER
        _given(dossier, folder)
        for step in (s for s in dossier.plan if s.id in dossier.records):
            on_event({"event": "command", "what": f"{step.id} again"})
            items += _again(dossier, step, run, folder, again)
    return again, items


def _given(dossier: Dossier, folder: Path) -> None:
    """What commands are given that none of them made."""
    for path in (RECIPE_FILE, SPECS_FILE, "data"):
        source = dossier.folder / path
        if source.is_dir():
            shutil.copytree(source, folder / path)
        elif source.is_file():
            shutil.copyfile(source, folder / path)


def _again(dossier: Dossier, step: Step, run: Commands, folder: Path, again: list[dict[str, Any]]) -> Iterator[Item]:
    record = dossier.records[step.id]
    done = run(step.words)
    ended = [line for line in done.stderr.splitlines()[-1:] if line.startswith(ENDED)]
    found = [*ended, f"it ends with exit {done.exit_code}, not {record.exit_code}"]
    if done.exit_code == record.exit_code:
        found = _differences(dossier, step, done, folder)
    again.append({"step": step.id, "exit_code": done.exit_code, "seconds": done.seconds, "contradictions": found})
    yield from (reject("rerun", f"{step.id}: {reason}") for reason in found)


def _differences(dossier: Dossier, step: Step, done: CommandRun, folder: Path) -> list[str]:
    """What is so now and was not so then; evidence without what it needs differs too."""
    try:
        same = _same_machine(dossier, done)
        return [
            *contradictions(step, dossier.results[step.id], done.result, same_machine=same),
            *_other_inputs(dossier, step, folder),
            *_other_files(dossier, step, folder),
            *_outputs(dossier, step, folder),
        ]
    except ModelkitError as error:
        return [error.message]
    except UNFIT as error:
        return [f"the evidence does not fit: {type(error).__name__}: {error}"]


def _same_machine(dossier: Dossier, done: CommandRun) -> bool:
    """Whether times may be compared: the same machine, as results describe it."""
    told = ((done.result or {}).get("environment") or {}).get("machine")
    claimed = [(r or {}).get("environment") for r in dossier.results.values()]
    return told is not None and all(c["machine"] == told for c in claimed if c)


def _other_inputs(dossier: Dossier, step: Step, folder: Path) -> Iterator[str]:
    if step.purpose != "inputs":
        return
    path = step.words[step.words.index("-o") + 1]
    if not (folder / path).is_file() or digest.of_file(folder / path) != dossier.contribution.files.get(path):
        yield f"`{path}` is not what the command makes"


def _other_files(dossier: Dossier, step: Step, folder: Path) -> Iterator[str]:
    """Files that a command leaves now and did not leave then, and what people read in them."""
    claimed = set(dossier.records[step.id].writes)
    now = set(written(folder, step))
    if claimed != now:
        yield f"it writes other files: {', '.join(sorted(claimed ^ now))}"
    for path in sorted(claimed & now):
        left_out = READ_BY_PEOPLE.get(path.rpartition("/")[2])
        if left_out is not None:
            then, again = (_without(place / path, left_out) for place in (dossier.folder, folder))
            if then != again:
                yield f"`{path}` says something else"


def _without(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    value: dict[str, Any] = files.read(path, lambda found: found)
    return {name: found for name, found in value.items() if name not in keys}
