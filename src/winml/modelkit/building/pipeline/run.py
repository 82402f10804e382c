"""Runs the stages of a build one after another; what the cache has is not run again.

A stage that ends well is stored at once, so that an interrupted build resumes after it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from winml.modelkit.building.events import StageDone, StageStarted
from winml.modelkit.building.manifest import StageRecord
from winml.modelkit.building.pipeline.artifact import Artifact, Source
from winml.modelkit.building.pipeline.stage import StageWords, run_stage, words_in_build
from winml.modelkit.building.pipeline.table import StageInfo
from winml.modelkit.building.result import BuildStage
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.events import OnEvent
from winml.modelkit.store.cache import Cache
from winml.modelkit.store.stage_cache import CacheAnswer, Explanation, StageEntry, StageKey
from winml.modelkit.worker.client import Worker

R = TypeVar("R")
REBUILD = Explanation(False, (), "a rebuild was requested")


@dataclass(frozen=True)
class Step:
    """A stage with what its result depends on, and what it needs besides."""

    stage: StageInfo
    section: Mapping[str, Any]
    """The resolved section; part of the key."""
    libraries: Mapping[str, str]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Paths and verbosity; changes nothing in the result."""
    calibration: str | None = None
    """Digest of the calibration data."""
    words: StageWords | None = None
    """What errors say; None is what they say in a build."""

    def key(self, parent: str) -> StageKey:
        return StageKey(
            stage=self.stage.name,
            stage_version=self.stage.version,
            section=self.section,
            parent=parent,
            libraries=self.libraries,
            calibration=self.calibration,
        )


@dataclass(frozen=True)
class StageRun:
    """The outcome of a step."""

    step: Step
    key: StageKey
    artifact: Artifact
    report: Mapping[str, Any]
    explanation: Explanation
    seconds: float
    """How long the stage took when it ran, which may have been in an earlier build."""

    @property
    def hit(self) -> bool:
        return self.explanation.hit

    @property
    def cache(self) -> CacheAnswer:
        return "hit" if self.hit else "miss"

    def summarize(self) -> BuildStage:
        """The stage as the result of a build has it."""
        return BuildStage(
            stage=self.step.stage.name,
            cache=self.cache,
            reason=self.explanation.reason,
            file=self.artifact.main,
            digest=self.artifact.digest,
            seconds=self.seconds,
            changes=self.explanation.changes,
        )

    def record(self) -> StageRecord:
        """The stage as the manifest of a build has it."""
        return StageRecord(
            stage=self.step.stage.name,
            cache=self.cache,
            reason=self.explanation.reason,
            stage_key=self.key.digest,
            parent=self.key.parent or "",
            artifact=self.artifact,
            seconds=self.seconds,
            version=self.step.stage.version,
            libraries=self.step.libraries,
            calibration=self.step.calibration,
            report=self.report,
        )


