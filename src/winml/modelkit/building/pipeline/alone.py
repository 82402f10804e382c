"""A stage alone, for a file of the user's: what a build stored is not run again, and a build finds what this stores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from winml.modelkit.building.optimize.result import WrittenFile
from winml.modelkit.building.pipeline.artifact import Artifact, Source
from winml.modelkit.building.pipeline.run import Pipeline, StageRun, Step
from winml.modelkit.building.pipeline.steps import find_source
from winml.modelkit.core.errors import WorkerAnswerError
from winml.modelkit.core.events import OnEvent
from winml.modelkit.core.values import read
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

R = TypeVar("R")


class StageAlone:
    """Runs single steps on a model file, with the cache of builds."""

    def __init__(
        self, model: Path, worker: Worker, *, rebuild: bool, timeout_s: float | None, on_event: OnEvent
    ) -> None:
        """Hash the model; `worker` reads it and runs the first step that is not in the cache."""
        self._cache = Cache()
        self._source = find_source(model, worker)
        self._warm: Worker | None = worker
        self._rebuild, self._timeout_s, self._on_event = rebuild, timeout_s, on_event

    def run(self, form: type[R], step: Step) -> tuple[R, StageRun]:
        """The report of a step and how it came about."""
        done = self._run(step, rebuild=self._rebuild)
        try:
            return read(form, done.report, step.stage.name, error=WorkerAnswerError), done
        except WorkerAnswerError:
            if not done.hit:
                raise
        # The report in the cache is of another version: a build only passes it on, so it does not tell.
        done = self._run(step, rebuild=True)
        return read(form, done.report, step.stage.name, error=WorkerAnswerError), done

    def copy(self, done: StageRun, output: Path) -> tuple[WrittenFile, ...]:
        """Write the model of a step to `output` and return its files.

        Copies, not links as in a build folder: the file is the user's to change.
        """
        files = done.artifact.files
        if len(files) == 1:
            self._cache.objects.copy_out(files[done.artifact.main], output)
            written: tuple[Path, ...] = (output,)
        else:
            with self._cache.work_folder() as folder, Worker() as worker:
                for name, digest in files.items():
                    self._cache.objects.link_out(digest, folder / name)
                args = {"path": folder / done.artifact.main, "output": output}
                written = worker.ask(tuple[Path, ...], "graph.save_as", args, what=f"writing `{output.name}`")
        return tuple(WrittenFile(path=path.name, bytes=path.stat().st_size) for path in written)

    def _run(self, step: Step, *, rebuild: bool) -> StageRun:
        return Pipeline(
            self._choose_source(step),
            cache=self._cache,
            start=self._start,
            on_event=self._on_event,
            rebuild=rebuild,
            timeout_s=self._timeout_s,
        ).run(step)

    def _start(self) -> Worker:
        worker, self._warm = self._warm or Worker(), None
        return worker

    def _choose_source(self, step: Step) -> Source:
        """The model by the name that a build has for it, where a stage made it; keys contain names of files."""
        path, files = self._source.path, self._source.artifact.files
        if len(files) > 1:
            return self._source
        made = self._cache.stages.find_made(files[self._source.artifact.main])
        artifacts = [Artifact(main, entry.files) for entry in made for main in entry.files]
        for artifact in (self._source.artifact, *artifacts):
            if self._cache.stages.find(step.key(artifact.digest)) is not None:
                break
        else:
            artifact = artifacts[0] if artifacts else self._source.artifact
        return replace(self._source, files={artifact.main: path}, artifact=artifact)
