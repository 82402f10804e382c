"""The reviewer's checklist before anything is run again: whatever is missing, unknown or contradictory is an item."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from winml.modelkit.core.errors import DataError, ModelkitError
from winml.modelkit.core.recipe import Recipe, recipe_from_json
from winml.modelkit.knowledge import files
from winml.modelkit.knowledge.models import ModelFinding, finding_from_json
from winml.modelkit.review import derive, effect, ladder, scope, times
from winml.modelkit.review.contribution import FILE, REPORT, Contribution, contribution_from_json
from winml.modelkit.review.evidence import (
    UNFIT,
    Record,
    below,
    error_of,
    log_head,
    log_path,
    log_tail,
    record_from_json,
    record_path,
    result_path,
    same,
    verdict_of,
)
from winml.modelkit.review.judging import judged
from winml.modelkit.review.plan import (
    RECIPE_FILE,
    SAMPLES,
    SPECS_FILE,
    Metric,
    Step,
    Subject,
    inspect_step,
    output_file,
    plan,
)
from winml.modelkit.store import digest

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


class NotAContribution(ValueError):
    """There is nothing that could be reviewed."""


class Dossier:
    """A contribution's folder, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / FILE).is_file():
            raise NotAContribution(f"there is no `{FILE}` in `{folder}`")
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


Check = Callable[[Dossier], Iterator[Item]]


def checked(dossier: Dossier) -> list[Item]:
    """Every item; a check that cannot be made because evidence is missing or damaged is an item itself."""
    found: list[Item] = []
    for check in CHECKS:
        try:
            found += list(check(dossier))
        except ModelkitError as error:
            found.append(reject(_name(check), error.message))
        except UNFIT as error:
            found.append(reject(_name(check), f"the evidence does not fit: {type(error).__name__}: {error}"))
        if any(item.severity == "reject" for item in found) and check in (_files, _evidence):
            return found  # what follows reads these files
    return found


def _name(check: Check) -> str:
    return check.__name__.strip("_")


def _files(dossier: Dossier) -> Iterator[Item]:
    """Every file has the digest that is stated, and no file is there that is not stated."""
    stated = dossier.contribution.files
    there = set(below(dossier.folder)) - {FILE, REPORT}
    for path in sorted(there - set(stated)):
        yield reject("files", f"`{path}` is not in the list of files")
    for path, expected in stated.items():
        file = dossier.folder / path
        if path not in there:
            yield reject("files", f"`{path}` is missing")
        elif file.is_symlink() or not file.resolve().is_relative_to(dossier.folder.resolve()):
            yield reject("files", f"`{path}` leads out of the contribution")
        elif digest.of_file(file) != expected:
            yield reject("files", f"`{path}` has another digest than the list says")


def _evidence(dossier: Dossier) -> Iterator[Item]:
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


def _stray(dossier: Dossier) -> Iterator[Item]:
    """Evidence that belongs to no command."""
    known = {path(name) for name in dossier.contribution.steps for path in (record_path, result_path, log_path)}
    for path in dossier.contribution.files:
        if path.startswith("evidence/") and path not in known:
            yield reject("evidence", f"`{path}` belongs to no command")


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


def _complete(dossier: Dossier) -> Iterator[Item]:
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


def _artifacts(dossier: Dossier) -> Iterator[Item]:
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
    manifest = json.loads((dossier.folder / folder / "build_manifest.json").read_text(encoding="utf-8"))
    if manifest["artifact"]["digest"] != built["artifact"]["digest"]:
        yield reject("artifacts", f"{name}: the manifest of `{folder}` is of another artifact")
    for file, expected in manifest["objects"].items():
        if dossier.contribution.files.get(f"{folder}/{file}") != expected:
            yield reject("artifacts", f"{name}: `{folder}/{file}` is not what was built")
    source = manifest["source"]["digest"]
    if source != dossier.contribution.model.digest:
        yield reject("artifacts", f"{name}: `{folder}` was built from another model")
    config = json.loads((dossier.folder / folder / "build_config.json").read_text(encoding="utf-8"))
    if name == "build-recipe" and config["precision"] != dossier.contribution.precision:
        yield reject(
            "artifacts", f"{name}: built as {config['precision']}, claimed as {dossier.contribution.precision}"
        )


