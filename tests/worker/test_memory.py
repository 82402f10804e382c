from __future__ import annotations

import subprocess
import sys

from winml.modelkit.worker.memory import memory_of


def test_this_process_has_memory_and_a_peak_at_least_as_large() -> None:
    memory = memory_of()
    assert memory is not None
    assert memory["peak_bytes"] >= memory["rss_bytes"] > 2**20


def test_a_process_that_is_gone_cannot_be_asked() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert memory_of(process.pid) is None
