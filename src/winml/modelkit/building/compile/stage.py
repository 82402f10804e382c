"""Compiles models in processes of their own, with the cache in front: each alone first, then together.

Compiled alone, a model shows whether it can be compiled at all without breaking the others, whether it computes
what its source computes, and how large its binary is without sharing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from winml.modelkit.building.compile import parity, table
from winml.modelkit.building.compile.base import CompileJob, CompileTools, file_state
from winml.modelkit.building.compile.refusals import model_refusal
from winml.modelkit.building.compile.report import describe_model
from winml.modelkit.building.compile.result import (
    CompileCost,
    CompileReport,
    ReadContext,
    SourceFacts,
    Validation,
    ValidationRun,
)
from winml.modelkit.building.compile.shared_context import SharedContext
from winml.modelkit.building.events import CompileAction, CompileStep, ValidationStep
from winml.modelkit.building.proof.proof import Proof
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError, ModelkitError, RunFailedError
from winml.modelkit.core.events import OnEvent, ignore
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import read, to_json
from winml.modelkit.ep import catalog, options
from winml.modelkit.store import digest
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import StageEntry, StageKey
from winml.modelkit.worker.client import Worker

R = TypeVar("R")
Prove = Callable[["CompileInput", SourceFacts, StageEntry], Proof]
"""Proves a model that was compiled alone, from what was read of its source; raises when it fails."""


@dataclass(frozen=True)
class Settings:
    """How models are compiled."""

    target: Target
    section: CompileSection
    """With provider options that were checked."""
    libraries: Mapping[str, str] | None = None
    """Versions the result depends on; None when one of them is unknown, and nothing can be taken from the cache."""
    python: str | None = None
    """Interpreter of the environment that has the EP; None for this one."""
    distribution: str | None = None
    tools: CompileTools = field(default_factory=CompileTools)
    validate: bool = True
    reuse: bool = True
    """Whether results are taken from the cache."""
    timeout_s: float | None = None


@dataclass(frozen=True)
class CompileInput:
    """A model and the name of the file it becomes."""

    path: Path
    output: str


@dataclass(frozen=True)
class _Source:
    """A model whose file was read."""

    model: CompileInput
    facts: SourceFacts

    def check_unchanged(self) -> None:
        """Raise when a file was written to since it was hashed: what was compiled may not be what the key says."""
        for name, state in self.facts.states.items():
            if file_state(Path(name)) != state:
                error = DataError(f"`{name}` changed while it was being compiled", hint="run the command again")
                raise _ModelFailed(self, error)


@dataclass(frozen=True)
class Made:
    """A compiled model: what is known of it, and whether that came from the cache."""

    report: CompileReport
    cached: bool


@dataclass(frozen=True)
class CompileOutcome:
    """The results of all models, in the order they were given."""

    made: Mapping[CompileInput, Made]
    errors: Mapping[CompileInput, ModelkitError]
    alone: Mapping[CompileInput, Made]
    """What models that share a context are when each is compiled on its own."""
    files: Mapping[str, str]
    """Digests of all files of the compiled models, by name."""
    proofs: Mapping[CompileInput, Proof] = field(default_factory=dict)
    """What was proven of each model compiled alone, where that was requested."""


class _ModelFailed(Exception):
    """One model of a group cannot be compiled."""

    def __init__(self, source: _Source, error: ModelkitError) -> None:
        super().__init__(error.message)
        self.source = source
        self.error = error


class _Reader:
    """Reads model files in a process, restarted when a file crashed it."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._worker: Worker | None = None

    def ask(self, form: type[R], operation: str, path: Path) -> R:
        if self._worker is None or not self._worker.alive:
            self.close()
            self._worker = Worker(preload=("winml.modelkit.building.compile.reading",))
        return self._worker.ask(
            form, operation, {"model": str(path)}, timeout_s=self._timeout_s, what=f"reading `{path.name}`"
        )

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def __enter__(self) -> _Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class CompileStage:
    """Compiles models with one set of settings."""

    def __init__(
        self,
        settings: Settings,
        *,
        cache: Cache,
        start: Callable[[], Worker] | None = None,
        on_event: OnEvent = ignore,
        prove: Prove | None = None,
    ) -> None:
        """`start` gives a process that has the EP; by default one of the settings' environment."""
        self._prove = prove
        self._settings = settings
        self._start = start or self._new_worker
        self._cache = cache
        self._on_event = on_event
        self._info = catalog.BY_NAME[settings.target.ep]
        self._done, self._total = 0, 1

    def _tell(self, action: CompileAction, source: _Source, *, together: bool = False) -> None:
        self._on_event(CompileStep(action, source.model.path.name, self._done, self._total, together))

    def run(self, models: Sequence[CompileInput]) -> CompileOutcome:
        """Compile every model; several of them into one context."""
        errors: dict[CompileInput, ModelkitError] = {}
        proofs: dict[CompileInput, Proof] = {}
        self._total = len(models) if len(models) == 1 else 2 * len(models)
        with _Reader(self._settings.timeout_s) as reader:
            sources = [s for model in models if (s := self._source(model, reader, errors)) is not None]
            alone: dict[CompileInput, tuple[StageEntry, bool]] = {}
            for number, source in enumerate(sources):
                self._done = number
                try:
                    alone[source.model] = self._group([source], reader)
                    if self._prove is not None:
                        self._tell("proving", source)
                        proofs[source.model] = self._prove(source.model, source.facts, alone[source.model][0])
                except _ModelFailed as failed:
                    errors[source.model] = failed.error
                except ModelkitError as error:
                    errors[source.model] = error
            good = [s for s in sources if s.model not in errors]
            together = self._together(good, reader, errors) if len(models) > 1 else None
        if together is None:
            left = [s.model for s in good if s.model not in errors]
            made = {model: _load_made(*alone[model]) for model in left}
            files = {name: d for model in left for name, d in alone[model][0].files.items()}
            return CompileOutcome(made, errors, {}, files, proofs)
        group, entry, cached = together
        reports = zip(group, read_reports(entry), strict=True)
        return CompileOutcome(
            made={s.model: Made(report, cached) for s, report in reports},
            errors=errors,
            alone={s.model: _load_made(*alone[s.model]) for s in group},
            files=entry.files,
            proofs=proofs,
        )

    def _source(
        self, model: CompileInput, reader: _Reader, errors: dict[CompileInput, ModelkitError]
    ) -> _Source | None:
        """The model as its file shows it; None when it is refused, with the reason in `errors`."""
        try:
            facts = reader.ask(SourceFacts, "compile.source", model.path)
        except ModelkitError as error:
            errors[model] = error
            return None
        refused = model_refusal(model.path.name, facts, self._info, self._settings.target.device)
        if refused is not None:
            errors[model] = refused
            return None
        return _Source(model, facts)

    def _together(
        self, good: list[_Source], reader: _Reader, errors: dict[CompileInput, ModelkitError]
    ) -> tuple[list[_Source], StageEntry, bool] | None:
        """The models that can share a context, compiled into one; None when fewer than two are left.

        A model that fails here although it compiles alone is skipped, and the others are compiled again from the start:
        only the last model writes the binary, and only the model that is last may end the sharing.
        """
        left = list(good)
        while len(left) > 1:
            try:
                entry, cached = self._group(left, reader)
            except _ModelFailed as failed:
                errors[failed.source.model] = failed.error
                left.remove(failed.source)
            else:
                return left, entry, cached
        return None

    def _group(self, group: list[_Source], reader: _Reader) -> tuple[StageEntry, bool]:
        """Models compiled in one process, and whether they came from the cache."""
        key = self._key(group)
        found = self._cache.stages.find(key) if self._settings.reuse and self._settings.libraries else None
        # A stored result may have been compiled without being validated.
        if found is not None and (not self._settings.validate or all(r.validation for r in read_reports(found))):
            return found, True
        return self._make(key, group, found, reader), found is not None

    def _make(self, key: StageKey, group: list[_Source], found: StageEntry | None, reader: _Reader) -> StageEntry:
        """Compile models, or take what was stored, and validate them where that is requested."""
        with self._cache.work_folder() as folder:
            if found is None:
                reports = self._compile(group, folder, reader)
            else:
                reports = list(read_reports(found))
                for name, stored in found.files.items():
                    self._cache.objects.link_out(stored, folder / name)
            if self._settings.validate:
                shared = len(group) > 1
                reports = [
                    replace(report, validation=self._validate(source, folder, shared=shared))
                    for source, report in zip(group, reports, strict=True)
                ]
            files = {path.name: path for path in sorted(folder.iterdir())}
            return self._cache.stages.store(key, files, {"models": to_json(reports)})

    def _key(self, group: list[_Source]) -> StageKey:
        digests = [s.facts.digest for s in group]
        section = self._settings.section
        complete, _ = options.complete(self._settings.target, section.provider_options)
        return StageKey(
            stage="compile",
            stage_version=table.STAGE_VERSION,
            section={
                "ep": self._info.name,
                "compiler": section.compiler,
                "embed": section.embed,
                "provider_options": complete,
                # An EP names the binary after the model's file, and writes that name into it.
                "outputs": [s.model.output for s in group],
            },
            parent=digests[0] if len(digests) == 1 else digest.of_json(digests),
            libraries=self._settings.libraries or {},
        )

    def _new_worker(self) -> Worker:
        return Worker(preload=("winml.modelkit.building.compile.running",), python=self._settings.python)

    def _side_files(self) -> dict[str, str]:
        """Additional files the EP has to write, with the option for their folder where the user did not set it."""
        given = self._settings.section.provider_options
        wanted = {name: folder for option, (folder, name) in self._info.side_files.items() if given.get(option) == "1"}
        return {name: folder for name, folder in wanted.items() if folder not in given}

    def _job(self, source: _Source, folder: Path, *, alone: bool = False) -> CompileJob:
        used = self._settings
        # Models that share a context would overwrite each other's.
        folders = dict.fromkeys(self._side_files().values(), str(folder)) if alone else {}
        return CompileJob(
            model=source.model.path,
            output=folder / source.model.output,
            target=used.target,
            section=replace(used.section, provider_options={**used.section.provider_options, **folders}),
            distribution=used.distribution,
            tools=used.tools,
        )

    def _compile(self, group: list[_Source], folder: Path, reader: _Reader) -> list[CompileReport]:
        """Compile models into `folder` in one process; what is known of each, read from the files."""
        costs = []
        with SharedContext(self._start, models=len(group), timeout_s=self._settings.timeout_s) as context:
            for number, source in enumerate(group):
                if len(group) > 1:
                    self._done = self._total // 2 + number
                self._tell("compiling", source, together=len(group) > 1)
                try:
                    costs.append(context.compile(self._job(source, folder, alone=len(group) == 1)))
                except ModelkitError as error:
                    raise _ModelFailed(source, error) from error
                source.check_unchanged()
        return [self._read(s, folder, cost, reader) for s, cost in zip(group, costs, strict=True)]

    def _read(self, source: _Source, folder: Path, cost: CompileCost, reader: _Reader) -> CompileReport:
        try:
            found = reader.ask(ReadContext, "compile.compiled", folder / source.model.output)
            compiled = describe_model(source.model.path.name, source.facts, found, cost, self._settings.section)
        except ModelkitError as error:
            raise _ModelFailed(source, error) from error
        lacking = [
            f"{name} was requested but not written" for name in self._side_files() if not (folder / name).is_file()
        ]
        return CompileReport(
            compiled=replace(compiled, warnings=(*compiled.warnings, *lacking)),
            validation=None,
        )

    def _validate(self, source: _Source, folder: Path, *, shared: bool) -> Validation:
        """Whether it computes the same; a model that does not has failed."""
        name = source.model.path.name
        self._tell("validating", source)
        used = self._settings
        elsewhere = parity.elsewhere(used.target, used.section, shared=shared)
        run = self._run_both(source, folder, elsewhere=elsewhere is not None)
        try:
            return parity.check(name, run, on=str(used.target), elsewhere=elsewhere)
        except ModelkitError as error:
            raise _ModelFailed(source, error) from error

    def _run_both(self, source: _Source, folder: Path, *, elsewhere: bool) -> ValidationRun:
        """How far the compiled model is from its source, or why that is unknown on this machine."""
        steps: list[str] = []
        try:
            with self._start() as worker:
                run = worker.ask(
                    ValidationRun,
                    "compile.validate",
                    self._job(source, folder),
                    timeout_s=self._settings.timeout_s,
                    events=ValidationStep,
                    on_event=lambda event: steps.append(event.at),
                    what=f"validating `{source.model.path.name}`",
                )
        except RunFailedError as error:
            if not parity.is_excused(steps, elsewhere=elsewhere):
                raise _ModelFailed(source, error) from error
            return ValidationRun(opened=False, reason=f"{error.message} while {parity.STEPS[steps[-1]]}")
        # The folder no longer exists when the reason is read.
        return replace(run, reason=(run.reason or "").replace(f"{folder}{os.sep}", "") or None)


def read_reports(entry: StageEntry) -> tuple[CompileReport, ...]:
    """What is known of the models that were compiled together."""
    return read(tuple[CompileReport, ...], entry.info["models"], "models", strict=False)


def _load_made(entry: StageEntry, cached: bool) -> Made:
    return Made(read_reports(entry)[0], cached)
