"""Places that are looked at before anything is written there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from winml.modelkit.core import file_names
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.store import atomic


@pytest.mark.windows
@pytest.mark.parametrize("name", ["NUL", "con.json", "result.", "result.json:stream", "what?.json"])
def test_a_name_that_windows_takes_for_something_else_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestError, match="cannot write"):
        atomic.check_place(tmp_path / name)


def test_a_place_with_too_long_a_path_is_refused_with_what_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_names, "_is_limited", lambda: True)
    with pytest.raises(UnavailableError, match="characters, and Windows allows 259 here") as caught:
        atomic.check_place(tmp_path / ("a" * 130) / ("b" * 130))
    assert "LongPathsEnabled" in (caught.value.hint or "")


def test_a_file_that_somebody_reads_for_a_moment_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    reader = path.open("rb")
    timer = threading.Timer(0.05, reader.close)
    timer.start()
    atomic.write_bytes(path, b"new")
    timer.join()
    assert path.read_bytes() == b"new"
