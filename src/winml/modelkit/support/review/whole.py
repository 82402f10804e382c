"""Whether the evidence of a contribution is whole: every file, every command, and nothing besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PureWindowsPath
from typing import Any

from winml.modelkit.core.build_folder import CONFIG, MANIFEST, MODEL
from winml.modelkit.knowledge import files
from winml.modelkit.store import digest
from winml.modelkit.support.review import effect
from winml.modelkit.support.review.contribution import FILE, REPORT
from winml.modelkit.support.review.dossier import Dossier, Item, reject
from winml.modelkit.support.review.evidence import (
    Record,
    below,
    error_of,
    log_head,
    log_path,
    log_tail,
    record_path,
    result_path,
    verdict_of,
)
from winml.modelkit.support.review.plan import RECIPE_FILE, SPECS_FILE, Step, places

LARGEST_BYTES = 256 * 2**20
"""No command of a contribution writes more JSON than this."""
SCHEMAS: dict[str, tuple[str, ...]] = {
    "probe": ("winml/support/1",),
    "config": ("winml/config/1",),
    "build": ("winml/build/1", "winml/build-parts/1"),
    "inspect": ("winml/inspect/1",),
    "inputs": ("winml/support/1",),
    "perf": ("winml/perf/1",),
    "compare": ("winml/compare/1",),
    "export": ("winml/export/1",),
    "parity": ("winml/eval/1",),
    "metric": ("winml/eval/1",),
}
"""What the result of a command says it is, by purpose."""


def every_file(dossier: Dossier) -> Iterator[Item]:
    """Every file has the digest that is stated, and no file is there that is not stated."""
    stated = dossier.contribution.files
    there = set(below(dossier.folder)) - {FILE, REPORT}
    if (dossier.folder / REPORT).is_symlink():
        yield reject("files", f"`{REPORT}` leads out of the contribution")
    for path in sorted(there - set(stated)):
        yield reject("files", f"`{path}` is not in the list of files")
    for path, expected in stated.items():
        file = dossier.folder / path
        if path not in there:
            yield reject("files", f"`{path}` is missing")
        elif file.is_symlink() or not file.resolve().is_relative_to(dossier.folder.resolve()):
            yield reject("files", f"`{path}` leads out of the contribution")
        elif path.endswith(".json") and file.stat().st_size > LARGEST_BYTES:
            yield reject("files", f"`{path}` is larger than anything a command writes")
        elif digest.of_file(file) != expected:
            yield reject("files", f"`{path}` has another digest than the list says")


def every_command(dossier: Dossier) -> Iterator[Item]:
    """The commands are those that the plan asks for, and each left a record, a result and a log that agree."""
    stated = dossier.contribution.steps
    planned = {step.id: step for step in dossier.plan}
    for name in stated:
        if name not in planned:
            yield reject("evidence", f"`{name}` is no command of the plan")
    order = [name for name in planned if name in stated]
    if list(stated) != order:
        yield reject("evidence", "the commands are not in the order of the plan")
    for name in order:
        yield from _record(dossier, planned[name], dossier.records[name])
        yield from _touched(dossier, planned[name], dossier.records[name])
    begun = [dossier.records[name].started for name in order]
    if begun != sorted(begun):
        yield reject("evidence", "the commands were not run in the order of the plan")
    yield from _stray(dossier)
    yield from _copied(dossier)


def _record(dossier: Dossier, step: Step, record: Record) -> Iterator[Item]:
    contribution, files_ = dossier.contribution, dossier.contribution.files
    wrong = {
        "it is the record of another command": record.id != step.id or record.purpose != step.purpose,
        "its words are not those of the plan": record.words != step.words,
        "it is about another model": record.model != contribution.model.digest,
        "its environment is not that of the contribution": record.environment != contribution.environment,
        "it was made after the contribution": record.started > contribution.created,
        "its result is another file": record.result != files_.get(result_path(step.id)),
        "its log is another file": record.log != files_.get(log_path(step.id)),
        "it says both an exit code and a timeout": record.timed_out != (record.exit_code is None),
    }
    yield from (reject("evidence", f"{step.id}: {what}") for what, so in wrong.items() if so)
    result = dossier.results[step.id]
    if record.exit_code == 0 and (result or {}).get("schema") not in SCHEMAS[step.purpose]:
        yield reject("evidence", f"{step.id}: its result is that of another command")
    if sum(ns for taken in _rounds(result or {}) for ns in taken["wall_ns"]) > 1e9 * record.seconds:
        yield reject("evidence", f"{step.id}: its samples took longer than the command")
    if record.exit_code == 0 and (result is None or result.get("ok") is not True):
        yield reject("evidence", f"{step.id}: exit 0, and its result does not say ok")
    if record.exit_code not in (0, None) and (result or {}).get("ok") is True:
        yield reject("evidence", f"{step.id}: exit {record.exit_code}, and its result says ok")
    said = error_of(result).get("exit")
    if said is not None and said != record.exit_code:
        yield reject("evidence", f"{step.id}: exit {record.exit_code}, and its result says exit {said}")
    expected = verdict_of(record.exit_code, error_of(result).get("code"))
    if record.verdict != expected:
        yield reject("evidence", f"{step.id}: verdict {record.verdict}, but its exit code means {expected}")
    yield from _log(dossier, step, record)
    for path, value in {**record.reads, **record.writes}.items():
        if files_.get(path) != value:
            yield reject("evidence", f"{step.id}: it used `{path}` with another content")


def _log(dossier: Dossier, step: Step, record: Record) -> Iterator[Item]:
    log = (dossier.folder / log_path(step.id)).read_text(encoding="utf-8", errors="replace")
    if not log.startswith(log_head(step.words, dossier.contribution.model.digest)):
        yield reject("evidence", f"{step.id}: its log is empty, or of another command or model")
    if not log.endswith(log_tail(record.exit_code)):
        yield reject("evidence", f"{step.id}: its log ends otherwise than its record")


def _touched(dossier: Dossier, step: Step, record: Record) -> Iterator[Item]:
    """A command read every file here that its words name, and wrote everything that lies where it was told to write."""
    stated = dossier.contribution.files
    told = places(step)
    wrote = {path for path in stated for place in told if path == place or path.startswith(f"{place}/")}
    named = [word for word in step.words if word not in told]
    folders = [f"{word}/{MODEL}" for word in named if step.purpose != "build"]
    if set(record.reads) != {path for path in (*named, *folders) if path in stated}:
        yield reject("evidence", f"{step.id}: it read other files than its words name")
    if set(record.writes) != wrote:
        yield reject("evidence", f"{step.id}: it wrote other files than those that lie here")


def _stray(dossier: Dossier) -> Iterator[Item]:
    """Files that belong to no command, and to nothing else that a contribution brings."""
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


def _copied(dossier: Dossier) -> Iterator[Item]:
    """Samples that two rounds share were measured once."""
    seen: dict[str, str] = {}
    for name, result in dossier.results.items():
        for taken in _rounds(result or {}):
            mark = digest.of_json(taken["wall_ns"])
            if mark in seen:
                yield reject("evidence", f"`{name}` has samples of `{seen[mark]}` once more")
            seen[mark] = name


def _rounds(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every round of a measurement or of a comparison."""
    candidates = result.get("candidates") or ()
    for measured in (result, *candidates, *((c.get("confirmation") or {}) for c in candidates)):
        yield from (measured.get("measurement") or {}).get("rounds") or ()


