"""Nothing outlives the process that started it, whatever it is doing and however that process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from cluster_zoo import gone
from ctrl_c import OWN_CONSOLE, press_ctrl_c
from winml.modelkit.worker.client import Worker
from winml.modelkit.worker.command import run_command
from winml.modelkit.worker.process_tree import ProcessTree

# Native code that keeps the interpreter's lock, as onnx's shape inference does: no thread of that process runs again.
STUCK = """
import ctypes, os, pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
folder = pathlib.Path(__file__).parent
(folder / "part").write_text(f"{os.getpid()} {child.pid}")
(folder / "part").rename(folder / "pids")
if sys.platform == "win32":
    ctypes.PyDLL("kernel32").Sleep(600000)
ctypes.PyDLL(None).sleep(600)
"""

CALLS_WORKER = """
from winml.modelkit.worker.client import Worker
Worker().call("ping", {"modules": ["stuck"]})
"""

RUNS_PROGRAM = """
import sys
from pathlib import Path
from winml.modelkit.worker.command import run_command
folder = Path(sys.argv[1])
run_command([sys.executable, str(folder / "stuck.py")], cwd=folder, log=folder / "log", timeout_s=600)
"""

RUNS_COMMAND_THAT_CALLS_WORKER = """
import sys
from pathlib import Path
from winml.modelkit.worker.command import run_command
folder = Path(sys.argv[1])
run_command([sys.executable, "-c", CALLS_WORKER], cwd=folder, log=folder / "log", timeout_s=600)
""".replace("CALLS_WORKER", repr(CALLS_WORKER))


def environment(folder: Path) -> dict[str, str]:
    """Ours, with modules and temporary files in a folder of the test."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), "TEMP": str(folder)}


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "sent", ["SIGKILL", "SIGTERM", "Ctrl-C"] if sys.platform != "win32" else ["TerminateProcess", "Ctrl-C"]
)
@pytest.mark.parametrize(
    "code",
    [CALLS_WORKER, RUNS_PROGRAM, RUNS_COMMAND_THAT_CALLS_WORKER],
    ids=["a worker", "a program", "a worker of a command that was run"],
)
def test_nothing_is_left_of_a_command_that_was_ended(code: str, sent: str, tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    env = environment(tmp_path)
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], env=env, **OWN_CONSOLE) as caller:
        pids = [int(word) for word in wait_for(tmp_path / "pids").split()]
        if sent == "Ctrl-C":
            press_ctrl_c(caller)
        elif sent == "TerminateProcess":
            caller.kill()
        else:
            caller.send_signal(signal.Signals[sent])
    assert [gone(pid) for pid in pids] == [True, True]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills the child of a dead process itself")
def test_the_kernel_ends_a_worker_whose_guard_was_killed(tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    env = environment(tmp_path)
    with subprocess.Popen([sys.executable, "-c", CALLS_WORKER], env=env) as caller:
        worker, child = (int(word) for word in wait_for(tmp_path / "pids").split())
        group = [p.pid for p in psutil.process_iter() if _group(p.pid) == worker]
        (guard,) = set(group) - {worker, child}
        os.kill(guard, signal.SIGKILL)
        caller.kill()
    assert gone(worker)
    os.kill(child, signal.SIGKILL)


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def test_a_worker_that_another_thread_started_stays_when_that_thread_ends() -> None:
    made: list[Worker] = []
    thread = threading.Thread(target=lambda: made.append(Worker()))
    thread.start()
    thread.join()
    with made[0] as worker:
        assert worker.call("ping", {"echo": 1}, timeout_s=60)["echo"] == 1


@pytest.mark.posix("there is no lifeline: a job object ends the tree")
def test_a_program_keeps_its_number_its_status_and_its_children(tmp_path: Path) -> None:
    """Nothing of the lifeline shows: no child that the program did not start, no open file, no ignored signal."""
    code = (
        "import os, signal\n"
        "print(os.getpid())\n"
        "print([n for n in range(3, 64) if os.path.exists(f'/dev/fd/{n}')])\n"
        "try:\n    os.waitpid(-1, 0)\nexcept ChildProcessError:\n    print('no child')\n"
        "os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    pids: list[int] = []
    done = run_command(
        ["/bin/sh", "-c", f'exec {sys.executable} -c "$CODE"'],
        cwd=tmp_path, log=tmp_path / "log", timeout_s=60, env={**os.environ, "CODE": code}, on_start=pids.append,
    )  # fmt: skip
    assert done.returncode == -signal.SIGSEGV
    assert done.output == f"{pids[0]}\n[]\nno child\n"
    ended = run_command(["/bin/sh", "-c", "kill -PIPE $$"], cwd=tmp_path, log=tmp_path / "log", timeout_s=60)
    assert ended.returncode == -signal.SIGPIPE


@pytest.mark.posix("programs are told by their content, not by a mode")
@pytest.mark.parametrize(
    ("content", "mode", "kind"),
    [(None, 0, FileNotFoundError), (b"\0\0", 0o755, OSError), (b"#!/bin/sh\n", 0o644, PermissionError)],
    ids=["missing", "no program", "not executable"],
)
def test_a_program_that_cannot_be_started_is_an_error_with_its_name(
    content: bytes | None, mode: int, kind: type[OSError], tmp_path: Path
) -> None:
    program = tmp_path / "program"
    if content is not None:
        program.write_bytes(content)
        program.chmod(mode)
    with pytest.raises(kind) as caught, (tmp_path / "log").open("wb") as log:
        ProcessTree([str(program)], cwd=tmp_path, stderr=log, stdout=log)
    assert caught.value.filename == str(program)
    assert (tmp_path / "log").read_bytes() == b""