def _numbers(dossier: Dossier) -> Iterator[Item]:
    """Every number is what its raw evidence gives, in the result and in the contribution."""
    claimed = dossier.contribution.numbers
    for name in sorted(set(claimed) | set(dossier.numbers)):
        made, said = dossier.numbers.get(name, {}), claimed.get(name, {})
        if set(made) != set(said):
            yield reject("numbers", f"{name}: numbers {sorted(said)} are claimed, evidence gives {sorted(made)}")
        for number, value in made.items():
            if number in said and not math.isclose(value, said[number], rel_tol=1e-9, abs_tol=1e-12):
                yield reject("numbers", f"{name}: {number} is claimed as {said[number]:g}, evidence gives {value:g}")
    for step in dossier.plan:
        result = dossier.results.get(step.id)
        if step.purpose == "perf" and result and result.get("ok"):
            yield from _summaries(step, result)


def _times(dossier: Dossier) -> Iterator[Item]:
    """Comparisons are of the artifacts here, on the target, and say what their rounds give."""
    for step in dossier.plan:
        result = dossier.results.get(step.id)
        if step.purpose != "compare" or not result or not result.get("ok"):
            continue
        inspected = [dossier.results.get(inspect_step(name, step.part)) or {} for name in ("default", "recipe")]
        base, candidate = (found.get("fingerprint") for found in inspected)
        yield from (
            reject("times", f"{step.id}: {what}") for what in times.wrong(result, step.target, (base, candidate))
        )


def _kept(dossier: Dossier) -> Iterator[Item]:
    """Every output was compared on every input, and what was kept of them lies here."""
    for step in dossier.plan:
        result = dossier.results.get(step.id)
        if step.purpose != "parity" or not result or not result.get("ok"):
            continue
        file, kept = output_file(step.part), result["outputs"]
        if kept["file"] != file or kept["digest"] != dossier.contribution.files.get(file):
            yield reject("outputs", f"{step.id}: the outputs that were kept are another file than `{file}`")
        facts = (dossier.results.get(inspect_step("recipe", step.part)) or {})["facts"]
        compared, there = [row["output"] for row in result["distance"]], [value["name"] for value in facts["outputs"]]
        if sorted(compared) != sorted(there):
            yield reject("outputs", f"{step.id}: {compared} were compared, the artifact has {there}")
        if any(row["runs"] != SAMPLES for row in result["distance"]):
            yield reject("outputs", f"{step.id}: outputs were not compared on {SAMPLES} inputs")


def _scores(dossier: Dossier) -> Iterator[Item]:
    """The task metric is the mean of the scores that stand beside it."""
    result = dossier.results.get("metric")
    if not result or not result.get("ok") or result["metric"] is None:
        return
    said = result["metrics"][result["metric"]]
    series = [[float(v) for v in values] for values in result["samples"]["candidate"]["series"].values()]
    made = [sum(values) / len(values) for values in series if len(values) == said["n"]]
    if said["kind"] in ("share", "mean") and not any(math.isclose(value, said["value"]) for value in made):
        yield reject("numbers", f"metric: {result['metric']} {said['value']} is not what its scores give")


def _summaries(step: Step, result: Mapping[str, Any]) -> Iterator[Item]:
    made = derive.latency(result)
    for name, values in made.items():
        if any(not same(values[key], result[name].get(key)) for key in values):
            yield reject("numbers", f"{step.id}: `{name}` is not what its samples give")
    protocol = result["measurement"]["protocol"]
    lengths = {len(r["wall_ns"]) for r in result["measurement"]["rounds"]}
    if len(result["measurement"]["rounds"]) != protocol["sessions"] or lengths != {protocol["iterations"]}:
        yield reject("numbers", f"{step.id}: the samples are not as many as its protocol says")


