"""Whether the evidence of a contribution is complete: every file, every command, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PureWindowsPath
from typing import TypeVar

from winml.modelkit.building.inspect import Inspection
from winml.modelkit.building.result import BuildPartsResult, BuildResult
from winml.modelkit.core.build_folder import CONFIG, MANIFEST, MODEL
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.values import read
from winml.modelkit.knowledge import files
from winml.modelkit.store import digest
from winml.modelkit.support.review import effect
from winml.modelkit.support.review.contribution import FILE, REPORT
from winml.modelkit.support.review.dossier import Dossier, Item, reject
from winml.modelkit.support.review.evidence import (
    Record,
    below,
    log_head,
    log_path,
    log_tail,
    record_path,
    result_path,
    verdict_of,
)
from winml.modelkit.support.review.plan import BUILT, DEFAULT, RECIPE_FILE, SPECS_FILE, Step, output_places
from winml.modelkit.support.review.results import (
    CompareEvidence,
    Content,
    Failure,
    MetricEvidence,
    ParityEvidence,
    PerfEvidence,
    error_of,
    find,
    rounds_of,
)

T = TypeVar("T")
LARGEST_BYTES = 256 * 2**20
"""No command of a contribution writes more JSON than this."""


@dataclass(frozen=True, kw_only=True)
class ManifestClaim:
    """The claims of a build manifest that can be compared with the files, as it is written.

    A `BuildManifest` computes its digests again when it is read.
    """

    artifact: Content
    source: Content
    objects: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ConfigClaim:
    """The claims of a build config that can be compared with the contribution."""

    precision: str


def every_file(dossier: Dossier) -> Iterator[Item]:
    """Every file has its stated digest, and there are no other files."""
    stated = dossier.contribution.files
    there = set(below(dossier.folder)) - {FILE, REPORT}
    if (dossier.folder / REPORT).is_symlink():
        yield reject("files", f"`{REPORT}` points outside the contribution")
    for path in sorted(there - set(stated)):
        yield reject("files", f"`{path}` is not in the list of files")
    for path, expected in stated.items():
        file = dossier.folder / path
        if path not in there:
            yield reject("files", f"`{path}` is missing")
        elif file.is_symlink() or not file.resolve().is_relative_to(dossier.folder.resolve()):
            yield reject("files", f"`{path}` points outside the contribution")
        elif path.endswith(".json") and file.stat().st_size > LARGEST_BYTES:
            yield reject("files", f"`{path}` is larger than anything a command writes")
        elif digest.of_file(file) != expected:
            yield reject("files", f"`{path}` does not have the digest in the list")


def every_command(dossier: Dossier) -> Iterator[Item]:
    """The commands are those of the plan, and each has a record, a result and a log that agree."""
    stated = dossier.contribution.steps
    planned = {step.id: step for step in dossier.plan}
    for name in stated:
        if name not in planned:
            yield reject("evidence", f"`{name}` is not a command of the plan")
    order = [name for name in planned if name in stated]
    if list(stated) != order:
        yield reject("evidence", "the commands are not in the order of the plan")
    for name in order:
        yield from _record(dossier, planned[name], dossier.records[name])
        yield from _check_files_used(dossier, planned[name], dossier.records[name])
    begun = [dossier.records[name].started for name in order]
    if begun != sorted(begun):
        yield reject("evidence", "the commands were not run in the order of the plan")
    yield from _stray(dossier)
    yield from _find_copies(dossier)


def _record(dossier: Dossier, step: Step, record: Record) -> Iterator[Item]:
    contribution, files_ = dossier.contribution, dossier.contribution.files
    wrong = {
        "it is the record of another command": record.id != step.id or record.purpose != step.purpose,
        "its arguments are not those of the plan": record.words != step.words,
        "it is about another model": record.model != contribution.model.digest,
        "its environment is not that of the contribution": record.environment != contribution.environment,
        "it was made after the contribution": record.started > contribution.created,
        "its result is another file": record.result != files_.get(result_path(step.id)),
        "its log is another file": record.log != files_.get(log_path(step.id)),
        "its exit code and its timeout contradict each other": record.timed_out != (record.exit_code is None),
        "its arguments contain a null character": any("\0" in word for word in step.words),
    }
    yield from (reject("evidence", f"{step.id}: {what}") for what, so in wrong.items() if so)
    result = dossier.results[step.id]
    error, went_well = error_of(result), result is not None and not isinstance(result, Failure)
    if sum(ns for taken in rounds_of(result) for ns in taken.wall_ns) > 1e9 * record.seconds:
        yield reject("evidence", f"{step.id}: its samples took longer than the command")
    if record.exit_code == 0 and not went_well:
        yield reject("evidence", f"{step.id}: exit 0, but its result is not ok")
    if record.exit_code not in (0, None) and went_well:
        yield reject("evidence", f"{step.id}: exit {record.exit_code}, but its result is ok")
    if error.exit is not None and error.exit != record.exit_code:
        yield reject("evidence", f"{step.id}: exit {record.exit_code}, but its result says exit {error.exit}")
    expected = verdict_of(record.exit_code, error.code)
    if record.verdict != expected:
        yield reject("evidence", f"{step.id}: verdict {record.verdict}, but its exit code means {expected}")
    yield from _log(dossier, step, record)
    for path, value in {**record.reads, **record.writes}.items():
        if files_.get(path) != value:
            yield reject("evidence", f"{step.id}: it used `{path}` with different content")


def _log(dossier: Dossier, step: Step, record: Record) -> Iterator[Item]:
    if log_path(step.id) not in dossier.contribution.files:
        return  # already an item
    log = (dossier.folder / log_path(step.id)).read_text(encoding="utf-8", errors="replace")
    if not log.startswith(log_head(step.words, dossier.contribution.model.digest)):
        yield reject("evidence", f"{step.id}: its log is empty, or of another command or model")
    if not log.endswith(log_tail(record.exit_code)):
        yield reject("evidence", f"{step.id}: its log ends differently than its record says")


def _check_files_used(dossier: Dossier, step: Step, record: Record) -> Iterator[Item]:
    """A command read every file here that its arguments name, and wrote everything at its output paths."""
    stated = dossier.contribution.files
    outputs = output_places(step)
    wrote = {path for path in stated for place in outputs if path == place or path.startswith(f"{place}/")}
    named = [word for word in step.words if word not in outputs]
    folders = [f"{word}/{MODEL}" for word in named if step.purpose != "build"]
    if set(record.reads) != {path for path in (*named, *folders) if path in stated}:
        yield reject("evidence", f"{step.id}: it read other files than its arguments name")
    if set(record.writes) != wrote:
        yield reject("evidence", f"{step.id}: it wrote other files than those here")


def _stray(dossier: Dossier) -> Iterator[Item]:
    """Files that belong to no command, and to no other part of a contribution."""
    metric, stated = dossier.contribution.metric, dossier.contribution.files
    known = {path(name) for name in dossier.contribution.steps for path in (record_path, result_path, log_path)}
    known |= {path for record in dossier.records.values() for path in record.writes}
    known |= {RECIPE_FILE, SPECS_FILE, *(() if metric is None else (metric.file,))}
    for path in stated:
        finding = path.startswith("findings/") and path.endswith(".json") and path.count("/") == 1
        if path not in known and not finding and not path.startswith("code/"):
            yield reject("evidence", f"`{path}` belongs to no command")
    if metric is not None and metric.file not in stated:
        yield reject("evidence", f"`{metric.file}` is missing")


def _find_copies(dossier: Dossier) -> Iterator[Item]:
    """No two rounds have the same samples: those were copied."""
    seen: dict[tuple[int, ...], str] = {}
    for name, result in dossier.results.items():
        for taken in rounds_of(result):
            if taken.wall_ns in seen:
                yield reject("evidence", f"`{name}` repeats samples of `{seen[taken.wall_ns]}`")
            seen[taken.wall_ns] = name


def complete(dossier: Dossier) -> Iterator[Item]:
    """Every command up to the first failed rung was run, and none that is not required."""
    failed = next((rung.rung for rung in dossier.contribution.ladder if rung.verdict == "FAIL"), None)
    for step in dossier.plan:
        ran, asked = step.id in dossier.records, _is_required(dossier, step, failed)
        if asked and not ran:
            yield reject("complete", f"`{step.id}` was not run")
        if ran and not asked and step.purpose == "compare":
            yield reject("complete", f"`{step.id}` was run, but is not required")


def _is_required(dossier: Dossier, step: Step, failed: str | None) -> bool:
    if step.purpose == "compare":
        return effect.needs_compare(step, dossier.subject, dossier.exits, dossier.results)
    if step.id.startswith("inspect-default"):
        return dossier.exits.get("build-default") == 0
    if step.rung is None or step.id == "build-recipe":
        return True
    return dossier.exits.get("build-recipe") == 0 and (failed is None or step.rung <= failed)


def artifacts(dossier: Dossier) -> Iterator[Item]:
    """The files in the contribution are those that a build reported."""
    for name, root in (("build-default", DEFAULT), ("build-recipe", BUILT)):
        result = dossier.results.get(name)
        if isinstance(result, BuildResult):
            yield from _artifact(dossier, name, root, result.artifact.digest)
        if isinstance(result, BuildPartsResult):
            for built in result.parts:
                yield from _artifact(dossier, name, f"{root}/{built.part}", built.result.artifact.digest)
    for step in dossier.plan:
        inspected = find(dossier.results, step.id, Inspection)
        if inspected is not None:
            yield from _check_inspection(dossier, step, inspected)


def _artifact(dossier: Dossier, name: str, folder: str, built: str) -> Iterator[Item]:
    stated = dossier.contribution
    if f"{folder}/{MODEL}" not in stated.files:
        yield reject("artifacts", f"`{folder}/{MODEL}` is missing")
        return
    manifest = _load(dossier, f"{folder}/{MANIFEST}", ManifestClaim)
    if manifest.artifact.digest != built:
        yield reject("artifacts", f"{name}: the manifest of `{folder}` describes another artifact")
    for file, expected in manifest.objects.items():
        if stated.files.get(f"{folder}/{file}") != expected:
            yield reject("artifacts", f"{name}: `{folder}/{file}` is not what was built")
    if manifest.source.digest != stated.model.digest:
        yield reject("artifacts", f"{name}: `{folder}` was built from another model")
    precision = _load(dossier, f"{folder}/{CONFIG}", ConfigClaim).precision
    if name == "build-recipe" and precision != stated.precision:
        yield reject("artifacts", f"{name}: built as {precision}, claimed as {stated.precision}")


def _load(dossier: Dossier, path: str, form: type[T]) -> T:
    return files.read(dossier.folder / path, lambda value: read(form, value, strict=False))


def _check_inspection(dossier: Dossier, step: Step, result: Inspection) -> Iterator[Item]:
    """The inspected files are the files here."""
    folder = step.words[step.words.index("-m") + 1]
    for file in result.description.files:
        # A path of the machine that made it, which may have another operating system.
        path = f"{folder}/{PureWindowsPath(file.path).name}"
        if path not in dossier.contribution.files or (dossier.folder / path).stat().st_size != file.bytes:
            yield reject("artifacts", f"{step.id}: the files that were inspected have other sizes than those here")
            return


def environment(dossier: Dossier) -> Iterator[Item]:
    """Results have the environment of the contribution, and were made on one machine."""
    stated = dossier.contribution.environment
    if dossier.contribution.winml != stated.get("winml"):
        yield reject("environment", "the contribution names another version of winml than its environment")
    machines = []
    for name, result in dossier.results.items():
        if not isinstance(result, PerfEvidence | CompareEvidence | ParityEvidence | MetricEvidence):
            continue
        found = result.environment
        machines.append(found.machine)
        versions = {"winml": found.winml, "python": found.python, "numpy": found.numpy}
        if any(stated.get(key) != value for key, value in versions.items()):
            yield reject("environment", f"{name}: measured in another environment than the contribution says")
    if any(machine != machines[0] for machine in machines):
        yield reject("environment", "results were made on different machines")
