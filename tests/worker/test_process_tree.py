from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
