"""The reviewer's checklist before anything is run again: everything missing, unknown or contradictory is an item."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from winml.modelkit.building.inspect import Inspection
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.core.values import to_json
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.knowledge.models import ModelFinding
from winml.modelkit.support.probe_result import ProbeResult
from winml.modelkit.support.review import derive, effect, ladder, scope, times, whole
from winml.modelkit.support.review.contribution import claim_probe, describe_model, index_row
from winml.modelkit.support.review.dossier import Dossier, Item, changes, reject
from winml.modelkit.support.review.evidence import same
from winml.modelkit.support.review.plan import SAMPLES, SPECS_FILE, Step, inspect_step, output_file
from winml.modelkit.support.review.results import (
    CompareEvidence,
    MetricEvidence,
    ParityEvidence,
    PerfEvidence,
    find,
)

Check = Callable[[Dossier], Iterator[Item]]


def run_checks(dossier: Dossier) -> list[Item]:
    """Every item; a check that fails because evidence is missing or malformed is an item itself."""
    found: list[Item] = []
    for name, check in CHECKS.items():
        try:
            found += list(check(dossier))
        except ModelkitError as error:
            found.append(reject(name, error.message))
        if any(item.severity == "reject" for item in found) and name in ("files", "evidence"):
            return found  # the other checks read these files
    return found


def _numbers(dossier: Dossier) -> Iterator[Item]:
    """Every number matches its raw evidence, in the result and in the contribution."""
    claimed = dossier.contribution.numbers
    for name in sorted(set(claimed) | set(dossier.numbers)):
        made, said = dossier.numbers.get(name, {}), claimed.get(name, {})
        if set(made) != set(said):
            yield reject("numbers", f"{name}: numbers {sorted(said)} are claimed, evidence gives {sorted(made)}")
        for number, value in made.items():
            if number in said and not math.isclose(value, said[number], rel_tol=1e-9, abs_tol=1e-12):
                yield reject("numbers", f"{name}: {number} is claimed as {said[number]:g}, evidence gives {value:g}")


def _samples(dossier: Dossier) -> Iterator[Item]:
    """Summaries match their samples, which have the requested number and were taken on the target."""
    for step in dossier.plan:
        result = find(dossier.results, step.id, PerfEvidence)
        if result is None:
            continue
        said = derive.PerfSummary(latency_ms=result.latency_ms, cpu_ms=result.cpu_ms)
        for name, found in to_json(derive.summarize_perf(result)).items():
            if not same(found, to_json(said)[name]):
                yield reject("numbers", f"{step.id}: `{name}` does not match its samples")
        rounds, protocol = result.measurement.rounds, result.measurement.protocol
        lengths = {len(taken.wall_ns) for taken in rounds}
        if len(rounds) != protocol.sessions or lengths != {protocol.iterations}:
            yield reject("numbers", f"{step.id}: the number of samples differs from its protocol")
        if not parse_target(step.target).allows(result.target):
            yield reject("numbers", f"{step.id}: it ran on {result.target}, not on {step.target}")


def _times(dossier: Dossier) -> Iterator[Item]:
    """Comparisons are of the artifacts here, on the target, and match their rounds."""
    for step in dossier.plan:
        result = find(dossier.results, step.id, CompareEvidence)
        if result is not None:
            inspected = (_find_inspection(dossier, name, step) for name in ("default", "recipe"))
            base, candidate = (None if found is None else found.description.fingerprint for found in inspected)
            for what in times.problems(result, step.target, (base, candidate)):
                yield reject("times", f"{step.id}: {what}")


def _find_inspection(dossier: Dossier, name: str, step: Step) -> Inspection | None:
    """The inspection of the default's or the recipe's artifact of the part that a command is about."""
    return find(dossier.results, inspect_step(name, step.part), Inspection)


def _outputs(dossier: Dossier) -> Iterator[Item]:
    """Every output was compared on every input, and the saved outputs are here."""
    for step in dossier.plan:
        result = find(dossier.results, step.id, ParityEvidence)
        if result is None:
            continue
        file, kept = output_file(step.part), result.outputs
        if kept.file != file or kept.digest != dossier.contribution.files.get(file):
            yield reject("outputs", f"{step.id}: the saved outputs are not in `{file}`")
        artifact = _find_inspection(dossier, "recipe", step)
        there = [] if artifact is None else [value.name for value in artifact.description.facts.outputs]
        compared = [row.output for row in result.distance]
        if sorted(compared) != sorted(there):
            yield reject("outputs", f"{step.id}: {compared} were compared, the artifact has {there}")
        if any(row.runs != SAMPLES for row in result.distance):
            yield reject("outputs", f"{step.id}: outputs were not compared on {SAMPLES} inputs")


def _scores(dossier: Dossier) -> Iterator[Item]:
    """The task metric is the mean of its scores."""
    result = find(dossier.results, "metric", MetricEvidence)
    said = None if result is None else result.deciding
    if result is None or said is None or said.value is None or said.kind not in ("share", "mean"):
        return
    means = []
    for series in result.samples.candidate.series.values():
        # Series of records have no mean.
        if series and len(series) == said.n and all(v in ("0", "1") or type(v) in (int, float) for v in series):
            means.append(math.fsum(map(float, series)) / len(series))
    if not any(math.isclose(value, said.value) for value in means):
        yield reject("numbers", f"metric: {result.metric} {said.value} does not match its scores")


def _thresholds(dossier: Dossier) -> Iterator[Item]:
    stated = dossier.contribution
    expected = derive.COSINE.get(stated.precision)
    if expected is None:
        yield reject("thresholds", f"precision `{stated.precision}` is unknown")
    elif stated.cosine != expected:
        yield reject("thresholds", f"cosine {stated.cosine:g} is claimed for {stated.precision}; it is {expected:g}")


def _precision(dossier: Dossier) -> Iterator[Item]:
    """The number types of the artifact match its precision."""
    said = dossier.contribution.precision
    for step in dossier.plan:
        result = find(dossier.results, step.id, Inspection)
        if result is None or step.rung != "L0":
            continue
        if not derive.has_precision(result.description.facts, said):
            facts = result.description.facts
            kind, types = facts.quantized.kind, ", ".join(facts.float_types)
            yield reject("precision", f"{step.id}: claimed as {said}, but it is {types} and quantized: {kind}")


def _ladder(dossier: Dossier) -> Iterator[Item]:
    """The ladder matches its evidence, and follows the rules."""
    stated = dossier.contribution
    yield from (reject("ladder", reason) for reason in ladder.find_problems(stated.ladder, dossier.subject.goal))
    made = ladder.build_ladder(dossier.verdicts, dossier.subject.goal)
    for claimed, found in zip(stated.ladder, made, strict=False):
        if (claimed.rung, claimed.verdict, claimed.steps) != (found.rung, found.verdict, found.steps):
            yield reject("ladder", f"{claimed.rung} is claimed as {claimed.verdict}, evidence gives {found.verdict}")
        elif claimed.reason != found.reason:
            yield changes("ladder", f"{claimed.rung}: the reason does not match its evidence")
    if stated.reached != ladder.find_reached(made):
        yield reject("ladder", f"{stated.reached} is claimed as reached, evidence gives {ladder.find_reached(made)}")
    if stated.levels != ladder.find_levels(dossier.verdicts):
        yield reject("ladder", "the artifact levels do not match the evidence")
    for rung in made:
        if rung.rung <= stated.tiers.goal and rung.verdict != "PASS":
            yield changes(
                "ladder", f"{rung.rung} is {rung.verdict}, and the goal is {stated.tiers.goal}: {rung.reason}"
            )
    if stated.tiers.goal < "L2":
        yield changes("ladder", "nothing is shipped without L2: a goal below it shows no agreement with a reference")


def _tiers(dossier: Dossier) -> Iterator[Item]:
    """Effort and outcome match the files; where nothing was built, they are an estimate."""
    tiers, recipe = dossier.contribution.tiers, dossier.recipe
    for path in scope.outside(dossier.code, tiers.effort):
        yield reject("scope", f"effort {tiers.effort} must not change `{path}`")
    if dossier.contribution.reached is None:
        return
    template = None if recipe is None else recipe.template
    if template is not None and template not in recipes.load_recipes():
        yield reject("tiers", f"its template is not a known recipe: `{template}`")
    wrong = scope.find_tier_problems(
        tiers.effort,
        tiers.outcome,
        code=tuple(path for path in dossier.code if path.endswith(".py")),
        template=template,
        recipe=recipe is not None,
        findings=len(dossier.findings),
    )
    yield from (reject("tiers", reason) for reason in wrong)


def _recipe(dossier: Dossier) -> Iterator[Item]:
    """The recipe differs from the default, with a measured effect."""
    stated, recipe = dossier.contribution, dossier.recipe
    if recipe is None:
        if stated.recipe is not None or stated.effect is not None:
            yield reject("recipe", "a recipe is claimed, but there is none")
        return
    if stated.recipe != recipe.name:
        yield reject("recipe", f"`{stated.recipe}` is claimed, recipe.json is `{recipe.name}`")
    if recipe.parts != stated.model.parts or (stated.model.family and stated.model.family not in recipe.families):
        yield reject("recipe", "it is for another family, or for other parts")
    yield from _specs_file(dossier, recipe)
    yield from _proofs(dossier, recipe)
    configs = [step.id for step in dossier.plan if step.purpose == "config"]
    default, changed = (
        [dossier.results.get(name) for name in configs if name.startswith(f"config-{which}")]
        for which in ("default", "recipe")
    )
    if recipe.changes_nothing or not effect.differs(default, changed):
        yield reject("recipe", "it is the default: a recipe that changes nothing is not a contribution")
    found = effect.find_effect(dossier.subject, dossier.exits, dossier.results)
    if dossier.exits.get("build-recipe") == 0 and found is None:
        yield reject("recipe", "its difference from the default has no measured effect")
    if found != stated.effect:
        yield reject("recipe", "the claimed effect does not match the evidence")


def _proofs(dossier: Dossier, recipe: Recipe) -> Iterator[Item]:
    """A recipe claims only the proofs that it is shipped with, and does not use the name of another recipe."""
    shipped = recipes.load_recipes().get(recipe.name)
    known = () if shipped is None else shipped.proven
    for proof in recipe.proven:
        if proof not in known:
            yield reject("recipe", f"it claims {proof.goal} on {proof.target}; only the evidence here can prove that")
    if shipped is not None and any(getattr(shipped, part) != getattr(recipe, part) for part in _PARTS):
        yield changes("recipe", f"another recipe `{recipe.name}` is shipped; give it another name")


_PARTS = ("export", "build", "inputs")
"""The parts of a recipe that decide what commands do."""


def _specs_file(dossier: Dossier, recipe: Recipe) -> Iterator[Item]:
    path = dossier.folder / SPECS_FILE
    there = files.read(path, lambda value: value) if path.is_file() else {}
    if there != recipe.export.input_specs:
        yield reject("recipe", f"`{SPECS_FILE}` does not match the recipe")


def _probe(dossier: Dossier) -> Iterator[Item]:
    """The claims about the probe match its result, and it is about the same model."""
    stated, result = dossier.contribution, find(dossier.results, "probe", ProbeResult)
    if result is None:
        yield reject("probe", "there is no probe")
        return
    if stated.probe != claim_probe(result):
        yield reject("probe", "the claim does not match what the probe reported")
    if replace(stated.model, reference=result.model.reference) != describe_model(result.model):
        yield reject("probe", "the probe is about another model")


def _findings(dossier: Dossier) -> Iterator[Item]:
    stated = dossier.contribution
    if tuple(f.id for f in dossier.findings) != stated.findings:
        yield reject("findings", "the findings do not match the claimed ones")
    for finding in dossier.findings:
        if finding.goal_reached not in (None, stated.reached):
            yield reject("findings", f"{finding.id} says {finding.goal_reached}, the ladder reached {stated.reached}")
        if finding.family not in (stated.model.family, "methodology"):
            yield reject("findings", f"{finding.id} is about another family than {stated.model.family}")
        yield from _claims(dossier, finding)
    lacking = set(stated.methodology.findings) - {f.id for f in dossier.findings}
    if stated.methodology.triggers and (lacking or not stated.methodology.findings):
        yield changes("findings", "a methodology trigger was met, but no finding records what was learned")


def _claims(dossier: Dossier, finding: ModelFinding) -> Iterator[Item]:
    """What was observed here was observed on this model, with this recipe and effort."""
    stated = dossier.contribution
    if finding.status != "observed" or finding.family == "methodology":
        return
    short = stated.model.digest[:19]
    if any(short not in model for model in finding.scope.validated_on):
        yield reject("findings", f"{finding.id} was seen on models that this contribution has no evidence for")
    if finding.effort not in (None, stated.tiers.effort) or finding.recipe not in (None, stated.recipe):
        yield reject("findings", f"{finding.id} is about another effort or recipe")


def _row(dossier: Dossier) -> Iterator[Item]:
    """The row for the list of models matches the contribution."""
    stated = dossier.contribution
    label = stated.model.family or "".join(stated.index_row.split("|")[1:2]).strip()
    if stated.index_row != index_row(label, stated.recipe, stated.targets, stated.precision, stated.reached):
        yield reject("row", "the row for the list of models does not match the contribution")


CHECKS: dict[str, Check] = {
    "files": whole.every_file,
    "evidence": whole.every_command,
    "complete": whole.complete,
    "artifacts": whole.artifacts,
    "environment": whole.environment,
    "numbers": _numbers,
    "samples": _samples,
    "times": _times,
    "outputs": _outputs,
    "scores": _scores,
    "thresholds": _thresholds,
    "precision": _precision,
    "ladder": _ladder,
    "tiers": _tiers,
    "recipe": _recipe,
    "probe": _probe,
    "findings": _findings,
    "row": _row,
}
