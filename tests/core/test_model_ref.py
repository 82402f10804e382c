"""What a word after `-m` means."""

from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.core.errors import RequestError
from winml.modelkit.core.model_ref import ModelRef, parse


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("org/name", ModelRef("org/name", "hub")),
        ("org/name@v1.0", ModelRef("org/name", "hub", "v1.0")),
        ("org/name@refs/pr/3", ModelRef("org/name", "hub", "refs/pr/3")),
        ("org/name/onnx/model.onnx", ModelRef("org/name/onnx/model.onnx", "hub-file")),
        ("org/name/model.onnx@main", ModelRef("org/name/model.onnx", "hub-file", "main")),
        ("model.onnx", ModelRef("model.onnx", "file")),
        ("models/missing.onnx", ModelRef("models/missing.onnx", "file")),
        ("../org/name", ModelRef("../org/name", "file")),
        ("/org/name", ModelRef("/org/name", "file")),
        ("", ModelRef("", "file")),
        ("name", ModelRef("name", "file")),
    ],
)
def test_a_word_that_is_nothing_here(word: str, expected: ModelRef) -> None:
    found = parse(word)
    assert found == expected
    assert str(found) == word


def test_what_is_on_this_machine_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert parse("org/name").kind == "file"  # a folder that is neither; opening it says so
    (tmp_path / "org" / "name" / "config.json").write_text("{}")
    assert parse("org/name").kind == "folder"
    (tmp_path / "org" / "name" / "model.onnx").write_bytes(b"x")
    assert parse("org/name").kind == "build"
    assert parse("org/other").kind == "file", "a neighbour of what is here is a misspelt path"
    assert parse("elsewhere/other").kind == "hub"


def test_a_hub_file_knows_its_repository() -> None:
    ref = parse("org/name/onnx/model.onnx")
    assert (ref.repo, ref.file) == ("org/name", "onnx/model.onnx")


def test_a_revision_is_for_models_of_the_hub(tmp_path: Path) -> None:
    assert str(parse("org/name").at("main")) == "org/name@main"
    assert parse("org/name").at(None).revision is None
    with pytest.raises(RequestError, match="is a local model and has no revision"):
        parse(str(tmp_path)).at("main")
    with pytest.raises(RequestError, match="give two different revisions"):
        parse("org/name@a").at("b")