def complete(dossier: Dossier) -> Iterator[Item]:
    """Every command up to the first rung that failed was run, and none that nothing asked for."""
    failed = next((rung.rung for rung in dossier.contribution.ladder if rung.verdict == "FAIL"), None)
    for step in dossier.plan:
        ran, asked = step.id in dossier.records, _asked(dossier, step, failed)
        if asked and not ran:
            yield reject("complete", f"`{step.id}` was not run")
        if ran and not asked and step.purpose == "compare":
            yield reject("complete", f"`{step.id}` was run, and nothing asked for it")


def _asked(dossier: Dossier, step: Step, failed: str | None) -> bool:
    if step.purpose == "compare":
        return effect.wanted(step, dossier.subject, dossier.exits, dossier.results)
    if step.id.startswith("inspect-default"):
        return dossier.exits.get("build-default") == 0
    if step.rung is None or step.id == "build-recipe":
        return True
    return dossier.exits.get("build-recipe") == 0 and (failed is None or step.rung <= failed)


def artifacts(dossier: Dossier) -> Iterator[Item]:
    """What a build says it wrote is what lies in the contribution."""
    stated = dossier.contribution.files
    for name, root in (("build-default", "artifacts/default"), ("build-recipe", "artifacts/recipe")):
        result = dossier.results.get(name)
        if not result or not result.get("ok"):
            continue
        for built in result.get("parts") or [result]:
            folder = f"{root}/{built['part']}" if "part" in built else root
            if stated.get(f"{folder}/model.onnx") is None:
                yield reject("artifacts", f"`{folder}/model.onnx` is missing")
                continue
            yield from _artifact(dossier, name, folder, built)
    yield from _inspected(dossier)


