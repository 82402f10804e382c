"""What can be wrong with a model path, on a real file system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from winml.modelkit.core.errors import ModelFileError, UnavailableError
from winml.modelkit.core.model_file import require_model_file

needs_permissions = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="root reads every file, and Windows has no mode bits that forbid reading",
)
needs_links = pytest.mark.skipif(os.name == "nt", reason="making a link needs a privilege on Windows")
needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def written(path: Path) -> Path:
    path.write_bytes(b"\x08\x0a")
    return path


def test_a_readable_file_is_returned_as_it_is(tmp_path: Path) -> None:
    assert require_model_file(written(tmp_path / "model.onnx")) == tmp_path / "model.onnx"


def test_text_and_path_mean_the_same(tmp_path: Path) -> None:
    model = written(tmp_path / "model.onnx")
    assert require_model_file(str(model)) == require_model_file(model)


@pytest.mark.parametrize("name", ["my model.onnx", "modèle-模型-😀.onnx", "model", "-m.onnx", "a=b;$(x).onnx"])
def test_spaces_and_characters_of_any_language_are_fine(tmp_path: Path, name: str) -> None:
    assert require_model_file(written(tmp_path / name)) == tmp_path / name


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    found = require_model_file("model.onnx")
    assert found == tmp_path / "model.onnx"
    assert found.is_absolute()


def test_a_missing_file_is_named_as_the_user_wrote_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelFileError) as caught:
        require_model_file("models/missing.onnx")
    assert caught.value.message == "model file not found: `models/missing.onnx`"
    assert caught.value.hint == "`-m` takes an .onnx file, a folder, or a model of the Hugging Face hub as ORG/NAME"


def test_a_file_taken_for_a_folder_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="model file not found"):
        require_model_file(written(tmp_path / "model.onnx") / "model.onnx")


def test_a_directory_is_refused_with_what_to_name_instead(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError) as caught:
        require_model_file(tmp_path)
    assert caught.value.message == f"model `{tmp_path}` is a directory"
    assert (caught.value.hint or "").startswith("name the .onnx file")


def test_an_empty_file_is_refused_with_its_likely_cause(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").touch()
    with pytest.raises(ModelFileError) as caught:
        require_model_file(tmp_path / "model.onnx")
    assert caught.value.message == f"model file is empty: `{tmp_path / 'model.onnx'}`"
    assert caught.value.hint == "the download or export did not finish"


@pytest.mark.parametrize("name", ["model\0.onnx", "m" * 5000 + ".onnx", "", "a/" * 5000 + "m.onnx"])
def test_a_name_no_file_system_takes_is_a_wrong_request(name: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        require_model_file(name)
    assert caught.value.exit_code == 2


@needs_permissions
def test_a_file_that_may_not_be_read_is_fine_elsewhere(tmp_path: Path) -> None:
    written(tmp_path / "model.onnx").chmod(0)
    with pytest.raises(UnavailableError, match="cannot be read") as caught:
        require_model_file(tmp_path / "model.onnx")
    assert caught.value.exit_code == 3


@needs_permissions
def test_a_folder_that_may_not_be_entered_is_fine_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    written(folder / "model.onnx")
    folder.chmod(0)
    try:
        with pytest.raises(UnavailableError, match="cannot be read"):
            require_model_file(folder / "model.onnx")
    finally:
        folder.chmod(0o700)


@needs_links
def test_a_link_to_nothing_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").symlink_to(tmp_path / "gone.onnx")
    with pytest.raises(ModelFileError, match="model file not found"):
        require_model_file(tmp_path / "model.onnx")


@needs_links
def test_a_linked_model_stays_beside_its_external_data(tmp_path: Path) -> None:
    # The cache of the Hugging Face hub: `snapshots/<revision>/model.onnx` links to `blobs/<digest>`.
    (tmp_path / "blobs").mkdir()
    (tmp_path / "snapshots").mkdir()
    link = tmp_path / "snapshots" / "model.onnx"
    link.symlink_to(written(tmp_path / "blobs" / "0a1b2c"))
    assert require_model_file(link) == link


@needs_pipes
def test_a_pipe_is_refused_because_it_can_be_read_only_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.onnx")
    # Open for both directions with a byte inside, so that nothing blocks here.
    pipe = os.open(tmp_path / "model.onnx", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(pipe, b"\x08")
        with pytest.raises(ModelFileError):
            require_model_file(tmp_path / "model.onnx")
    finally:
        os.close(pipe)