class Pipeline:
    """Runs steps; the result of each is the parent of the next."""

    def __init__(
        self,
        source: Source,
        *,
        cache: Cache,
        start: Callable[[], Worker],
        on_event: OnEvent,
        rebuild: bool = False,
        timeout_s: float | None = None,
    ) -> None:
        self._source = source
        self._cache = cache
        self._start = start
        self.tell = on_event
        self.rebuild = rebuild
        self._timeout_s = timeout_s
        self.artifact = source.artifact
        """The result so far."""
        self.stage: str | None = None
        """The stage that runs or ran last."""
        self.runs: list[StageRun] = []
        self._linked: dict[Path, str] = {}
        """Digests of the objects that lie in work folders."""

    def run(self, step: Step) -> StageRun:
        """The result of a stage on what there is so far, from the cache or from a worker of its own."""
        key = step.key(self.artifact.digest)
        self.stage = step.stage.name
        entry = self._find(key)
        if entry is not None:
            explanation = Explanation(True, (), "the same key was stored before")
        else:
            explanation = REBUILD if self.rebuild else self._cache.stages.explain(key)
        self.tell(StageStarted(step.stage.name, explanation.hit))
        if entry is None:
            entry, explanation = self._get_or_execute(step, key, explanation)
        done = StageRun(
            step=step,
            key=key,
            artifact=Artifact(step.stage.file, entry.files),
            report=entry.info["report"],
            explanation=explanation,
            seconds=entry.info["seconds"],
        )
        self.finish(done)
        return done

    def finish(self, done: StageRun) -> None:
        """Report the end of a stage and continue from it."""
        self.adopt(done)
        self.tell(StageDone(done.step.stage.name, done.hit, done.seconds))

    def adopt(self, done: StageRun) -> None:
        """Continue from a stage whose end was reported already."""
        self.artifact = done.artifact
        self.runs.append(done)

    def remember(
        self, key: StageKey, load: Callable[[StageEntry], R], make: Callable[[Path], tuple[R, Mapping[str, Path]]]
    ) -> R:
        """What is known of the result so far besides it: from the cache, or made in a folder.

        `make` names the files to keep; none where the answer may be another one the next time.
        """
        entry = self._find(key)
        started, hit = time.monotonic(), entry is not None
        self.tell(StageStarted(key.stage, hit))
        if entry is not None:
            found = load(entry)
        else:
            with self._cache.stages.computing(key), self.work_folder() as folder:
                entry = self._find(key)  # another process may already have run it
                if entry is not None:
                    found = load(entry)
                else:
                    found, files = make(folder)
                    if files:
                        self._cache.stages.store(key, files, {})
        self.tell(StageDone(key.stage, hit, time.monotonic() - started))
        return found

    def _find(self, key: StageKey) -> StageEntry | None:
        return None if self.rebuild else self._cache.stages.find(key)

    def _get_or_execute(self, step: Step, key: StageKey, explanation: Explanation) -> tuple[StageEntry, Explanation]:
        """The result of a stage that is not in the cache: from this process, or another one already running it."""
        with self._cache.stages.computing(key):
            entry = self._find(key)
            if entry is not None:
                return entry, Explanation(True, (), "another process stored it just now")
            return self._execute(step, key), explanation

    def _execute(self, step: Step, key: StageKey) -> StageEntry:
        with self.work_folder() as folder:
            output = folder / "out" / step.stage.file
            output.parent.mkdir()
            model = self.materialize(folder / "in")
            args = {"model": str(model), "output": str(output), "section": dict(step.section), **step.arguments}
            started = time.monotonic()
            report = run_stage(
                step.stage,
                args,
                start=self._start,
                timeout_s=self._timeout_s,
                on_event=self.tell,
                words=step.words or words_in_build(step.stage),
            )
            seconds = time.monotonic() - started
            self._source.check_unchanged()
            found = sorted(path for path in output.parent.rglob("*") if path.is_file())
            files = {path.relative_to(output.parent).as_posix(): path for path in found}
            return self._cache.stages.store(key, files, {"report": report, "seconds": seconds}, move=True)

    @contextlib.contextmanager
    def work_folder(self) -> Iterator[Path]:
        """A folder of the cache; objects that were linked into it need not be hashed again when it is gone."""
        with self._cache.work_folder() as folder:
            try:
                yield folder
            finally:
                for path in [path for path in self._linked if path.is_relative_to(folder)]:
                    self._cache.objects.remove_link(self._linked.pop(path), path)

    def materialize(self, folder: Path, artifact: Artifact | None = None) -> Path:
        """The path of an artifact, or of what there is so far; objects are linked into `folder`, a source stays."""
        artifact = artifact or self.artifact
        if artifact is self._source.artifact:
            return self._source.path
        for name, digest in artifact.files.items():
            self._cache.objects.link_out(digest, folder / name)
            self._linked[folder / name] = digest
        return folder / artifact.main
