"""Models alone and together, in real processes on the real EP."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import model_zoo
from winml.modelkit.building.compile.stage import CompileInput, CompileOutcome, CompileStage, Settings
from winml.modelkit.building.events import CompileStep
from winml.modelkit.core.config import CompileSection
from winml.modelkit.core.errors import WorkerCrashed
from winml.modelkit.core.target import Target
from winml.modelkit.store.cache import Cache
from winml.modelkit.worker.client import Worker

pytestmark = pytest.mark.qnn
NPU = Target("qnn", "npu", simulated=True)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return Cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[CompileInput]:
    """One net at three input sizes."""
    folder = tmp_path_factory.mktemp("nets")
    sizes = {name: 16 + 8 * i for i, name in enumerate("abc")}
    return [
        CompileInput(
            model_zoo.saved(model_zoo.conv_net(channels=64, size=size), folder / f"{name}.onnx"), f"{name}_ctx.onnx"
        )
        for name, size in sizes.items()
    ]


class _Killed(Worker):
    """A process that is killed when it is asked to compile one model together with others."""

    victim = ""
    log: list[tuple[str, str]] = []  # noqa: RUF012 - shared on purpose: one list over all processes

    def call(self, op: str, args: dict[str, Any] | None = None, **options: Any) -> Any:
        if op == "compile.model" and args is not None and args["share"] != "alone":
            name = Path(args["model"]).stem
            self.log.append((name, args["share"]))
            if name == self.victim:
                os.kill(self.pid, signal.SIGKILL)
        return super().call(op, args, **options)


def _run(
    cache: Cache, models: list[CompileInput], start: Callable[[], Worker] | None = None, **settings: Any
) -> CompileOutcome:
    used = Settings(NPU, CompileSection(), {"onnxruntime": "1", "qnn": "1"}, **settings)
    return CompileStage(used, cache=cache, start=start).run(models)


@pytest.mark.parametrize(
    ("victim", "calls"),
    [
        ("a", [("a", "share"), ("b", "share"), ("c", "last")]),
        ("b", [("a", "share"), ("b", "share"), ("a", "share"), ("c", "last")]),
        ("c", [("a", "share"), ("b", "share"), ("c", "last"), ("a", "share"), ("b", "last")]),
    ],
)
def test_a_process_that_dies_costs_one_model_and_the_others_start_over(
    cache: Cache, models: list[CompileInput], monkeypatch: pytest.MonkeyPatch, victim: str, calls: list[tuple[str, str]]
) -> None:
    monkeypatch.setattr(_Killed, "victim", victim)
    monkeypatch.setattr(_Killed, "log", [])
    outcome = _run(cache, models, _Killed, validate=False)
    died = next(m for m in models if m.output == f"{victim}_ctx.onnx")
    assert isinstance(outcome.errors[died], WorkerCrashed)
    left = [m for m in models if m is not died]
    assert list(outcome.made) == left
    # Sharing ends with the last model that is left, and never with one that came before a failure.
    assert _Killed.log == calls
    binary = f"{left[0].path.stem}_ctx_qnn.bin"
    assert {b.file for m in left for b in outcome.made[m].report.compiled.facts.binaries} == {binary}
    assert set(outcome.files) == {*(m.output for m in left), binary}


def test_the_second_time_is_a_cache_hit(cache: Cache, models: list[CompileInput]) -> None:
    first = _run(cache, models[:1], validate=False)
    second = _run(cache, models[:1], validate=False)
    assert second.made[models[0]].cached
    assert second.files == first.files


def test_another_version_option_or_content_is_not(cache: Cache, models: list[CompileInput], tmp_path: Path) -> None:
    _run(cache, models[:1], validate=False)
    other = Settings(NPU, CompileSection(), {"onnxruntime": "2", "qnn": "1"}, validate=False)
    assert not CompileStage(other, cache=cache).run(models[:1]).made[models[0]].cached
    embedded = Settings(NPU, CompileSection(embed=True), {"onnxruntime": "1", "qnn": "1"}, validate=False)
    assert not CompileStage(embedded, cache=cache).run(models[:1]).made[models[0]].cached
    changed = CompileInput(model_zoo.saved(model_zoo.conv_net(channels=32), tmp_path / "a.onnx"), "a_ctx.onnx")
    assert not _run(cache, [changed], validate=False).made[changed].cached


def test_an_unknown_version_takes_nothing_from_the_cache(cache: Cache, models: list[CompileInput]) -> None:
    unknown = Settings(NPU, CompileSection(), None, validate=False)
    for _ in range(2):
        assert not CompileStage(unknown, cache=cache).run(models[:1]).made[models[0]].cached


def test_a_stored_result_is_validated_when_that_is_asked_for_first_later(
    cache: Cache, models: list[CompileInput]
) -> None:
    _run(cache, models[2:], validate=False)
    made = _run(cache, models[2:]).made[models[2]]
    assert made.cached
    assert made.report.validation is not None
    assert made.report.validation.status == "passed"
    assert _run(cache, models[2:]).made[models[2]].report == made.report


def test_events_count_models_alone_and_then_together(tmp_path: Path, models: list[CompileInput]) -> None:
    told: list[tuple[str, str, int, int]] = []

    def listen(event: CompileStep) -> None:
        told.append((event.action, event.model, event.done, event.total))

    settings = Settings(NPU, CompileSection(), {"onnxruntime": "1", "qnn": "1"}, validate=False)
    CompileStage(settings, cache=Cache(tmp_path / "cache"), on_event=listen).run(models[:2])
    assert told == [
        ("compiling", "a.onnx", 0, 4),
        ("compiling", "b.onnx", 1, 4),
        ("compiling", "a.onnx", 2, 4),
        ("compiling", "b.onnx", 3, 4),
    ]


def test_a_shared_binary_that_the_simulator_cannot_load_is_not_a_pass(cache: Cache, models: list[CompileInput]) -> None:
    outcome = _run(cache, models[:2])
    for model in models[:2]:
        shared, alone = outcome.made[model].report.validation, outcome.alone[model].report.validation
        assert shared is not None
        assert alone is not None
        assert shared.status == "not-validated"
        assert "does not load on this machine" in str(shared.reason)
        assert str(cache.root) not in str(shared.reason)
        assert alone.status == "passed"


def test_a_source_that_changes_meanwhile_is_not_stored(cache: Cache, tmp_path: Path) -> None:
    model = CompileInput(model_zoo.saved(model_zoo.conv_net(channels=8), tmp_path / "m.onnx"), "m_ctx.onnx")

    def touch(event: CompileStep) -> None:
        if event.action == "compiling":
            model_zoo.saved(model_zoo.conv_net(channels=24), model.path)

    settings = Settings(NPU, CompileSection(), {"onnxruntime": "1", "qnn": "1"}, validate=False)
    before = {entry.key for entry in cache.stages}
    outcome = CompileStage(settings, cache=cache, on_event=touch).run([model])
    assert "changed while it was being compiled" in outcome.errors[model].message
    assert {entry.key for entry in cache.stages} == before
