from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.app.autoconfig_sweep import folders_of, read_list
from winml.modelkit.core.errors import RequestError


def test_models_are_relative_to_their_list(tmp_path: Path) -> None:
    for name in ("a.onnx", "sub/b.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "list.txt").write_text("a.onnx\n\n# not this one\nsub/b.onnx  # but this\n")
    assert read_list(str(tmp_path / "list.txt")) == [tmp_path / "a.onnx", tmp_path / "sub" / "b.onnx"]


@pytest.mark.parametrize(("text", "message"), [("# nothing\n", "names no model"), ("gone.onnx\n", "is not there")])
def test_a_list_that_names_nothing_or_what_is_gone_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(RequestError, match=message):
        read_list(str(tmp_path / "list.txt"))


def test_models_of_one_name_get_folders_of_their_own() -> None:
    names = folders_of([Path("a/model.onnx"), Path("b/model.onnx"), Path("c/my model.onnx")])
    assert names == ["model", "model~2", "my-model"]
