"""How much time and memory an operation gets."""

from __future__ import annotations

from pathlib import Path

import pytest

import model_zoo
from winml.modelkit.core.errors import RequestError, WorkerMemory, WorkerTimeout
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.session.arm import MeasureArguments, arm_arguments
from winml.modelkit.worker import limits, operations
from winml.modelkit.worker.client import Worker

GIB = 2**30


@pytest.fixture(autouse=True)
def no_words_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (limits.INSPECT_TIMEOUT, limits.WORK_TIMEOUT, limits.MEMORY_LIMIT):
        monkeypatch.delenv(name, raising=False)


def test_the_kinds_name_operations_that_there_are() -> None:
    assert set(operations.OPERATIONS) >= limits.INSPECTING | limits.COMPARING


def test_what_inspects_gets_little_and_more_for_a_large_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "machine_bytes", lambda: 64 * GIB)
    model = tmp_path / "model.onnx"
    model.write_bytes(b"x" * 300)
    small = limits.limits_of("graph.describe", {"path": str(model)}, None)
    assert small.timeout_s == pytest.approx(20, abs=0.1)
    assert small.memory_bytes == pytest.approx(1.5 * GIB, rel=0.01)
    (tmp_path / "parts").mkdir()
    for data in (tmp_path / "weights.bin", tmp_path / "parts" / "weights.bin"):
        with data.open("wb") as file:
            file.truncate(4 * GIB)
    with (tmp_path / "another.onnx").open("wb") as file:
        file.truncate(GIB)
    large = limits.limits_of("graph.describe", {"path": str(model)}, None)
    assert large.timeout_s == pytest.approx(20 + 8 * GIB / 10e6, rel=0.01)
    assert large.memory_bytes == pytest.approx(49.5 * GIB, rel=0.01)
    ask = limits.ask_timeout_s(model)
    assert ask is not None
    assert ask > 3600


def test_what_works_gets_half_the_machine_or_what_its_model_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "machine_bytes", lambda: 100 * GIB)
    model = tmp_path / "model.onnx"
    model.write_bytes(b"x")
    usual = limits.limits_of("stages.export", {"model": str(model), "other": 1, "name": "no path"}, None)
    assert usual == limits.OperationLimits(12 * 3600.0, 50 * GIB)
    with model.open("wb") as file:
        file.truncate(3 * GIB)
    assert limits.limits_of("stages.export", {"model": str(model)}, None).memory_bytes == 68 * GIB
    monkeypatch.setattr(limits, "machine_bytes", lambda: 8 * GIB)
    assert limits.limits_of("stages.export", {"model": str(model)}, None).memory_bytes == int(7.2 * GIB)


def test_models_inside_of_arguments_count_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "machine_bytes", lambda: 100 * GIB)
    model = tmp_path / "model.onnx"
    with model.open("wb") as file:
        file.truncate(3 * GIB)
    arm = arm_arguments(Arm(artifact=str(model), target=Target("cpu", "cpu"), session=SessionSection()), None)
    measured = MeasureArguments(arm=arm, warmup=0, iterations=1, duration_s=None, tracing=None)
    assert limits.limits_of("session.measure", to_json(measured), None).memory_bytes == 68 * GIB
    compared = {"arms": [to_json(arm), to_json(arm)], "seed": 0}
    assert limits.limits_of("bench.together", compared, None).memory_bytes == 68 * GIB


def test_the_environment_and_the_caller_have_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits.limits_of("graph.describe", {}, 7.0).timeout_s == 7.0
    for name, value in ((limits.INSPECT_TIMEOUT, "5"), (limits.WORK_TIMEOUT, "none"), (limits.MEMORY_LIMIT, "1.5 GiB")):
        monkeypatch.setenv(name, value)
    assert limits.limits_of("graph.describe", {}, None) == limits.OperationLimits(5.0, 3 * GIB // 2)
    assert limits.limits_of("stages.export", {}, None) == limits.OperationLimits(None, 3 * GIB // 2)
    monkeypatch.setenv(limits.MEMORY_LIMIT, "none")
    assert limits.limits_of("stages.export", {}, None).memory_bytes is None


@pytest.mark.parametrize(
    ("name", "value"),
    [(limits.INSPECT_TIMEOUT, "0"), (limits.WORK_TIMEOUT, "soon"), (limits.WORK_TIMEOUT, "nan"),
     (limits.MEMORY_LIMIT, "0"), (limits.MEMORY_LIMIT, "lots"), (limits.MEMORY_LIMIT, "-1G")],
)  # fmt: skip
def test_a_limit_that_is_none_is_a_wrong_request(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(RequestError, match=name):
        limits.limits_of("graph.describe", {}, None)
        limits.limits_of("stages.export", {}, None)


def test_the_machine_has_memory() -> None:
    assert (limits.machine_bytes() or 0) > GIB // 4


def test_a_model_that_fills_the_memory_is_ended_long_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.MEMORY_LIMIT, "300M")
    monkeypatch.setenv(limits.INSPECT_TIMEOUT, "300")  # it is not the time that ends it, on a busy machine neither
    model = model_zoo.saved(model_zoo.endless_shape_inference(), tmp_path / "endless.onnx")
    with Worker() as worker, pytest.raises(WorkerMemory, match="more than the limit of 300 MiB") as caught:
        worker.call("graph.describe", {"path": str(model)}, what="reading `endless.onnx`")
    assert caught.value.exit_code == 1
    assert limits.MEMORY_LIMIT in (caught.value.hint or "")
    assert not worker.alive


def test_a_model_that_never_ends_is_ended_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is that of what inspects, although nobody said one."""
    monkeypatch.setenv(limits.INSPECT_TIMEOUT, "0.6")
    model = model_zoo.saved(model_zoo.endless_shape_inference(), tmp_path / "endless.onnx")
    with Worker() as worker:
        worker.call("ping", {"modules": ["winml.modelkit.graph.describe"]})
        with pytest.raises(WorkerTimeout, match=r"timed out after 0\.6 s"):
            worker.call("graph.describe", {"path": str(model)})
