"""The commands of a contribution: a pure function of its subject, so that a reviewer knows what must have been run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.recipe import Recipe
from winml.modelkit.core.support import GOALS, Goal
from winml.modelkit.core.values import AtLeast, AtMost, Pattern, Text
from winml.modelkit.support.review.evidence import MODEL, below
from winml.modelkit.support.review.results import Purpose

WHOLE = "model"
"""The part name of a model that is not split."""
RECIPE_FILE = "recipe.json"
SPECS_FILE = "input-specs.json"
DEFAULT = "artifacts/default"
BUILT = "artifacts/recipe"
EXPORTED = "artifacts/export"
_WRITING = ("-o", "--save-outputs")
"""Options that name what a command writes."""
SESSIONS, ITERATIONS, SAMPLES = 3, 30, 4


@dataclass(frozen=True, kw_only=True)
class MetricData:
    """Labelled data to evaluate a model with."""

    file: Annotated[str, Pattern(r"data/(?!\.{1,2}$)[^/\\]+", "a file in `data`")]
    """Path in the contribution."""
    task: Text | None
    min_metric: Annotated[float, AtLeast(-1), AtMost(1)] | None


@dataclass(frozen=True)
class Subject:
    """The subject of a contribution."""

    exported: bool
    """Whether the model comes from PyTorch."""
    parts: tuple[str, ...]
    """Parts that are built separately; empty: the whole model."""
    recipe: Recipe | None
    targets: tuple[str, ...]
    goal: Goal
    metric: MetricData | None = None

    @property
    def part_names(self) -> tuple[str, ...]:
        return self.parts or (WHOLE,)


@dataclass(frozen=True)
class Step:
    """One command."""

    id: str
    purpose: Purpose
    rung: Goal | None
    """None: a gate before the ladder."""
    part: str
    target: str
    words: tuple[str, ...]


def inspect_step(name: str, part: str) -> str:
    """The command that inspects the default's or the recipe's artifact of a part."""
    return _step_id("inspect", name, part)


def input_step(part: str) -> str:
    """The command that makes the inputs for measuring a part."""
    return _step_id("input", part)


def compare_step(part: str) -> str:
    """The command that compares the time of a part with the default's."""
    return _step_id("compare", part)


def _folder(root: str, subject: Subject, part: str) -> str:
    return f"{root}/{part}" if subject.parts else root


def _step_id(*words: str) -> str:
    return "-".join(word.replace("/", "_") for word in words if word != WHOLE)


def _recipe_words(recipe: Recipe | None) -> tuple[str, ...]:
    return () if recipe is None else (*recipe.export.words(SPECS_FILE), *recipe.build.words())


def make_plan(subject: Subject) -> tuple[Step, ...]:
    """Every command up to the goal, in order."""
    rungs = GOALS[: GOALS.index(subject.goal) + 1]
    first = subject.targets[0]
    words = ("build", "-m", MODEL, "--target", first, *_recipe_words(subject.recipe), "-o", BUILT, "--json")
    build = Step("build-recipe", "build", "L0", WHOLE, first, words)
    found = [*_gate_steps(subject), build, *_inspect_steps(subject, "recipe", BUILT, "L0")]
    makers = {"L1": _perf_steps, "L2": _parity_steps, "L3": _metric_steps}
    for rung in rungs[1:]:
        found += makers[rung](subject)
    return tuple(found)


def _gate_steps(subject: Subject) -> Iterator[Step]:
    """The commands without the recipe."""
    first = subject.targets[0]
    targets = tuple(word for target in subject.targets for word in ("--target", target))
    yield Step("probe", "probe", None, WHOLE, first, ("support", "probe", "-m", MODEL, *targets, "--json"))
    yield from _config_steps(subject, "default", ())
    words = ("build", "-m", MODEL, "--target", first, "-o", DEFAULT, "--json")
    yield Step("build-default", "build", None, WHOLE, first, words)
    yield from _inspect_steps(subject, "default", DEFAULT, None)
    if subject.recipe is not None:
        yield from _config_steps(subject, "recipe", _recipe_words(subject.recipe))


def _config_steps(subject: Subject, name: str, given: tuple[str, ...]) -> Iterator[Step]:
    for part in subject.part_names:
        of_part = ("--part", part) if subject.parts else ()
        words = ("config", "-m", MODEL, "--target", subject.targets[0], *of_part, *given, "--json")
        yield Step(_step_id("config", name, part), "config", None, part, subject.targets[0], words)