def _thresholds(dossier: Dossier) -> Iterator[Item]:
    stated = dossier.contribution
    expected = derive.COSINE.get(stated.precision)
    if expected is None:
        yield reject("thresholds", f"precision `{stated.precision}` is unknown")
    elif stated.cosine != expected:
        yield reject("thresholds", f"cosine {stated.cosine:g} is claimed for {stated.precision}; it is {expected:g}")


def _precision(dossier: Dossier) -> Iterator[Item]:
    """The number types of the artifact are what its precision says."""
    for step in dossier.plan:
        result = dossier.results.get(step.id)
        if step.purpose != "inspect" or step.rung != "L0" or not result or not result.get("ok"):
            continue
        if not derive.has_precision(result["facts"], dossier.contribution.precision):
            kind, types = result["facts"]["quantized"]["kind"], ", ".join(result["facts"]["float_types"])
            said = dossier.contribution.precision
            yield reject("precision", f"{step.id}: called {said}, but it is {types} and quantized: {kind}")


def _ladder(dossier: Dossier) -> Iterator[Item]:
    """The ladder is the one that its evidence gives, and keeps to the rules."""
    stated = dossier.contribution
    yield from (reject("ladder", reason) for reason in ladder.wrong(stated.ladder, dossier.subject.goal))
    made = ladder.ladder(dossier.judged, dossier.subject.goal)
    for claimed, found in zip(stated.ladder, made, strict=False):
        if (claimed.rung, claimed.verdict, claimed.steps) != (found.rung, found.verdict, found.steps):
            yield reject("ladder", f"{claimed.rung} is claimed as {claimed.verdict}, evidence gives {found.verdict}")
        elif claimed.reason != found.reason:
            yield changes("ladder", f"{claimed.rung}: the reason is not the one of its evidence")
    if stated.reached != ladder.reached(made):
        yield reject("ladder", f"{stated.reached} is claimed as reached, evidence gives {ladder.reached(made)}")
    if {k: list(v) for k, v in stated.levels.items()} != ladder.levels(dossier.judged):
        yield reject("ladder", "the artifact levels are not those of the evidence")
    for rung in made:
        if rung.rung <= stated.tiers.goal and rung.verdict != "PASS":
            yield changes(
                "ladder", f"{rung.rung} is {rung.verdict}, and the goal is {stated.tiers.goal}: {rung.reason}"
            )
    if stated.tiers.goal < "L2":
        yield changes("ladder", "nothing is shipped without L2: a goal below it shows no agreement with a reference")


def _tiers(dossier: Dossier) -> Iterator[Item]:
    """Effort and outcome are what is there; where nothing was built, they say what it would take."""
    tiers, recipe = dossier.contribution.tiers, dossier.recipe
    for path in scope.outside(dossier.code, tiers.effort):  # type: ignore[arg-type]  # a choice of the efforts
        yield reject("scope", f"effort {tiers.effort} does not change `{path}`")
    if dossier.contribution.reached is None:
        return
    wrong = scope.wrong_tiers(
        tiers.effort,  # type: ignore[arg-type]
        tiers.outcome,  # type: ignore[arg-type]
        code=dossier.code,
        template=None if recipe is None else recipe.template,
        recipe=recipe is not None,
        findings=len(dossier.findings),
    )
    yield from (reject("tiers", reason) for reason in wrong)