def _json(dossier: Dossier, path: str) -> Any:
    return files.read(dossier.folder / path, lambda value: value)


def _inspected(dossier: Dossier) -> Iterator[Item]:
    """What was inspected are the files that lie here."""
    for step in dossier.plan:
        result = dossier.results.get(step.id)
        if step.purpose != "inspect" or not result or not result.get("ok"):
            continue
        folder = dossier.folder / step.words[step.words.index("-m") + 1]
        # A path of the machine that made it, which may be of another system than this one.
        sizes = [(PureWindowsPath(file["path"]).name, file["bytes"]) for file in result["files"]]
        if any(not (folder / name).is_file() or (folder / name).stat().st_size != size for name, size in sizes):
            yield reject("artifacts", f"{step.id}: the files that were inspected have other sizes than those here")


def _artifact(dossier: Dossier, name: str, folder: str, built: Mapping[str, Any]) -> Iterator[Item]:
    manifest = _json(dossier, f"{folder}/{MANIFEST}")
    if manifest["artifact"]["digest"] != built["artifact"]["digest"]:
        yield reject("artifacts", f"{name}: the manifest of `{folder}` is of another artifact")
    for file, expected in manifest["objects"].items():
        if dossier.contribution.files.get(f"{folder}/{file}") != expected:
            yield reject("artifacts", f"{name}: `{folder}/{file}` is not what was built")
    source = manifest["source"]["digest"]
    if source != dossier.contribution.model.digest:
        yield reject("artifacts", f"{name}: `{folder}` was built from another model")
    config = _json(dossier, f"{folder}/{CONFIG}")
    if name == "build-recipe" and config["precision"] != dossier.contribution.precision:
        yield reject(
            "artifacts", f"{name}: built as {config['precision']}, claimed as {dossier.contribution.precision}"
        )


def environment(dossier: Dossier) -> Iterator[Item]:
    """Results carry the environment of the contribution, and were made on one machine."""
    stated = dossier.contribution.environment
    if dossier.contribution.winml != stated.get("winml"):
        yield reject("environment", "the contribution names another version of winml than its environment")
    machines = []
    for name, result in dossier.results.items():
        told = (result or {}).get("environment")
        if not isinstance(told, dict) or not (result or {}).get("ok"):
            continue
        machines.append(told["machine"])
        found = {"winml": told["winml"], "python": told["python"], "numpy": told["numpy"]}
        if any(stated.get(key) != value for key, value in found.items()):
            yield reject("environment", f"{name}: measured in another environment than the contribution says")
    if any(machine != machines[0] for machine in machines):
        yield reject("environment", "results were made on different machines")
