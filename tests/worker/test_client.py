"""Workers against real processes: every way to die becomes a result."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from winml.modelkit.core import errors
from winml.modelkit.core.measurement import Arm, SessionSection
from winml.modelkit.core.target import Target
from winml.modelkit.core.values import to_json
from winml.modelkit.session.arm import MeasureArguments, arm_arguments
from winml.modelkit.worker import client, operations, program
from winml.modelkit.worker.client import Worker, WorkerBug
from winml.modelkit.worker.limits import OperationLimits
from winml.modelkit.worker.memory import memory_of


def exists(pid: int) -> bool:
    return psutil.pid_exists(pid)


def measure_args(model: Path, **changes: object) -> dict[str, object]:
    arm = Arm(artifact=str(model), target=Target("cpu", "cpu"), session=SessionSection(threads=1))
    arguments = MeasureArguments(arm=arm_arguments(arm, None), warmup=1, iterations=3, duration_s=None, tracing=None)
    return {**to_json(arguments), **changes}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_full_disk_or_a_missing_permission_is_no_bug(number: int) -> None:
    answer = program._failure(OSError(number, os.strerror(number), "file"))
    assert answer["error"]["exit"] == errors.UnavailableError.exit_code
    assert "`file`" in answer["error"]["message"]
    assert "bug" in program._failure(OSError(errno.EBADF, "bad"))


def test_answers_and_stays_warm_for_the_next_request() -> None:
    with Worker() as worker:
        first = worker.call("ping", {"echo": "ü"})
        second = worker.call("ping")
    assert first["echo"] == "ü"
    assert first["pid"] == second["pid"] == worker.pid


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_operations_apart_have_a_process_and_a_folder_each_and_leave_the_worker_as_it_was(zoo: Path) -> None:
    with Worker(apart=True) as worker:
        pids = [worker.call("ping")["pid"] for _ in range(2)]
        assert len({*pids, worker._tree.pid}) == 3
        with pytest.raises(errors.ModelkitError):
            worker.call("graph.describe", {"path": "no-such.onnx"})
        assert worker.is_fresh
        assert worker.alive
        assert len(list(worker.folder.glob("apart-*"))) == 3
        with pytest.raises(errors.WorkerCrashed, match="crashed with SIGFPE"):
            worker.call("session.measure", measure_args(zoo / "fpe.onnx"), timeout_s=60)
        assert not worker.alive


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_an_operation_is_not_judged_by_the_memory_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker(apart=True) as worker:
        own = worker.pid
        forked = worker.call("ping")["pid"]
        assert worker.pid == forked != own
        worker._memory = {"own_bytes": 1 << 60, "rss_bytes": 1 << 60, "peak_bytes": 1 << 60}
        looked: list[int] = []

        def look(pid: int) -> dict[str, int] | None:
            looked.append(pid)
            return memory_of(pid)

        monkeypatch.setattr(client, "memory_of", look)
        monkeypatch.setattr(client, "limits_of", lambda *_: OperationLimits(60.0, 1 << 40))
        worker._looked = 0.0  # look at once
        assert worker.call("ping")["pid"] not in (forked, own)
        assert looked
        assert forked not in looked


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_a_process_with_threads_of_others_is_not_forked_and_is_not_fresh_afterwards() -> None:
    with Worker(apart=True, preload=("onnxruntime",)) as worker:  # which starts a thread
        assert worker.call("ping")["pid"] == worker._tree.pid
        assert not worker.is_fresh


def test_a_library_that_asks_for_its_stdin_is_loaded_while_requests_are_waited_for() -> None:
    with Worker(preload=("numpy",)) as worker:
        assert worker.call("ping", {"modules": ["numpy"]}, timeout_s=100)["pid"]


@pytest.mark.launcher
def test_its_number_and_memory_are_not_those_of_the_launcher_that_starts_it() -> None:
    with Worker(python=os.environ["WINML_TEST_LAUNCHER"]) as worker:
        assert worker.call("ping", {"modules": ["numpy"]})["pid"] == worker.pid != worker._tree.pid
        worker._watch_memory()
        assert worker._memory is not None
        assert worker._memory["rss_bytes"] > 10 << 20


def test_its_folder_is_its_working_directory_and_goes_with_it() -> None:
    worker = Worker()
    folder = worker.folder
    assert Path(f"/proc/{worker.pid}/cwd").resolve() == folder.resolve() if sys.platform == "linux" else True
    worker.close()
    assert not folder.exists()
    assert not exists(worker.pid)


def test_close_twice_is_fine_and_calls_after_it_are_refused() -> None:
    worker = Worker()
    worker.close()
    worker.close()
    with pytest.raises(RuntimeError, match="ended"):
        worker.call("ping")


def test_a_native_crash_becomes_an_error_with_the_signal_name(zoo: Path) -> None:
    name = "STATUS_INTEGER_DIVIDE_BY_ZERO" if sys.platform == "win32" else "SIGFPE"
    with Worker() as worker, pytest.raises(errors.WorkerCrashed, match=f"crashed with {name}") as caught:
        worker.call("session.measure", measure_args(zoo / "fpe.onnx"), timeout_s=60)
    assert caught.value.exit_code == 1
    assert caught.value.details["returncode"] == (0xC0000094 if sys.platform == "win32" else -signal.SIGFPE)
    assert not worker.alive


def test_a_hang_ends_with_the_timeout_and_leaves_no_process(zoo: Path) -> None:
    with Worker() as worker:
        worker.call("ping", {"modules": ["winml.modelkit.session.measure"]})
        started = time.monotonic()
        with pytest.raises(errors.WorkerTimeout, match="timed out after 1 s"):
            worker.call("session.measure", measure_args(zoo / "hang.onnx"), timeout_s=1)
        assert time.monotonic() - started < 10
        assert not exists(worker.pid)


def test_a_refused_allocation_is_an_answer_and_the_worker_lives_on(zoo: Path) -> None:
    with Worker() as worker:
        with pytest.raises(errors.SessionError, match="out of memory"):
            worker.call("session.measure", measure_args(zoo / "huge.onnx"))
        assert worker.call("ping")["pid"] == worker.pid


def test_a_kill_from_outside_is_told_apart_from_a_crash_and_gives_memory(zoo: Path) -> None:
    with Worker() as worker:
        worker.call("ping", {"modules": ["winml.modelkit.session.measure"]})
        threading.Timer(1.0, psutil.Process(worker.pid).kill).start()
        # On Windows whoever kills chooses the exit code.
        how = "ended unexpectedly with exit code" if sys.platform == "win32" else "killed by the system .* MiB"
        with pytest.raises(errors.WorkerCrashed, match=how) as caught:
            worker.call("session.measure", measure_args(zoo / "hang.onnx"), timeout_s=30)
    assert caught.value.details["memory"]["peak_bytes"] > 2**20


def test_children_of_a_worker_die_with_it(tmp_path: Path) -> None:
    (tmp_path / "starts_child.py").write_text(
        "import subprocess, sys, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "pathlib.Path(__file__).with_name('pid').write_text(str(child.pid))\n"
    )
    with Worker(env={**os.environ, "PYTHONPATH": str(tmp_path)}) as worker:
        worker.call("ping", {"modules": ["starts_child"]})
        child = int((tmp_path / "pid").read_text())
        assert exists(child)
    deadline = time.monotonic() + 10
    while exists(child) and not _is_zombie(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not exists(child) or _is_zombie(child)


def test_a_worker_leaves_when_its_caller_is_killed(zoo: Path, tmp_path: Path) -> None:
    """The caller dies without a word while the worker is in native code that never returns."""
    import subprocess

    script = tmp_path / "caller.py"
    script.write_text(
        "import sys\n"
        "from winml.modelkit.worker.client import Worker\n"
        "worker = Worker()\n"
        "print(worker.pid, flush=True)\n"
        f"worker.call('session.measure', {measure_args(zoo / 'hang.onnx')!r})\n"
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        pid = int(caller.stdout.readline())
        time.sleep(1.5)
        assert exists(pid)
        caller.kill()
    deadline = time.monotonic() + 10
    while exists(pid) and not _is_zombie(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not exists(pid) or _is_zombie(pid)


def test_an_unexpected_exception_is_a_bug_with_its_traceback() -> None:
    with Worker() as worker, pytest.raises(WorkerBug, match="KeyError"):
        worker.call("graph.implied", {})


def test_a_missing_package_is_named_as_unavailable() -> None:
    with Worker() as worker, pytest.raises(errors.UnavailableError, match="`no_such_package`"):
        worker.call("ping", {"modules": ["no_such_package.part"]})


def test_native_noise_on_stdout_lands_in_the_log_and_not_among_answers(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text("import os\nos.write(1, b'{noise\\n')\nprint('more noise', flush=True)\n")
    with Worker(env={**os.environ, "PYTHONPATH": str(tmp_path)}) as worker:
        assert worker.call("ping", {"modules": ["noisy"]})["pid"] == worker.pid
        assert worker.call("ping", {"echo": 2})["echo"] == 2
        assert worker.log_tail() == ["{noise", "more noise"]


def test_stop_returns_the_samples_so_far(zoo: Path) -> None:
    with Worker() as worker:
        args = measure_args(zoo / "relu.onnx", duration_s=60.0)

        def interrupt(event: dict[str, object]) -> None:
            if event["event"] == "progress":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            worker.call("session.measure", args, timeout_s=30, on_event=interrupt)
        report = worker.stop(timeout_s=10)
    assert report["stopped"] is True
    assert len(report["wall_ns"]) == len(report["cpu_ns"]) > 0


def test_every_operation_of_the_table_can_be_imported() -> None:
    from importlib import import_module

    for entry in operations.OPERATIONS.values():
        module, _, function = entry.partition(":")
        assert callable(getattr(import_module(module), function))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")")[1].split()[0] == "Z"
    except OSError:
        return False


def test_a_worker_that_is_closed_before_its_reader_runs_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = threading.Event()
    start = threading.Thread.start

    def start_late(thread: threading.Thread) -> None:
        run = thread.run
        thread.run = lambda: (began.wait(30), run())[1]  # type: ignore[method-assign]
        start(thread)

    trouble: list[object] = []
    monkeypatch.setattr(threading, "excepthook", trouble.append)
    monkeypatch.setattr(threading.Thread, "start", start_late)
    others = threading.enumerate()  # those of workers that other tests have closed
    worker = Worker()
    threads = [thread for thread in threading.enumerate() if "_read" in thread.name and thread not in others]
    assert threads
    worker.close()
    began.set()
    for thread in threads:
        thread.join(30)
    assert trouble == []
