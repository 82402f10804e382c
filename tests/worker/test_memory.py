from __future__ import annotations

import subprocess
import sys

from winml.modelkit.worker.limits import machine_bytes
from winml.modelkit.worker.memory import available_bytes, memory_of


def test_this_process_has_memory_and_a_peak_at_least_as_large() -> None:
    memory = memory_of()
    assert memory is not None
    assert memory["peak_bytes"] >= memory["rss_bytes"] > 2**20


def test_a_process_that_is_gone_cannot_be_asked() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert memory_of(process.pid) is None


def test_no_more_memory_is_free_than_there_is() -> None:
    free, machine = available_bytes(), machine_bytes()
    assert free is not None
    assert machine is not None
    assert 0 < free <= machine
