from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from search_world import make_result
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.render.autoconfig_sweep import effect_words, sweep_markdown
from winml.modelkit.search.prepare import AutoconfigRequest
from winml.modelkit.search.result import SweepResult, SweepRow, count_effects
from winml.modelkit.search.sweep import LOCK, SweepRequest, folders_of, read_list, sweep
from winml.modelkit.search.trial import Note


def test_models_are_relative_to_their_list(tmp_path: Path) -> None:
    for name in ("a.onnx", "sub/b.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "list.txt").write_text("a.onnx\n\n# not this one\nsub/b.onnx  # but this\n")
    assert read_list(str(tmp_path / "list.txt")) == [str(tmp_path / "a.onnx"), str(tmp_path / "sub" / "b.onnx")]


@pytest.mark.parametrize(("text", "message"), [("# nothing\n", "lists no model"), ("gone.onnx\n", "does not exist")])
def test_a_list_that_names_nothing_or_what_is_gone_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(RequestError, match=message):
        read_list(str(tmp_path / "list.txt"))


def test_a_list_takes_folders_and_models_of_the_hub(tmp_path: Path) -> None:
    (tmp_path / "my-bert").mkdir()
    (tmp_path / "list.txt").write_text("my-bert\nfacebook/dinov2-small\nORG/NAME@v1.0\n")
    found = read_list(str(tmp_path / "list.txt"))
    assert found == [str(tmp_path / "my-bert"), "facebook/dinov2-small", "ORG/NAME@v1.0"]
    assert folders_of([*found, "other/dinov2-small"]) == ["my-bert", "dinov2-small", "NAME", "dinov2-small~2"]


def test_a_misspelt_path_is_no_model_of_the_hub(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "list.txt").write_text("models/gone\n")
    with pytest.raises(RequestError, match="does not exist"):
        read_list(str(tmp_path / "list.txt"))


def test_the_summary_says_which_findings_acted_and_how_many_convolutions_there_are() -> None:
    notes = [
        Note(kind="skip", knob="a", level="1", source="npu-006", reason=""),
        Note(kind="boost", knob="a", level="2", source="npu-001", reason=""),
        Note(kind="order", knob="a", level="3", source="npu-006", reason=""),
        Note(kind="skip", knob="a", level="4", source="graph", reason=""),
    ]
    effects = count_effects(notes)
    assert [effect_words(effect) for effect in effects] == ["npu-006 skipped 1 and moved 1", "npu-001 moved 1"]
    best = make_result(folder="m", champion_folder="m/champion", next_="").champion
    row = SweepRow(
        model="m.onnx", folder="m", error=None, champion=best, trials=2, node=None, conv_share=0.25,
        findings=effects,
    )  # fmt: skip
    text = sweep_markdown(SweepResult(folder="out", models=(row,), total=1, notes=(), next=""))
    assert "25%" in text
    assert "npu-006 skipped 1 and moved 1, npu-001 moved 1" in text


def test_models_of_one_name_get_folders_of_their_own() -> None:
    names = folders_of(["a/model.onnx", "b/Model.onnx", "c/my model.onnx"])
    assert names == ["model", "Model~2", "my-model"]


def test_a_list_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RequestError, match="is not a text file"):
        read_list(str(tmp_path / "list.txt"))


def test_a_model_named_like_a_device_of_windows_gets_a_folder_that_is_none() -> None:
    assert folders_of(["con.onnx", "v1..onnx", "b/CON.onnx"]) == ["model-con", "v1", "model-CON~2"]


def test_a_number_sign_inside_a_name_is_no_comment(tmp_path: Path) -> None:
    (tmp_path / "c#.onnx").touch()
    (tmp_path / "list.txt").write_text("c#.onnx # the first\n")
    assert read_list(str(tmp_path / "list.txt")) == [str(tmp_path / "c#.onnx")]


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
