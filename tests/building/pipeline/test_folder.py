from __future__ import annotations

import json
from pathlib import Path

import pytest

from build_values import manifest
from winml.modelkit.building.pipeline import folder as folders
from winml.modelkit.core.build_folder import MANIFEST
from winml.modelkit.core.errors import RequestError, RunFailedError, UnavailableError
from winml.modelkit.store import digest

A, B = digest.of_bytes(b"a"), digest.of_bytes(b"b")


def built(folder: Path, identity: str = A, *, files: tuple[str, ...] = ("model.onnx",)) -> Path:
    with folders.writing(folder) as staged:
        for name in files:
            (staged / name).write_text("content")
        folders.write_json(staged / MANIFEST, manifest(identity=identity, folder=files))
    return folder


def test_a_new_folder_and_an_empty_one_are_free(tmp_path: Path) -> None:
    assert folders.look(tmp_path / "new") is None
    assert folders.look(tmp_path) is None


def test_a_folder_appears_only_when_everything_is_in_it(tmp_path: Path) -> None:
    with folders.writing(tmp_path / "out") as staged:
        (staged / "model.onnx").write_text("half")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out" / "model.onnx").read_text() == "half"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    built(tmp_path / "out")

    def fail() -> None:
        with folders.writing(tmp_path / "out") as staged:
            (staged / "model.onnx").write_text("new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert (tmp_path / "out" / "model.onnx").read_text() == "content"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_ctrl_c_while_folders_change_places_leaves_the_old_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path / "out")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if target == tmp_path / "out" and (self / "new").exists():
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        built(tmp_path / "out", files=("new",))
    assert (tmp_path / "out" / "model.onnx").read_text() == "content"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_files_that_came_while_the_build_ran_are_left_alone(tmp_path: Path) -> None:
    built(tmp_path / "out")

    def build() -> None:
        with folders.writing(tmp_path / "out") as staged:
            (staged / "model.onnx").write_text("new")
            (tmp_path / "out" / "notes.txt").write_text("mine")

    with pytest.raises(RequestError, match="`notes.txt`"):
        build()
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_a_folder_that_another_process_made_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def second(self: Path, target: Path) -> Path:
        target.mkdir()
        (target / "theirs").write_text("theirs")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second)
    with pytest.raises(RunFailedError, match="another process"):
        built(tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["theirs"]


def test_a_mount_point_is_refused_with_a_place_inside_it() -> None:
    with pytest.raises(RequestError, match="mount point"):
        folders._refuse_mount_point(Path(Path.cwd().anchor))


@pytest.mark.symlink
def test_a_link_to_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    built(folders.place(str(tmp_path / "link")))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "link" / "model.onnx").read_text() == "content"
    assert {p.name for p in tmp_path.iterdir()} == {"link", "real"}


def test_the_same_build_may_go_over_itself_and_another_one_may_not(tmp_path: Path) -> None:
    built(tmp_path / "out", A)
    folders.check(tmp_path / "out", A, overwrite=False)
    with pytest.raises(RequestError, match="another build") as caught:
        folders.check(tmp_path / "out", B, overwrite=False)
    assert "--overwrite" in (caught.value.hint or "")
    folders.check(tmp_path / "out", B, overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_that_are_not_of_a_build_are_never_replaced(tmp_path: Path, overwrite: bool) -> None:
    built(tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(RequestError, match="`notes.txt`"):
        folders.check(tmp_path / "out", A, overwrite=overwrite)


def test_a_folder_without_our_manifest_is_foreign_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("somebody's")
    (tmp_path / MANIFEST).write_text(json.dumps({"schema": "other/1", "folder": ["model.onnx"]}))
    with pytest.raises(RequestError, match="not belong to a build"):
        folders.check(tmp_path, A, overwrite=True)


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    with pytest.raises(RequestError, match="is a file"):
        folders.look(tmp_path / "out")


def test_a_parent_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="parent not found"):
        folders.look(tmp_path / "a" / "b")


def test_a_full_disk_is_our_error_and_leaves_nothing(tmp_path: Path) -> None:
    def fill() -> None:
        with folders.writing(tmp_path / "out"):
            raise OSError(28, "No space left on device")

    with pytest.raises(UnavailableError, match="disk full"):
        fill()
    assert list(tmp_path.iterdir()) == []
