"""Temporary folders go with their owner, at the latest when the next one comes; those of the living stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from winml.modelkit.worker import scratch
from winml.modelkit.worker.scratch import ScratchFolder

MAKES = """
import sys, time
from pathlib import Path
from winml.modelkit.worker.scratch import ScratchFolder
made = ScratchFolder("winml-worker-", within=Path(sys.argv[1]))
(made.path / "big").write_text("x")
print(made.path, flush=True)
time.sleep(600)
"""


def test_only_the_folders_of_dead_owners_are_swept(tmp_path: Path) -> None:
    foreign = tmp_path / "winml-mine"
    foreign.mkdir()
    if sys.platform != "win32":  # there a link needs a privilege
        (tmp_path / "winml-link").symlink_to(foreign, target_is_directory=True)
    with (
        ScratchFolder("winml-compare-", within=tmp_path) as living,
        subprocess.Popen([sys.executable, "-c", MAKES, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other,
    ):
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        assert scratch.sweep(tmp_path) == []
        assert (left / "big").exists()
        other.kill()
        other.wait()
        assert scratch.sweep(tmp_path) == [left]
        kept = {living.name, "winml-mine"} | ({"winml-link"} if sys.platform != "win32" else set())
        assert {path.name for path in tmp_path.iterdir()} == kept
    assert not living.exists()


@pytest.mark.posix("the folder of an open file cannot be swept")
def test_a_folder_that_was_swept_while_it_was_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = scratch._try_lock
    swept: list[Path] = []

    def swept_first(file: int) -> bool:
        monkeypatch.setattr(scratch, "_try_lock", real)
        swept.extend(scratch.sweep(tmp_path))
        return real(file)

    monkeypatch.setattr(scratch, "_try_lock", swept_first)
    made = ScratchFolder("winml-worker-", within=tmp_path)
    assert len(swept) == 1
    assert made.path != swept[0]
    assert list(tmp_path.iterdir()) == [made.path]
    assert scratch.sweep(tmp_path) == []
    made.close()


def test_without_locks_a_folder_works_and_is_never_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(scratch, "_try_lock", lambda _: False)
        made = ScratchFolder("winml-worker-", within=tmp_path)
    assert scratch.sweep(tmp_path) == []
    made.close()
    made.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="gives a folder to another user")
def test_the_folder_of_another_user_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "winml-worker-theirs"
    folder.mkdir()
    (folder / scratch.OWNER).touch()
    os.chown(folder, 12345, 12345)
    assert scratch.sweep(tmp_path) == []


def test_a_root_that_cannot_be_listed_is_no_trouble(tmp_path: Path) -> None:
    assert scratch.sweep(tmp_path / "missing") == []
