"""`winml support probe`: what happens to a model with its defaults, and what it needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from winml.modelkit.building import exported
from winml.modelkit.building.export.describe import FolderInspection
from winml.modelkit.building.export.forward import TO_FILL, ProposedInputs
from winml.modelkit.building.inspect import Inspection
from winml.modelkit.core import model_ref
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.core.values import read
from winml.modelkit.ep.sys_command import describe_system
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.knowledge.models import ModelKnowledge
from winml.modelkit.support import obstacles as judging
from winml.modelkit.support.commands import Commands, CommandStarted, make_error
from winml.modelkit.support.model import SupportModel, read_model
from winml.modelkit.support.obstacles import Help, ProbeFacts
from winml.modelkit.support.probe_result import Attempt, InputSkeleton, ProbedModel, ProbeResult
from winml.modelkit.support.review.evidence import MODEL, CommandRun, verdict_of
from winml.modelkit.support.review.plan import SPECS_FILE
from winml.modelkit.support.review.results import NO_ERROR, CommandError, Failure, Placement, error_of
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder


@dataclass(frozen=True)
class ProbeRequest:
    """Everything the user decided."""

    model: str
    targets: tuple[str, ...] = ()
    """Empty: every device that is ready here, the CPU first."""
    timeout_s: float | None = None


def probe(request: ProbeRequest, on_event: OnEvent) -> ProbeResult:
    """Inspect, build and run the model as it is, and report what it needs."""
    for target in request.targets:
        parse_target(target)
    model = read_model(request.model)
    if not request.targets:
        request = replace(request, targets=_ready())
    with ScratchFolder("winml-probe-") as folder:
        prober = _Prober(request, model, folder, on_event)
        seen = prober.look()
    answer, sentence = judging.find_answer(seen)
    family = model.family
    return ProbeResult(
        model=ProbedModel(
            reference=request.model,
            exported=model.exported,
            digest=model.digest,
            family=family,
            architecture=None if seen.folder is None else seen.folder.architecture,
            task=seen.task,
            parts=seen.parts,
        ),
        covered=seen.covered,
        build=seen.build,
        runs=tuple(seen.runs),
        helps=tuple(prober.helps),
        obstacles=tuple(judging.list_obstacles(seen)),
        knowledge=tuple(f.id for f in ModelKnowledge().about(family)) if family else (),
        recipes=tuple(recipe.name for recipe in recipes.recipes_for(family)) if family else (),
        recipe=None if seen.helped is None else _make_recipe(model, seen, seen.helped),
        skeleton=_make_skeleton(request.model) if seen.inputs_unknown else None,
        answer=answer,
        sentence=sentence,
    )


def _ready() -> tuple[str, ...]:
    """Targets with a real device here; simulated ones have to be named."""
    states = describe_system().list_targets()
    found = dict.fromkeys(state.target for state in states if state.status == "ready")
    return tuple(sorted(found, key=lambda target: target != "cpu"))


def _make_skeleton(word: str) -> InputSkeleton:
    """Input specs to fill in for a model whose inputs are unknown, with the arguments of its class."""
    folder = exported.locate(model_ref.parse(word), weights=False).folder
    try:
        with Worker() as worker:
            what = "asking what the model takes"
            proposed = worker.ask(ProposedInputs, "stages.forward", {"folder": str(folder.path)}, what=what)
    except ModelkitError as error:
        unknown = ProposedInputs(class_name=None, inputs={"INPUT": TO_FILL}, to_fill=("INPUT",), others=())
        return InputSkeleton(proposed=unknown, reason=error.message)
    return InputSkeleton(proposed=proposed, reason=None)


def _make_recipe(model: SupportModel, seen: ProbeFacts, found: Help) -> Recipe:
    """The recipe of a help."""
    return Recipe(
        name=f"{model.family or model.name}-{found.name}",
        families=() if model.family is None else (model.family,),
        tasks=() if seen.task is None else (seen.task,),
        parts=seen.parts,
        export=found.export,
        notes=(found.because,),
    )


class _Prober:
    """Runs the commands of one probe."""

    def __init__(self, request: ProbeRequest, model: SupportModel, folder: Path, on_event: OnEvent) -> None:
        self._request = request
        self._model = model
        self._folder = folder
        self._on_event = on_event
        self._run = Commands(request.model, folder, timeout_s=request.timeout_s)
        self.helps: list[Attempt] = []

    def look(self) -> ProbeFacts:
        """Run everything up to the first help that works."""
        described = self._describe()
        build = self._build("default", ())
        if build.verdict == "PASS":
            seen = ProbeFacts(described, build)
            return replace(seen, runs=list(self._runs("default", seen.parts)))
        helped = None
        if isinstance(described, FolderInspection) and described.inputs is not None:
            helped = self._find_help(described) if build.verdict in ("FAIL", "CLI-BLOCKED") else None
        return ProbeFacts(described, build, (), helped)

    def _describe(self) -> FolderInspection | Inspection:
        run = self._tell_and_run("inspect", ("inspect", "-m", MODEL, "--json"))
        if run.result is None or run.result.get("ok") is not True:
            failure = read(Failure, run.result or {}, strict=False)
            raise make_error(error_of(failure), "the model cannot be inspected")
        if self._model.exported:
            return read(FolderInspection, run.result)
        return read(Inspection, run.result)

    def _build(self, name: str, words: tuple[str, ...]) -> Attempt:
        target = self._request.targets[0]
        words = ("build", "-m", MODEL, "--target", target, *words, "-o", name, "--json")
        return _attempt(f"build {name}", self._tell_and_run(f"build {name}", words))

    def _find_help(self, described: FolderInspection) -> Help | None:
        for number, found in enumerate(judging.list_helps(described, self._model.config)):
            specs = f"{number}-{SPECS_FILE}"
            (self._folder / specs).write_bytes(files.text(found.export.input_specs))
            tried = self._build(found.name, tuple(found.export.words(specs)))
            self.helps.append(tried)
            if tried.verdict == "PASS":
                return found
        return None

    def _runs(self, name: str, parts: tuple[str, ...]) -> Iterator[Attempt]:
        """One run of every part on every target, with inputs that fit it."""
        for part in parts or ("",):
            folder = f"{name}/{part}".rstrip("/")
            inputs = f"{part or 'model'}.npz"
            made = self._tell_and_run("inputs", ("support", "inputs", "-m", folder, "-o", inputs, "--json"))
            for target in self._request.targets:
                what = " ".join(filter(None, ("run", part)))
                if made.exit_code != 0:
                    yield _attempt(what, made, target)
                    continue
                how = ("--sessions", "1", "--iterations", "1", "--warmup", "0", "--input-data", inputs, "--json")
                words = ("perf", "-m", folder, "--target", target, *how)
                yield _attempt(what, self._tell_and_run(f"{what} on {target}", words), target)

    def _tell_and_run(self, what: str, words: tuple[str, ...]) -> CommandRun:
        self._on_event(CommandStarted(what))
        return self._run(words)


@dataclass(frozen=True, kw_only=True)
class _Outcome:
    """The relevant fields of the result of a build, of making inputs, or of a run."""

    error: CommandError = NO_ERROR
    simulated: bool = False
    placement: Placement | None = None


def _attempt(what: str, run: CommandRun, target: str | None = None) -> Attempt:
    """The summary of a command."""
    found = read(_Outcome, run.result or {}, strict=False)
    verdict = verdict_of(run.exit_code, found.error.code)
    passed = verdict == "PASS"
    return Attempt(
        what,
        verdict,
        None if passed else found.error.message or "it gave no result",
        target,
        found.simulated,
        found.placement.nodes if passed and found.placement is not None else {},
    )
