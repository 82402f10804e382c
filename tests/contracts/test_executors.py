"""What everything that runs jobs must keep."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cluster_zoo import gone
from winml.modelkit.core.errors import DiskFull, UnavailableError
from winml.modelkit.dispatch.base import Executor, Job, Result
from winml.modelkit.dispatch.local import LocalPool


@pytest.fixture(params=["local", pytest.param("dask", marks=(pytest.mark.dask, pytest.mark.xdist_group("cluster")))])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with closing(_dask(request) if request.param == "dask" else LocalPool(2, has={"npu": 1})) as made:
        yield made


def _dask(request: pytest.FixtureRequest) -> Executor:
    from winml.modelkit.dispatch.dask_cluster import DaskCluster

    return DaskCluster(request.getfixturevalue("two_jobs_and_an_npu").cluster)


def job(name: str, code: str, **more: object) -> Job:
    return Job(name, (sys.executable, "-c", code), **{"timeout_s": 60.0, **more})  # type: ignore[arg-type]


def results(executor: Executor, *jobs: Job) -> dict[str, Result]:
    for each in jobs:
        executor.submit(each)
    found: dict[str, Result] = {}
    deadline = time.monotonic() + 120
    while len(found) < len(jobs):
        assert time.monotonic() < deadline
        result = executor.wait(5)
        if result is not None:
            assert result.job not in found
            found[result.job] = result
    return found


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not path.exists() or not path.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text(encoding="utf-8")


def test_a_job_that_ends_well_brings_its_output_and_its_log(executor: Executor) -> None:
    done = results(executor, job("a", "import sys; print('out'); print('log', file=sys.stderr)"))["a"]
    assert (done.status, done.returncode, done.output.strip(), done.log.strip()) == ("ok", 0, "out", "log")
    assert done.attempts == 1


def test_what_fails_is_a_value_and_is_not_tried_again(executor: Executor, tmp_path: Path) -> None:
    count = f"open({str(tmp_path / 'tries')!r}, 'a').write('x')"
    found = results(
        executor,
        job("exit", f"{count}; raise SystemExit(7)", retries=3),
        job("crash", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"),
        Job("nothing", ("/no/such/program",)),
    )
    assert (found["exit"].status, found["exit"].returncode) == ("failed", 7)
    assert (tmp_path / "tries").read_text() == "x"
    assert found["crash"].status == "failed"
    assert found["nothing"].status == "failed"
    assert "/no/such/program" in found["nothing"].log


def test_a_job_that_takes_too_long_is_ended_with_everything_it_started(executor: Executor, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)"
    )
    done = results(executor, job("slow", code, timeout_s=3.0))["slow"]
    assert (done.status, done.returncode) == ("timeout", None)
    assert all(gone(int(pid)) for pid in pids.read_text().split())


def test_a_job_that_was_killed_is_lost_and_started_again(executor: Executor, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    code = (
        "import pathlib, psutil\n"
        f"flag = pathlib.Path({str(flag)!r})\n"
        "if flag.exists(): print('second')\n"
        "else: flag.touch(); psutil.Process().kill()"
    )
    done = results(executor, job("a", code, retries=1))["a"]
    assert (done.status, done.output.strip(), done.attempts) == ("ok", "second", 2)
    flag.unlink()
    lost = results(executor, job("b", code))["b"]
    assert (lost.status, lost.attempts) == ("lost", 1)


def test_what_a_job_needs_is_held_while_it_runs(executor: Executor, tmp_path: Path) -> None:
    code = (
        "import os, pathlib, time\n"
        f"held = pathlib.Path({str(tmp_path / 'held')!r})\n"
        "held.mkdir()\n"  # fails when another one is at it
        "time.sleep(0.3)\n"
        "held.rmdir()"
    )
    found = results(executor, *(job(name, code, needs={"npu": 1}) for name in "abc"))
    assert {result.status for result in found.values()} == {"ok"}


def test_what_no_machine_has_is_refused_before_it_waits_for_ever(executor: Executor) -> None:
    with pytest.raises(UnavailableError, match="needs 2 of `npu`"):
        executor.submit(job("a", "", needs={"npu": 2}))
    with pytest.raises(UnavailableError, match="`tpu`"):
        executor.check(job("a", "", needs={"tpu": 1}))


def test_no_more_than_the_slots_run_at_once(executor: Executor, tmp_path: Path) -> None:
    code = (
        "import os, pathlib, time\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "mine = folder / f'run-{os.getpid()}'\n"
        "mine.touch()\n"
        "time.sleep(0.2)\n"
        "print(len(list(folder.glob('run-*'))))\n"
        "mine.unlink()"
    )
    found = results(executor, *(job(name, code) for name in "abcdef"))
    assert max(int(result.output) for result in found.values()) <= executor.slots


def test_closing_ends_what_runs_and_starts_nothing_more(executor: Executor, tmp_path: Path) -> None:
    code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    for name in "abc":
        executor.submit(job(name, code))
    pid = int(wait_for(tmp_path / "pid"))
    executor.close()
    assert gone(pid)
    (tmp_path / "pid").unlink()
    time.sleep(0.5)
    assert not (tmp_path / "pid").exists()


def test_temporary_files_of_a_killed_job_go_with_it(executor: Executor, tmp_path: Path) -> None:
    code = (
        "import pathlib, psutil, tempfile\n"
        "folder = tempfile.mkdtemp()\n"
        "pathlib.Path(folder, 'big').write_text('x' * 1000)\n"
        f"open({str(tmp_path / 'where')!r}, 'w').write(folder)\n"
        "psutil.Process().kill()"
    )
    assert results(executor, job("a", code))["a"].status == "lost"
    assert not Path((tmp_path / "where").read_text()).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows ends jobs with their parent")
def test_what_a_killed_pool_ran_ends_with_it_and_the_next_one_hears_of_it(tmp_path: Path) -> None:
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from winml.modelkit.dispatch.base import Job\n"
        "from winml.modelkit.dispatch.local import LocalPool\n"
        f"pool = LocalPool(1, notes=Path({str(tmp_path / 'notes')!r}))\n"
        "sleeping = 'import os, time; print(os.getpid(), flush=True); time.sleep(600)'\n"
        "pool.submit(Job('a', (sys.executable, '-c', sleeping)))\n"
        "time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    notes = tmp_path / "notes"
    deadline = time.monotonic() + 60
    while not list(notes.glob("[0-9]*")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    left = int(next(notes.glob("[0-9]*")).name)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert gone(left)
    (notes / str(os.getpid())).write_text("0.0")  # the number went to another process since: that one is left alone
    with LocalPool(1, notes=notes) as pool:
        assert set(pool.ended) == {left, os.getpid()}
    assert gone(left)
    assert not list(notes.glob("[0-9]*"))


def test_trouble_of_the_machine_is_raised_to_whoever_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", refused)
    with LocalPool(1) as pool:
        pool.submit(job("a", ""))
        with pytest.raises(DiskFull):
            pool.wait(30)
