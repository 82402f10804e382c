"""`winml support probe`: what happens to a model without any help, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from winml.modelkit.building import exported
from winml.modelkit.building.export.forward import TO_FILL
from winml.modelkit.core import model_ref, sections
from winml.modelkit.core.errors import ModelkitError
from winml.modelkit.core.recipe import SCHEMA as RECIPE_SCHEMA
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.ep.sys_command import describe_system
from winml.modelkit.ep.targets import parse_target
from winml.modelkit.knowledge import files, recipes
from winml.modelkit.knowledge.models import ModelKnowledge
from winml.modelkit.support import obstacles as judging
from winml.modelkit.support.commands import Commands, failure
from winml.modelkit.support.model import SupportModel, read_model
from winml.modelkit.support.obstacles import Help, Seen, Tried
from winml.modelkit.support.review.evidence import MODEL, CommandRun, error_of, verdict_of
from winml.modelkit.support.review.plan import SPECS_FILE
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.scratch import ScratchFolder

SCHEMA = "winml/support/1"
OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class ProbeRequest:
    """Everything the user decided."""

    model: str
    targets: tuple[str, ...] = ()
    """Empty: every device that is ready here, the CPU first."""
    timeout_s: float | None = None


def probe(request: ProbeRequest, on_event: OnEvent) -> dict[str, Any]:
    """Inspect, build and run the model as it is, and say what it needs."""
    for target in request.targets:
        parse_target(target)
    model = read_model(request.model)
    if not request.targets:
        request = replace(request, targets=_ready())
    with ScratchFolder("winml-probe-") as folder:
        prober = _Prober(request, model, folder, on_event)
        seen = prober.seen()
    answer, sentence = judging.answer(seen)
    return {
        "schema": SCHEMA,
        "ok": True,
        "action": "probe",
        "model": {
            "reference": request.model,
            "exported": model.exported,
            "digest": model.digest,
            "family": model.family,
            "architecture": seen.described.get("architecture"),
            "task": seen.task,
            "parts": list(seen.parts),
        },
        "covered": seen.covered,
        "build": seen.build.to_json(),
        "runs": [tried.to_json() for tried in seen.runs],
        "helps": [tried.to_json() for tried in prober.helps],
        "obstacles": [sections.plain(obstacle) for obstacle in judging.obstacles(seen)],
        "knowledge": [f.id for f in ModelKnowledge().about(model.family)] if model.family else [],
        "recipes": [recipe.name for recipe in recipes.for_family(model.family)] if model.family else [],
        "recipe": None if seen.helped is None else _recipe(model, seen, seen.helped).to_json(),
        "skeleton": _skeleton(request.model) if seen.inputs_unknown else None,
        "answer": answer,
        "sentence": sentence,
    }


def _ready() -> tuple[str, ...]:
    """Targets with a real device here; simulated ones have to be named."""
    states = describe_system().installed_targets()
    found = dict.fromkeys(state.target for state in states if state.status == "ready")
    return tuple(sorted(found, key=lambda target: target != "cpu"))


def _skeleton(word: str) -> dict[str, Any]:
    """Input specs to fill in for a model whose inputs nobody has written down, with what its class says it takes."""
    folder = exported.locate(model_ref.parse(word), weights=False).folder
    try:
        with Worker() as worker:
            asked = worker.call("stages.forward", {"folder": str(folder.path)}, what="asking what the model takes")
    except ModelkitError as error:
        unknown = {"class": None, "inputs": {"INPUT": dict(TO_FILL)}, "to_fill": ["INPUT"], "others": []}
        return {**unknown, "reason": error.message}
    return {**asked, "reason": None}


def _recipe(model: SupportModel, seen: Seen, found: Help) -> Recipe:
    """The recipe that a help comes to."""
    return Recipe(
        schema=RECIPE_SCHEMA,
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
        self.helps: list[Tried] = []

    def seen(self) -> Seen:
        """Everything up to the first help that works."""
        described = self._described()
        build = self._built("default", ())
        if build.verdict == "PASS":
            runs = list(self._runs("default", [part["part"] for part in described.get("parts", ())]))
            return Seen(self._model.exported, described, build, runs)
        known = self._model.exported and described.get("task") is not None
        helped = self._helped(described) if known and build.verdict in ("FAIL", "CLI-BLOCKED") else None
        return Seen(self._model.exported, described, build, (), helped)

    def _described(self) -> dict[str, Any]:
        run = self._told("inspect", ("inspect", "-m", MODEL, "--json"))
        if run.result is None or not run.result.get("ok"):
            raise failure(run.result, "the model cannot be inspected")
        return run.result

    def _built(self, name: str, words: tuple[str, ...]) -> Tried:
        target = self._request.targets[0]
        run = self._told(f"build {name}", ("build", "-m", MODEL, "--target", target, *words, "-o", name, "--json"))
        return _tried(f"build {name}", run)

    def _helped(self, described: dict[str, Any]) -> Help | None:
        for number, found in enumerate(judging.helps(described, self._model.config)):
            specs = f"{number}-{SPECS_FILE}"
            (self._folder / specs).write_bytes(files.text(found.export.input_specs))
            tried = self._built(found.name, tuple(found.export.words(specs)))
            self.helps.append(tried)
            if tried.verdict == "PASS":
                return found
        return None

    def _runs(self, name: str, parts: list[str]) -> Iterator[Tried]:
        """One run of every part on every target, with inputs that fit it."""
        for part in parts or [""]:
            folder = f"{name}/{part}".rstrip("/")
            inputs = f"{part or 'model'}.npz"
            made = self._told("inputs", ("support", "inputs", "-m", folder, "-o", inputs, "--json"))
            for target in self._request.targets:
                what = " ".join(filter(None, ("run", part)))
                if made.exit_code != 0:
                    yield _tried(what, made, target)
                    continue
                how = ("--sessions", "1", "--iterations", "1", "--warmup", "0", "--input-data", inputs, "--json")
                words = ("perf", "-m", folder, "--target", target, *how)
                yield _tried(what, self._told(f"{what} on {target}", words), target)

    def _told(self, what: str, words: tuple[str, ...]) -> CommandRun:
        self._on_event({"event": "command", "what": what})
        return self._run(words)


def _tried(what: str, run: CommandRun, target: str | None = None) -> Tried:
    error = error_of(run.result)
    verdict = verdict_of(run.exit_code, error.get("code"))
    result = run.result or {}
    message = None if verdict == "PASS" else str(error.get("message") or "it gave no result")
    nodes = (result.get("placement") or {}).get("nodes", {}) if verdict == "PASS" else {}
    return Tried(what, verdict, message, target, bool(result.get("simulated", False)), nodes)