def _inspect_steps(subject: Subject, name: str, root: str, rung: Goal | None) -> Iterator[Step]:
    for part in subject.part_names:
        words = ("inspect", "-m", _folder(root, subject, part), "--json")
        yield Step(inspect_step(name, part), "inspect", rung, part, subject.targets[0], words)


def _input_step(subject: Subject, part: str, rung: Goal, samples: int | None) -> Step:
    given = () if subject.recipe is None else tuple(subject.recipe.inputs.words())
    name, kind = ("input", ()) if samples is None else ("inputs", ("--samples", str(samples)))
    folder = _folder(BUILT, subject, part)
    words = ("support", "inputs", "-m", folder, *given, *kind, "-o", input_file(part, samples), "--json")
    return Step(_step_id(name, part), "inputs", rung, part, subject.targets[0], words)


def input_file(part: str, samples: int | None) -> str:
    """The file with the inputs of a part: one set, or several as rows."""
    return f"inputs/{part}.npz" if samples is None else f"inputs/{part}-samples.npz"


def output_file(part: str) -> str:
    """The file with the outputs of a part and of its reference."""
    return f"outputs/{part}.npz"


def _perf_steps(subject: Subject) -> Iterator[Step]:
    for part in subject.part_names:
        yield _input_step(subject, part, "L1", None)
        for target in subject.targets:
            how = ("--sessions", str(SESSIONS), "--iterations", str(ITERATIONS))
            given = ("--input-data", input_file(part, None), "--json")
            words = ("perf", "-m", _folder(BUILT, subject, part), "--target", target, *how, *given)
            yield Step(_step_id("perf", part, target), "perf", "L1", part, target, words)
    if subject.recipe is not None:
        yield from _compare_steps(subject)


def _compare_steps(subject: Subject) -> Iterator[Step]:
    """Comparisons of the recipe's artifacts with the default's; run only where nothing else shows an effect.

    Without A/A rounds, so that the verdict follows from the rounds alone. Whether outputs agree is checked by L2.
    """
    first = subject.targets[0]
    for part in subject.part_names:
        arms = (_folder(DEFAULT, subject, part), _folder(BUILT, subject, part))
        how = ("--no-calibration", "--allow-different", "--input-data", input_file(part, None), "--json")
        yield Step(compare_step(part), "compare", None, part, first, ("compare", *arms, "--target", first, *how))


def _parity_steps(subject: Subject) -> Iterator[Step]:
    """The export against PyTorch, then what was built against the export; an ONNX model is its own reference."""
    first = subject.targets[0]
    if subject.exported:
        given = () if subject.recipe is None else tuple(subject.recipe.export.words(SPECS_FILE))
        words: tuple[str, ...] = ("export", "-m", MODEL, *given, "-o", EXPORTED, "--json")
        yield Step("export", "export", "L2", WHOLE, first, words)
    for part in subject.part_names:
        yield _input_step(subject, part, "L2", SAMPLES)
        folder = _folder(BUILT, subject, part)
        reference = f"{folder}/export.onnx" if subject.exported else MODEL
        against = ("--reference", reference, "--reference-target", "cpu")
        kept = ("--save-outputs", output_file(part))
        given = ("--data", input_file(part, SAMPLES), "--target", first, *kept, "--json")
        words = ("eval", "-m", folder, "--task", "outputs", *against, *given)
        yield Step(_step_id("parity", part), "parity", "L2", part, first, words)


def _metric_steps(subject: Subject) -> Iterator[Step]:
    metric = subject.metric
    if metric is None or subject.parts:
        return
    task = () if metric.task is None else ("--task", metric.task)
    limit = () if metric.min_metric is None else ("--min-metric", str(metric.min_metric))
    words = ("eval", "-m", BUILT, "--data", metric.file, *task, *limit, "--target", subject.targets[0], "--json")
    yield Step("metric", "metric", "L3", WHOLE, subject.targets[0], words)


def output_places(step: Step) -> list[str]:
    """The output paths of a command."""
    return [step.words[i + 1] for i, word in enumerate(step.words) if word in _WRITING]


def list_written(folder: Path, step: Step) -> Iterator[str]:
    """Files of a contribution's folder that a command wrote."""
    for place in output_places(step):
        if (folder / place).is_file():
            yield place
        elif (folder / place).is_dir():
            yield from (f"{place}/{path}" for path in below(folder / place))
