"""What a pool does on this machine beyond what every executor does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from winml.modelkit.dispatch.base import Job, Result
from winml.modelkit.dispatch.local import LocalPool


def _run(pool: LocalPool, job: Job) -> Result:
    pool.submit(job)
    result = pool.wait(60)
    assert result is not None
    return result


def test_a_job_is_prepared_before_its_program_starts_and_that_is_part_of_its_time(tmp_path: Path) -> None:
    ready = tmp_path / "ready"

    def prepare(job: Job) -> None:
        time.sleep(0.2)
        ready.write_text(job.id, encoding="utf-8")

    code = f"print(open({str(ready)!r}).read())"
    with LocalPool(1, prepare=prepare) as pool:
        done = _run(pool, Job("a", (sys.executable, "-c", code)))
    assert (done.status, done.output.strip()) == ("ok", "a")
    assert done.seconds >= 0.2


def test_time_spent_on_preparing_is_not_given_again() -> None:
    with LocalPool(1, prepare=lambda _: time.sleep(1.5)) as pool:
        done = _run(pool, Job("a", (sys.executable, "-c", "import time; time.sleep(60)"), timeout_s=2.0))
    assert done.status == "timeout"
    assert done.seconds < 30


def test_what_goes_wrong_in_preparing_is_raised_where_results_are_awaited() -> None:
    def prepare(job: Job) -> None:
        raise ZeroDivisionError(job.id)

    with LocalPool(1, prepare=prepare) as pool, pytest.raises(ZeroDivisionError, match="a"):
        _run(pool, Job("a", (sys.executable, "-c", "")))
