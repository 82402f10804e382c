from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.sweep import LOCK, SweepRequest, folders_of, read_list, sweep


def test_models_are_relative_to_their_list(tmp_path: Path) -> None:
    for name in ("a.onnx", "sub/b.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "list.txt").write_text("a.onnx\n\n# not this one\nsub/b.onnx  # but this\n")
    assert read_list(str(tmp_path / "list.txt")) == [tmp_path / "a.onnx", tmp_path / "sub" / "b.onnx"]


@pytest.mark.parametrize(("text", "message"), [("# nothing\n", "lists no model"), ("gone.onnx\n", "does not exist")])
def test_a_list_that_names_nothing_or_what_is_gone_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(RequestError, match=message):
        read_list(str(tmp_path / "list.txt"))


def test_models_of_one_name_get_folders_of_their_own() -> None:
    names = folders_of([Path("a/model.onnx"), Path("b/Model.onnx"), Path("c/my model.onnx")])
    assert names == ["model", "Model~2", "my-model"]


def test_a_list_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RequestError, match="is not a text file"):
        read_list(str(tmp_path / "list.txt"))


def test_a_model_named_like_a_device_of_windows_gets_a_folder_that_is_none() -> None:
    assert folders_of([Path("con.onnx"), Path("v1..onnx"), Path("b/CON.onnx")]) == ["model-con", "v1", "model-CON~2"]


def test_a_number_sign_inside_a_name_is_no_comment(tmp_path: Path) -> None:
    (tmp_path / "c#.onnx").touch()
    (tmp_path / "list.txt").write_text("c#.onnx # the first\n")
    assert read_list(str(tmp_path / "list.txt")) == [tmp_path / "c#.onnx"]


def test_two_sweeps_in_one_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").touch()
    (tmp_path / "list.txt").write_text("a.onnx\n")
    (tmp_path / "out").mkdir()
    each = AutoconfigRequest(model="", output=str(tmp_path / "out"), resume=True)
    with (
        FileLock(tmp_path / "out" / LOCK),
        pytest.raises(UnavailableError, match="is in use by another process"),
    ):
        sweep(SweepRequest(str(tmp_path / "list.txt"), each), lambda event: None)
