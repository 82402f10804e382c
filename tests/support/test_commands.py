from __future__ import annotations

import shutil
import time
from pathlib import Path

import psutil
import pytest

import sandbox_zoo
from winml.modelkit import sample
from winml.modelkit.support.commands import Commands
from winml.modelkit.support.model import SupportModel
from winml.modelkit.support.place import FOLDER, ReviewPlace
from winml.modelkit.support.review.evidence import MODEL, CommandRun
from winml.modelkit.worker.sandbox import ENDED, RoomLimits


def _left(word: str) -> list[list[str]]:
    """Command lines of processes that name the word."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = process.info["cmdline"] or []
        if any(word in part for part in line):
            found.append(line)
    return found


def _wait_until_nothing_is_left(word: str) -> None:
    """Everything was killed; the kernel and the process that inherits the rest take a moment to clear it away."""
    deadline = time.monotonic() + 60
    while _left(word):
        assert time.monotonic() < deadline, _left(word)
        time.sleep(0.05)


def test_a_command_that_takes_too_long_leaves_nothing_running(tmp_path: Path) -> None:
    model = shutil.copy(sample.MODEL, tmp_path / "model.onnx")
    run = Commands(str(model), tmp_path, timeout_s=1)(("support", "probe", "-m", MODEL, "--target", "cpu", "--json"))
    assert run.exit_code is None
    _wait_until_nothing_is_left(str(tmp_path))


def test_a_command_gives_its_result_its_exit_code_and_what_it_told(tmp_path: Path) -> None:
    run = Commands(str(tmp_path / "gone.onnx"), tmp_path, timeout_s=None)(("inspect", "-m", MODEL, "--json"))
    assert run.exit_code == 2
    assert run.words == ("inspect", "-m", MODEL, "--json")
    assert run.result is not None
    assert "error: " in run.stderr


def _run_inside(kind: str, place: Path, *words: str, memory_bytes: int = 2**33, timeout_s: float = 60) -> CommandRun:
    where = ReviewPlace(timeout_s, sandbox_zoo.of_kind(kind), RoomLimits(memory_bytes))
    model = SupportModel(str(sample.MODEL), False, "", {}, (sample.MODEL,))
    return where.commands(model, place, targets=("qnn/npu",))((*words, "--json"))


@pytest.mark.qnn
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("unshare", marks=pytest.mark.sandbox),
        pytest.param("bwrap", marks=[pytest.mark.bubblewrap, pytest.mark.slow]),
    ],
)
def test_the_simulated_npu_runs_in_a_sandbox(kind: str, tmp_path: Path) -> None:
    words = ("perf", "-m", MODEL, "--target", "qnn/npu", "--sessions", "1", "--iterations", "2", "--warmup", "0")
    run = _run_inside(kind, tmp_path, *words)
    assert run.exit_code == 0, run.stderr
    assert run.result is not None
    assert run.result["simulated"]
    assert set(run.result["placement"]["nodes"]) == {"QNNExecutionProvider"}
    assert list((tmp_path / FOLDER).iterdir()) == [tmp_path / FOLDER / "artifacts"]


@pytest.mark.sandbox
def test_a_command_past_a_limit_says_so_and_leaves_nothing_running(tmp_path: Path) -> None:
    run = _run_inside("unshare", tmp_path, "perf", "-m", MODEL, "--target", "cpu", memory_bytes=2**20)
    assert run.exit_code == 137
    assert run.stderr.splitlines()[-1].startswith(ENDED)
    _wait_until_nothing_is_left(str(tmp_path))


@pytest.mark.parametrize(
    "kind",
    [pytest.param("unshare", marks=pytest.mark.sandbox), pytest.param("bwrap", marks=pytest.mark.bubblewrap)],
)
def test_a_command_in_a_sandbox_that_takes_too_long_leaves_nothing_running(kind: str, tmp_path: Path) -> None:
    words = ("support", "probe", "-m", MODEL, "--target", "cpu")
    run = _run_inside(kind, tmp_path, *words, timeout_s=1)
    assert (run.exit_code, run.result) == (None, None)
    _wait_until_nothing_is_left(str(tmp_path))
