"""`winml support produce`: runs commands up to the goal and writes a contribution, with the evidence of each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from winml.modelkit import __version__
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import CheckFailed, RequestError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.recipe import BuildPart, Recipe
from winml.modelkit.core.suggest import near_path
from winml.modelkit.core.support import GOALS, Effort, Goal, SupportResult
from winml.modelkit.ep import precision as precisions
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.knowledge.files import knowledge_folder
from winml.modelkit.knowledge.models import ModelFinding, ModelKnowledge, ModelScope
from winml.modelkit.render.contribution import contribution_markdown
from winml.modelkit.store import atomic, digest
from winml.modelkit.support.commands import Commands, CommandStarted, describe_environment, make_error, now
from winml.modelkit.support.model import SupportModel, read_model
from winml.modelkit.support.probe_result import ProbeResult
from winml.modelkit.support.review import derive, effect, ladder
from winml.modelkit.support.review import evidence as evidences
from winml.modelkit.support.review.contribution import (
    FILE,
    REPORT,
    Contribution,
    Methodology,
    Tiers,
    claim_probe,
    describe_model,
    index_row,
)
from winml.modelkit.support.review.evidence import CommandRun, Record
from winml.modelkit.support.review.judging import judge_steps
from winml.modelkit.support.review.plan import (
    RECIPE_FILE,
    SPECS_FILE,
    MetricData,
    Step,
    Subject,
    list_written,
    make_plan,
)
from winml.modelkit.support.review.results import ConfigEvidence, Result, error_of, read_result

NOTHING_LEARNT = "the commands did what their documentation says; nothing was learnt about the work"


@dataclass(frozen=True)
class ProduceRequest:
    """Everything the user decided."""

    model: str
    output: str
    targets: tuple[str, ...] = ("cpu",)
    goal: Goal = "L2"
    recipe: str | None = None
    """A recipe file or the name of a shipped one; None makes one of `build`, or takes what the probe found."""
    build: BuildPart = field(default_factory=BuildPart)
    data: str | None = None
    task: str | None = None
    min_metric: float | None = None
    knowledge: str | None = None
    timeout_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class ProduceResult(SupportResult):
    action: Literal["produce"] = "produce"
    folder: str
    contribution: Contribution


@dataclass(frozen=True, kw_only=True)
class NothingNeeded:
    """The result of the error for a model that needs no contribution."""

    probe: ProbeResult


def new_folder(path: str) -> Path:
    """The path of a folder that does not exist yet."""
    output = Path(path).absolute()
    if output.exists():
        raise RequestError(f"output folder exists: `{output}`", hint="name a new folder")
    if not output.parent.is_dir():
        raise RequestError(f"output folder's parent not found: `{output.parent}`", hint=near_path(output.parent))
    return output


def check_words(request: ProduceRequest) -> None:
    """Raise for unknown targets, precisions and recipes and for missing data before anything runs."""
    for target in request.targets:
        parse_target(target)
    if request.build.precision is not None:
        precisions.parse_precision(request.build.precision)
    if request.recipe is not None:
        recipes.find_recipe(request.recipe)
    if request.data is not None and not Path(request.data).is_file():
        hint = near_path(request.data, "name a file; a folder cannot be included")
        raise RequestError(f"data file not found: `{request.data}`", hint=hint)


def produce(request: ProduceRequest, on_event: OnEvent) -> ProduceResult:
    """Write a contribution; raises `CheckFailed` when it does not reach its goal."""
    check_words(request)
    output = new_folder(request.output)
    model = read_model(request.model)
    staged = atomic.temporary_name(output.parent)
    atomic.make_folder(staged)
    try:
        made, no_effect = _Production(request, model, staged, on_event).run()
        atomic.move(staged, output)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    result = ProduceResult(folder=str(output), contribution=made)
    if made.recipe is not None and made.effect is None and made.reached is not None:
        raise CheckFailed(
            f"no contribution: recipe `{made.recipe}` has no measured effect against the default: {no_effect}",
            hint=f"the evidence is in `{output}`",
            result=result,
        )
    short = [r for r in made.ladder if GOALS.index(r.rung) <= GOALS.index(request.goal) and r.verdict != "PASS"]
    if short:
        raise CheckFailed(
            f"the contribution reached {made.reached or 'nothing'} of {request.goal}: {short[0].rung} is "
            f"{short[0].verdict}: {short[0].reason}",
            hint=f"the evidence is in `{output}`",
            result=result,
        )
    return result


class _Production:
    """One contribution in progress."""

    def __init__(self, request: ProduceRequest, model: SupportModel, folder: Path, on_event: OnEvent) -> None:
        self._request = request
        self._model = model
        self._folder = folder
        self._on_event = on_event
        self._run = Commands(request.model, folder, timeout_s=request.timeout_s)
        self._environment = describe_environment()
        self._results: dict[str, Result | None] = {}
        self._exits: dict[str, int | None] = {}

    def run(self) -> tuple[Contribution, str]:
        """Run every command until a rung fails and write the contribution; also returns why a recipe has no effect."""
        probed = self._probe()
        subject = self._subject(probed)
        steps = make_plan(subject)
        for step in steps:
            if step.id not in self._exits and self._may_run(step, steps, subject):
                self._do(step)
        return self._write(subject, probed), effect.explain_none(subject, self._results)

    def _probe(self) -> ProbeResult:
        step = make_plan(Subject(self._model.exported, (), None, self._request.targets, "L0"))[0]
        self._do(step)
        result = self._results[step.id]
        if not isinstance(result, ProbeResult):
            raise make_error(error_of(result), "the probe gave no result")
        return result

    def _subject(self, probed: ProbeResult) -> Subject:
        recipe = self._recipe(probed)
        if recipe is None and probed.answer == "nothing":
            raise CheckFailed(
                f"no contribution: the model {probed.sentence}",
                hint="name what you would change with `--recipe` or `--precision`",
                result=NothingNeeded(probe=probed),
            )
        if recipe is not None:
            (self._folder / RECIPE_FILE).write_bytes(files.text(recipe))
            if recipe.export.input_specs:
                (self._folder / SPECS_FILE).write_bytes(files.text(recipe.export.input_specs))
        request = self._request
        return Subject(self._model.exported, probed.model.parts, recipe, request.targets, request.goal, self._metric())

    def _recipe(self, probed: ProbeResult) -> Recipe | None:
        if self._request.recipe is not None:
            return recipes.find_recipe(self._request.recipe)
        if self._request.build == BuildPart():
            return probed.recipe
        if probed.recipe is not None:
            return replace(probed.recipe, build=self._request.build)
        about = probed.model
        return Recipe(
            name="-".join(filter(None, (about.family or self._model.name, self._request.build.precision))),
            families=() if about.family is None else (about.family,),
            tasks=() if about.task is None else (about.task,),
            parts=about.parts,
            build=self._request.build,
        )

    def _metric(self) -> MetricData | None:
        given = self._request.data
        if given is None:
            return None
        source = Path(given)
        copy = self._folder / "data" / source.name
        copy.parent.mkdir()
        shutil.copyfile(source, copy)
        return MetricData(file=f"data/{source.name}", task=self._request.task, min_metric=self._request.min_metric)

    def _may_run(self, step: Step, steps: tuple[Step, ...], subject: Subject) -> bool:
        if step.id.startswith("inspect-default"):
            return self._exits["build-default"] == 0
        if step.purpose == "compare":
            return effect.needs_compare(step, subject, self._exits, self._results)
        if step.rung is None or step.id == "build-recipe":
            return True
        before = [s for s in steps if s.id in self._exits and s.rung is not None and s.rung < step.rung]
        failed = any(r.verdict == "FAIL" for r in ladder.build_ladder(self._judge(subject, before), subject.goal))
        return self._exits["build-recipe"] == 0 and not failed

    def _judge(self, subject: Subject, steps: list[Step]) -> list[ladder.StepVerdict]:
        return judge_steps(steps, self._results, self._exits, self._precision(subject))

    def _precision(self, subject: Subject) -> str:
        """The precision the recipe resolves to; the requested one when nothing could be resolved."""
        prefix = "config-recipe" if subject.recipe else "config-default"
        for name, result in self._results.items():
            if name.startswith(prefix) and isinstance(result, ConfigEvidence):
                return str(result.config["precision"])
        return "fp32" if subject.recipe is None else subject.recipe.build.precision or "fp32"

    def _do(self, step: Step) -> None:
        """Run a command and store everything it left behind."""
        self._on_event(CommandStarted(step.id))
        before = {path: digest.of_file(self._folder / path) for path in _list_used(self._folder, step)}
        run = self._run(step.words)
        self._exits[step.id] = run.exit_code
        self._results[step.id] = None if run.result is None else read_result(step.purpose, run.result)
        self._keep(step, run, before)

    def _keep(self, step: Step, run: CommandRun, reads: dict[str, str]) -> None:
        (self._folder / evidences.FOLDER).mkdir(exist_ok=True)
        log = evidences.log_text(run, self._model.digest)
        (self._folder / evidences.log_path(step.id)).write_bytes(log)
        result: str | None = None
        if run.result is not None:
            content = evidences.result_text(run.result)
            (self._folder / evidences.result_path(step.id)).write_bytes(content)
            result = digest.of_bytes(content)
        record = Record(
            id=step.id,
            purpose=step.purpose,
            words=step.words,
            exit_code=run.exit_code,
            timed_out=run.exit_code is None,
            verdict=evidences.verdict_of(run.exit_code, error_of(self._results[step.id]).code),
            started=run.started,
            seconds=run.seconds,
            model=self._model.digest,
            environment=self._environment,
            reads=reads,
            writes={path: digest.of_file(self._folder / path) for path in list_written(self._folder, step)},
            result=result,
            log=digest.of_bytes(log),
        )
        (self._folder / evidences.record_path(step.id)).write_bytes(files.text(record))

    def _write(self, subject: Subject, probed: ProbeResult) -> Contribution:
        steps = [step for step in make_plan(subject) if step.id in self._exits]
        numbers = {s.id: derive.numbers(self._results[s.id]) for s in steps}
        numbers = {name: values for name, values in numbers.items() if values}
        done = self._judge(subject, steps)
        rungs = ladder.build_ladder(done, subject.goal)
        reached = ladder.find_reached(rungs)
        precision = self._precision(subject)
        finding = self._finding(subject, probed, reached, rungs)
        made = Contribution(
            winml=__version__,
            created=now(),
            model=replace(describe_model(probed.model), reference=self._request.model),
            tiers=Tiers(effort=_effort(subject, reached), goal=subject.goal, outcome="L0"),
            reached=reached,
            targets=subject.targets,
            precision=precision,
            cosine=derive.COSINE[precision],
            probe=claim_probe(probed),
            effect=None if subject.recipe is None else effect.find_effect(subject, self._exits, self._results),
            ladder=rungs,
            levels=ladder.find_levels(done),
            numbers=numbers,
            steps=tuple(step.id for step in steps),
            recipe=None if subject.recipe is None else subject.recipe.name,
            index_row=index_row(
                self._model.family or self._model.name,
                None if subject.recipe is None else subject.recipe.name,
                subject.targets,
                precision,
                reached,
            ),
            findings=() if finding is None else (finding.id,),
            methodology=Methodology(statement=NOTHING_LEARNT, triggers=(), findings=()),
            metric=subject.metric,
            environment=self._environment,
            files={path: digest.of_file(self._folder / path) for path in evidences.below(self._folder)},
        )
        (self._folder / FILE).write_bytes(files.text(made))
        (self._folder / REPORT).write_text(contribution_markdown(made), encoding="utf-8", newline="\n")
        return made

    def _finding(
        self, subject: Subject, probed: ProbeResult, reached: Goal | None, rungs: tuple[ladder.Rung, ...]
    ) -> ModelFinding | None:
        """What this contribution shows about the family; an ONNX file has no family."""
        family = self._model.family
        if family is None:
            return None
        known = ModelKnowledge(knowledge_folder(self._request.knowledge))
        last = next(r for r in reversed(rungs) if r.rung == (reached or "L0"))
        finding = ModelFinding(
            id=known.next_id(family),
            title=f"{family} {probed.sentence}"[:120],
            observation=f"{last.rung} is {last.verdict}: {last.reason}",
            status="observed",
            source="measured by this project",
            added=now()[:10],
            scope=ModelScope(validated_on=(f"{self._model.name} ({self._model.digest[:19]})",)),
            effort=_effort(subject, reached),
            goal_reached=reached,
            recipe=None if subject.recipe is None else subject.recipe.name,
            evidence=f"contribution of {self._model.digest}",
        )
        path = self._folder / "findings" / f"{finding.id}.json"
        path.parent.mkdir()
        path.write_bytes(files.text(finding))
        return finding


def _effort(subject: Subject, reached: Goal | None) -> Effort:
    """A recipe, with or without a template; what no recipe can build needs code."""
    if subject.recipe is None or reached is None:
        return "L1"
    return "L0*" if subject.recipe.template is None else "L0"


def _list_used(folder: Path, step: Step) -> Iterator[str]:
    """Files of the contribution that a command reads."""
    for word in step.words:
        path = folder / word
        if path.is_file():
            yield word
        elif word.startswith("artifacts/") and (path / "model.onnx").is_file() and step.purpose != "build":
            yield f"{word}/model.onnx"
