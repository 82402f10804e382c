from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import pytest

from winml.modelkit.core import patience
from winml.modelkit.core.json_text import read_json
from winml.modelkit.store import atomic, journal


def _hold(path: Path, seconds: float) -> threading.Timer:
    """Open a file for this process alone and close it after some seconds."""
    assert sys.platform == "win32"
    import ctypes
    from ctypes import wintypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateFileW.restype = wintypes.HANDLE
    handle = wintypes.HANDLE(kernel.CreateFileW(str(path), 0x8000_0000, 0, None, 3, 0, None))
    assert handle.value not in (None, wintypes.HANDLE(-1).value)
    timer = threading.Timer(seconds, lambda: kernel.CloseHandle(handle))
    timer.start()
    return timer


@pytest.mark.windows
@pytest.mark.parametrize("read", [read_json, journal.read], ids=["json", "journal"])
def test_a_file_that_somebody_else_has_for_a_moment_is_read(tmp_path: Path, read: object) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(journal.encode(0, {"a": 1}))
    holder = _hold(path, 0.2)
    assert callable(read)
    assert read(path)
    holder.join()


@pytest.mark.windows
def test_a_file_that_somebody_else_keeps_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_READING_S", 0.05)
    path = tmp_path / "state.json"
    path.write_bytes(b"{}")
    holder = _hold(path, 0.5)
    with pytest.raises(PermissionError):
        read_json(path)
    holder.join()


def test_a_folder_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(PermissionError if sys.platform == "win32" else IsADirectoryError):
        read_json(tmp_path)
    assert waits == []


def test_what_is_replaced_all_the_time_can_be_read_all_the_time(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    atomic.write_bytes(path, b'{"n": 0}')
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for n in range(1, 60):
                atomic.write_bytes(path, json.dumps({"n": n}).encode())
        except BaseException as error:  # noqa: BLE001 - a thread has nobody to raise to
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    while writer.is_alive():
        seen.append(read_json(path)["n"])
        time.sleep(0.01)  # a file that is open without end cannot be replaced on Windows
    writer.join()
    assert failed == []
    assert seen == sorted(seen)
    assert read_json(path) == {"n": 59}


class _Refused(OSError):
    winerror = 1359


def test_a_process_that_cannot_be_started_for_a_moment_is_started_later() -> None:
    answers: list[OSError | None] = [_Refused(), _Refused(), None]

    def start() -> str:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return "started"

    assert patience.starting(start) == "started"
    assert answers == []


def test_a_program_that_does_not_exist_is_not_started_again() -> None:
    calls = []

    def start() -> None:
        calls.append(1)
        raise FileNotFoundError("no such program")

    with pytest.raises(FileNotFoundError):
        patience.starting(start)
    assert len(calls) == 1