def _recipe(dossier: Dossier) -> Iterator[Item]:
    """A recipe that differs from the default, with an effect that was measured."""
    stated, recipe = dossier.contribution, dossier.recipe
    if recipe is None:
        if stated.recipe is not None or stated.effect is not None:
            yield reject("recipe", "a recipe is claimed, and there is none")
        return
    if stated.recipe != recipe.name:
        yield reject("recipe", f"`{stated.recipe}` is claimed, recipe.json is `{recipe.name}`")
    if recipe.parts != stated.model.parts or (stated.model.family and stated.model.family not in recipe.families):
        yield reject("recipe", "it is for another family, or for other parts")
    yield from _specs_file(dossier, recipe)
    configs = {
        name: [_config(dossier, s) for s in dossier.plan if s.purpose == "config" and s.id.startswith(f"config-{name}")]
        for name in ("default", "recipe")
    }
    if recipe.changes_nothing or not effect.differs(configs["default"], configs["recipe"]):
        yield reject("recipe", "it is the default: a recipe that changes nothing is no contribution")
    found = effect.measured(dossier.subject, dossier.exits, dossier.results)
    if dossier.exits.get("build-recipe") == 0 and found is None:
        yield reject("recipe", "its difference from the default has no measured effect")
    if found != stated.effect:
        yield reject("recipe", "the effect that is claimed is not the one of the evidence")


def _config(dossier: Dossier, step: Step) -> Mapping[str, Any]:
    """The config of a command; what could not be made differs from everything by its error."""
    result = dossier.results[step.id] or {}
    config = result.get("config")
    return config if isinstance(config, dict) else {"error": step.id}


def _specs_file(dossier: Dossier, recipe: Recipe) -> Iterator[Item]:
    path = dossier.folder / SPECS_FILE
    there = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if there != recipe.export.input_specs:
        yield reject("recipe", f"`{SPECS_FILE}` is not what the recipe says")


def _probe(dossier: Dossier) -> Iterator[Item]:
    """What is said of the probe is what it said, and it leads to what was done."""
    stated, result = dossier.contribution, dossier.results.get("probe")
    if not result or not result.get("ok"):
        yield reject("probe", "there is no probe")
        return
    applies = tuple(o["name"] for o in result["obstacles"] if o["applies"])
    told = (result["answer"], result["sentence"], applies, result["covered"])
    if told != (stated.probe.answer, stated.probe.sentence, stated.probe.obstacles, stated.probe.covered):
        yield reject("probe", "the probe said something else")
    about = result["model"]
    same = (about["digest"], about["family"], tuple(about["parts"]), about["exported"])
    if same != (stated.model.digest, stated.model.family, stated.model.parts, stated.model.exported):
        yield reject("probe", "the probe is about another model")


def _findings(dossier: Dossier) -> Iterator[Item]:
    stated = dossier.contribution
    if tuple(f.id for f in dossier.findings) != stated.findings:
        yield reject("findings", "the findings are not those that are claimed")
    for finding in dossier.findings:
        if finding.goal_reached not in (None, stated.reached):
            yield reject("findings", f"{finding.id} says {finding.goal_reached}, the ladder reached {stated.reached}")
        if finding.family not in (stated.model.family, "methodology"):
            yield reject("findings", f"{finding.id} is about another family than {stated.model.family}")
    lacking = set(stated.methodology.findings) - {f.id for f in dossier.findings}
    if stated.methodology.triggers and (lacking or not stated.methodology.findings):
        yield changes("findings", "a methodology trigger was met, and no finding says what was learnt")


def _environment(dossier: Dossier) -> Iterator[Item]:
    """Results carry the environment of the contribution."""
    stated = dossier.contribution.environment
    for name, result in dossier.results.items():
        told = (result or {}).get("environment")
        if not isinstance(told, dict) or not (result or {}).get("ok"):
            continue
        found = {"winml": told["winml"], "python": told["python"], "numpy": told["numpy"]}
        if any(stated.get(key) != value for key, value in found.items()):
            yield reject("environment", f"{name}: measured in another environment than the contribution says")


CHECKS: tuple[Check, ...] = (
    _files,
    _evidence,
    _complete,
    _artifacts,
    _inspected,
    _numbers,
    _times,
    _kept,
    _scores,
    _thresholds,
    _precision,
    _ladder,
    _tiers,
    _recipe,
    _probe,
    _findings,
    _environment,
)
