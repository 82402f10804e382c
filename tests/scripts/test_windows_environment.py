"""The set-up for tests under Wine, as far as it needs no Wine."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts" / "windows"

pytestmark = pytest.mark.posix("sets Windows up, from Linux")


def test_where_wine_cannot_be_had_nothing_is_run_and_the_reason_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPTS / "run_tests.py", "--home", tmp_path / "home"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 77
    assert "not run: Debian's packages gcc-mingw-w64-x86-64-win32, wine, wine64 are not here" in done.stderr


def test_the_short_list_names_tests_that_exist() -> None:
    lines = [line.partition("#")[0].strip() for line in (SCRIPTS / "short.txt").read_text("utf-8").splitlines()]
    chosen = [line for line in lines if line]
    assert chosen
    for line in chosen:
        path, _, name = line.partition("::")
        file = SCRIPTS.parents[1] / path
        assert file.exists(), line
        assert f"def {name.partition('[')[0]}(" in file.read_text("utf-8") if name else True, line


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("windows_environment", SCRIPTS / "environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("starts_at", "works"), [(1, True), (3, True), (4, False)])
def test_a_windows_that_does_not_start_is_started_again_and_then_given_up(
    starts_at: int, works: bool, environment: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = tmp_path / "count"
    _program(tmp_path / "wine", f'echo >> "{count}"; echo "no luck"; [ $(wc -l < "{count}") -ge {starts_at} ]')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    made = environment.Environment(tmp_path / "home", "3.11")
    if works:
        environment._start(made)
    else:
        with pytest.raises(environment.CannotRun, match="first program ended with 1: no luck"):
            environment._start(made)
    assert len(count.read_text("utf-8").splitlines()) == min(starts_at, 3)


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (77, 0), (1, 1), (130, 130)])
def test_ci_fails_with_the_tests_under_windows_but_not_where_none_can_be_run(
    code: int, expected: int, tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(SCRIPTS.parents[1] / ".ci" / "run", tmp_path / ".ci" / "run")
    _program(tmp_path / "make", "exit 0")
    _program(tmp_path / "python3.11", f'echo "windows: $*" >&2; exit {code}')
    env = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == expected
    assert "windows: scripts/windows/run_tests.py --short" in done.stderr
    assert ("no test was run under Windows" in done.stderr) == (code == 77)


@pytest.mark.parametrize(("codes", "expected"), [([0], 0), ([1, 0], 0), ([1, 1], 1), ([1, 5], 1), ([2], 2)])
def test_tests_that_failed_run_once_more_and_only_then_pass(
    codes: list[int], expected: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    run_tests: Any = importlib.import_module("run_tests")
    left, seen = list(codes), []

    def run(made: object, argv: list[str]) -> int:
        seen.append(argv)
        return left.pop(0)

    monkeypatch.setattr(run_tests, "run", run)
    monkeypatch.setattr(run_tests, "end_all", lambda made: None)
    assert run_tests._run_tests(None, ["python.exe", "-m", "pytest"], again=True) == expected
    assert left == []
    assert ["--last-failed" in argv for argv in seen] == [False, True][: len(codes)]
    assert ("passed the second time" in capsys.readouterr().err) == (codes == [1, 0])
    left.append(1)
    assert run_tests._run_tests(None, ["python.exe"], again=False) == 1


def test_a_second_run_has_the_tests_that_failed_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    run_tests: Any = importlib.import_module("run_tests")
    monkeypatch.setattr(run_tests, "windows_path", str)
    words = run_tests.remembering(run_tests.Environment(tmp_path, "3.11"))
    (tmp_path / "test_it.py").write_text("def test_passes(): pass\ndef test_fails(): assert False\n", encoding="utf-8")
    config = ["-c", str(SCRIPTS.parents[1] / "pyproject.toml"), "--rootdir", str(tmp_path)]
    argv = [sys.executable, "-m", "pytest", "-q", *config, *words, str(tmp_path / "test_it.py")]
    first = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in first.stdout
    again = subprocess.run([*argv, "--last-failed"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 1 deselected" in again.stdout or "1 failed in" in again.stdout
    assert "1 passed" not in again.stdout
