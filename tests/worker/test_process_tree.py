from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from winml.modelkit.worker.process_tree import ProcessTree


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as a terminal gives it, also where tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to itself")
def test_ctrl_c_while_a_process_is_being_started_leaves_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def interrupted(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(real(*words, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt), (tmp_path / "log").open("wb") as log:
        ProcessTree([sys.executable, "-c", "import time; time.sleep(600)"], cwd=tmp_path, stderr=log)
    assert started[0].returncode == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


_HOLDS_A_FILE = """
import subprocess, sys, time
if len(sys.argv) > 1:
    with open("held", "w"):
        open("ready", "w").close()
        time.sleep(600)
subprocess.run([sys.executable, __file__, "again"])
"""


def test_when_a_tree_has_ended_its_files_can_be_deleted(tmp_path: Path) -> None:
    program = tmp_path / "holds.py"
    program.write_text(_HOLDS_A_FILE)
    work = tmp_path / "work"
    work.mkdir()
    with (tmp_path / "log").open("wb") as log:
        tree = ProcessTree([sys.executable, str(program)], cwd=work, stderr=log)
    with tree.process:
        while not (work / "ready").exists():
            assert tree.process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.02)
        tree.end()
    shutil.rmtree(work)


@pytest.mark.windows
def test_a_program_that_ends_before_it_is_in_the_job_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.Popen

    def killed(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = real(*words, **options)
        process.kill()
        process.wait()
        return process

    monkeypatch.setattr(subprocess, "Popen", killed)
    with (tmp_path / "log").open("wb") as log:
        tree = ProcessTree([sys.executable, "-c", ""], cwd=tmp_path, stderr=log)
    with tree.process:
        assert tree.end() == 1


_IS_KILLED_WHILE_IT_STARTS = """
import os, subprocess, sys, tempfile
from pathlib import Path
from winml.modelkit.worker import process_tree

real = subprocess.Popen

def killed(*words, **options):
    process = real(*words, **options)
    print(process.pid, flush=True)
    sys.stdin.readline()  # killed here: the process is created and not in the job of its tree

subprocess.Popen = killed
with tempfile.TemporaryFile() as log:
    process_tree.ProcessTree([sys.executable, "-c", ""], cwd=Path(sys.argv[1]), stderr=log)
"""

_STARTS_A_VIEWER = """
import subprocess, sys, tempfile
from pathlib import Path
from winml.modelkit.worker.process_tree import ProcessTree

with tempfile.TemporaryFile() as log:
    tree = ProcessTree([sys.executable, "-c", ""], cwd=Path(sys.argv[1]), stderr=log)
    with tree.process:
        tree.end()
viewer = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(viewer.pid, flush=True)
"""


@pytest.mark.windows
def test_a_process_is_not_left_behind_when_its_parent_is_killed_while_it_starts(tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(_IS_KILLED_WHILE_IT_STARTS)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, str(program), str(tmp_path)], stdin=pipe, stdout=pipe, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
    child.wait(timeout=60)


@pytest.mark.windows
def test_what_a_program_starts_for_the_user_stays_when_it_ends_by_itself(tmp_path: Path) -> None:
    program = tmp_path / "viewer.py"
    program.write_text(_STARTS_A_VIEWER)
    done = subprocess.run([sys.executable, str(program), str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True)
    viewer = psutil.Process(int(done.stdout))
    assert viewer.is_running()
    viewer.kill()


_STARTS_ITSELF = """
import sys, tempfile
from pathlib import Path
from winml.modelkit.worker.process_tree import ProcessTree
argv = [sys.executable, "-c", "import os, sys; print(os.getpid(), sys.executable, sys.prefix)"]
with tempfile.TemporaryFile() as log:
    tree = ProcessTree(argv, cwd=Path(sys.argv[1]), stderr=log)
    with tree.process:
        said = tree.process.stdout.read().decode().split()
        tree.end()
assert said == [str(tree.pid), sys.executable, sys.prefix], (said, tree.pid, sys.executable, sys.prefix)
assert sys.executable != sys._base_executable
"""


@pytest.mark.launcher
def test_our_own_interpreter_is_started_without_the_launcher_of_a_virtual_environment(tmp_path: Path) -> None:
    argv = [os.environ["WINML_TEST_LAUNCHER"], "-c", _STARTS_ITSELF, str(tmp_path)]
    done = subprocess.run(argv, stdin=subprocess.PIPE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
