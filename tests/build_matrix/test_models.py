from __future__ import annotations

from pathlib import Path

import pytest

from winml.modelkit.build_matrix.models import MatrixModel, check_models, make_model, of_priority, parse_list
from winml.modelkit.core.errors import RequestError


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name in ("a.onnx", "x/model.onnx", "y/model.onnx", "with space.onnx", "calib.npz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"m")
    return tmp_path


def _parsed(text: str, base: Path) -> list[MatrixModel]:
    return parse_list(text, base, source="list.txt")


def test_a_line_holds_a_model_with_task_priority_name_and_data(base: Path) -> None:
    text = """
    # comment
    a.onnx task=image-classification priority=P0 calibration=calib.npz  # more
    microsoft/resnet-50 task=image-classification priority=P1
    'with space.onnx' name=spaced
    """
    first, hub, spaced = _parsed(text, base)
    assert first == MatrixModel(str(base / "a.onnx"), "a", "image-classification", "P0", str(base / "calib.npz"))
    assert hub == MatrixModel("microsoft/resnet-50", "microsoft/resnet-50", "image-classification", "P1")
    assert (spaced.source, spaced.name) == (str(base / "with space.onnx"), "spaced")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_list_is_an_error(text: str, base: Path) -> None:
    with pytest.raises(RequestError, match="lists no models"):
        _parsed(text, base)
    with pytest.raises(RequestError, match="no models"):
        check_models([])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gone.onnx", "line 2: model not found: `gone.onnx`"),
        ("./gone", "model not found"),
        ("a.onnx taks=x", "unknown key `taks`"),
        ("a.onnx P0", "expected KEY=VALUE but got `P0`"),
        ("a.onnx task=", "expected KEY=VALUE"),
        ("a.onnx task=x task=y", "`task` is given twice"),
        ("a.onnx calibration=gone.npz", "calibration data not found"),
        ("'a.onnx", "no closing quotation"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_with_its_number(line: str, message: str, base: Path) -> None:
    with pytest.raises(RequestError, match=message):
        _parsed(f"# list\n{line}\n", base)


def test_only_what_is_not_onnx_is_exported_for_its_task(base: Path) -> None:
    (base / "folder").mkdir()
    found = {word: make_model(word, base).is_exported for word in ("a.onnx", "x", "folder", "org/bert", "org/n/f.onnx")}
    assert found == {"a.onnx": False, "x": False, "folder": True, "org/bert": True, "org/n/f.onnx": True}


def test_a_model_that_stands_there_twice_is_an_error_but_two_tasks_of_it_are_not(base: Path) -> None:
    with pytest.raises(RequestError, match="twice"):
        check_models(_parsed("a.onnx\n./a.onnx", base))
    both = check_models(_parsed("org/bert task=fill-mask\norg/bert task=text-classification", base))
    assert [m.folder for m in both] == ["org-bert-fill-mask", "org-bert-text-classification"]


def test_names_that_would_be_one_are_an_error_that_names_both(base: Path) -> None:
    assert [m.name for m in check_models(_parsed("x/model.onnx\ny/model.onnx", base))] == ["x", "y"]
    with pytest.raises(RequestError, match="`org/a.b` and `org/a-b` would both be called `org-a-b`"):
        check_models(_parsed("org/a.b\norg/a-b", base))
    assert len(check_models(_parsed("org/a.b\norg/a-b name=other", base))) == 2


def test_names_of_300_characters_stay_apart_and_short(base: Path) -> None:
    models = check_models([make_model("o/" + "x" * 300 + end, base) for end in "ab"])
    assert len({m.folder for m in models}) == 2
    assert all(len(m.folder) <= 100 for m in models)


def test_priority_filters_in_any_case_and_says_which_there_are(base: Path) -> None:
    models = _parsed("a.onnx priority=P0\norg/b priority=P1\norg/c", base)
    assert [m.name for m in of_priority(models, "p0")] == ["a"]
    assert of_priority(models, None) == models
    with pytest.raises(RequestError, match="no model has the priority `P7`") as caught:
        of_priority(models, "P7")
    assert caught.value.hint == "priorities in the list: P0, P1"
