from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from winml.modelkit.core.errors import DiskFull
from winml.modelkit.dispatch.base import PYTHON, Job
from winml.modelkit.dispatch.run import run_job


def test_a_full_disk_is_said_also_when_the_job_could_not_say_it(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    fill = "f = open('f', 'wb', buffering=0)\nwhile True: f.write(bytes(4096))"
    with pytest.raises(DiskFull, match="disk full"):
        run_job(Job("a", (PYTHON, "-c", fill)))
    assert not list(small_disk.iterdir())
