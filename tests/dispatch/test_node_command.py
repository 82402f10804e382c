from __future__ import annotations

import os
from pathlib import Path

import pytest

from winml.modelkit.core.events import Event
from winml.modelkit.core.location import JOB_VARIABLE, work_owner
from winml.modelkit.dispatch.events import JobEnded, JobStarted, LeftoversEnded
from winml.modelkit.dispatch.node_command import clean_after_jobs
from winml.modelkit.store.cache import Cache


def test_what_a_job_was_ended_over_goes_from_the_cache_of_its_node(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WINML_CACHE", str(tmp_path))
    assert work_owner() == os.getpid()
    monkeypatch.setenv(JOB_VARIABLE, "41")
    left = tmp_path / f"{Cache.work_prefix(work_owner())}x"
    other = tmp_path / f"{Cache.work_prefix(412)}x"
    left.mkdir()
    other.mkdir()
    told: list[Event] = []
    tell = clean_after_jobs(told.append)
    started, ended = JobStarted("a"), JobEnded("a", "ok", 1.0, (412,))
    tell(started)
    assert left.exists()
    tell(LeftoversEnded((41,)))
    assert (left.exists(), other.exists()) == (False, True)
    tell(ended)
    assert not other.exists()
    assert told == [started, ended]
