from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from winml.modelkit.core.location import JOB_VARIABLE, work_owner
from winml.modelkit.dispatch.node_command import tidying
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
    told: list[dict[str, Any]] = []
    tell = tidying(told.append)
    tell({"event": "job", "job": "a"})
    assert left.exists()
    tell({"event": "cleared", "pids": (41,)})
    assert (left.exists(), other.exists()) == (False, True)
    tell({"event": "ended", "job": "a", "pids": (412,)})
    assert not other.exists()
    assert [event["event"] for event in told] == ["job", "ended"]
