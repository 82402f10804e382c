"""Names and paths that Windows does not take."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from winml.modelkit.core import file_names
from winml.modelkit.core.errors import UnavailableError, of_system
from winml.modelkit.core.file_names import fit_name, too_long, unfit_name, unfit_path
from winml.modelkit.core.inside import stays_inside


@pytest.fixture
def short_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that refuses long paths, as Windows does unless it was told otherwise."""
    monkeypatch.setattr(file_names, "_is_limited", lambda: True)


@pytest.mark.parametrize(
    "name", ["con", "NUL", "aux.txt", "Com1.onnx", "lpt¹", "conin$", "nul .x", "a.", "a ", "a:b", "a?", "a\\b", "\x07"]
)
def test_a_name_that_windows_cannot_have(name: str) -> None:
    assert unfit_name(name) is not None


@pytest.mark.parametrize("name", ["console", "com", "com10", "lpt", ".con", "model.onnx", "a b", "größe", "a.b.c"])
def test_a_name_that_all_systems_can_have(name: str) -> None:
    assert unfit_name(name) is None
    assert fit_name(name) == name


@pytest.mark.parametrize(
    ("name", "made"),
    [("con", "model-con"), ("nul.v1", "model-nul.v1"), ("v1..", "v1"), ("...", "model"), ("", "model")],
)
def test_a_name_is_made_fit(name: str, made: str) -> None:
    assert fit_name(name) == made
    assert unfit_name(made) is None


@pytest.mark.windows
@pytest.mark.parametrize("path", ["NUL", "out\\con.json", "a.", "C:\\x\\a:b", "\\\\server\\share\\aux"])
def test_a_path_that_windows_would_take_for_something_else(path: str) -> None:
    assert unfit_path(Path(path)) is not None


@pytest.mark.windows
@pytest.mark.parametrize("path", ["C:\\x\\y", "C:y", "..\\a", ".", "\\\\server\\share\\a", "\\\\?\\C:\\x"])
def test_a_path_that_means_what_it_says(path: str) -> None:
    assert unfit_path(Path(path)) is None


def test_a_path_is_too_long_from_260_characters_on_and_that_of_a_folder_from_248(tmp_path: Path) -> None:
    def path(count: int) -> str:
        return str(tmp_path / "a").ljust(count, "a")

    assert too_long(path(259), limited=True) is None
    assert too_long(path(260), limited=True) == "the path has 260 characters, and Windows allows 259 here"
    assert too_long(path(247), folder=True, limited=True) is None
    assert too_long(path(248), folder=True, limited=True) is not None
    assert too_long(path(400), limited=False) is None


def test_windows_counts_in_units_of_16_bits(tmp_path: Path) -> None:
    assert too_long(tmp_path / ("😀" * 130), limited=True) is not None


@pytest.mark.usefixtures("short_paths")
@pytest.mark.parametrize("writing", [False, True])
def test_something_not_there_below_a_long_path_is_told_as_what_it_is(tmp_path: Path, *, writing: bool) -> None:
    path = tmp_path / ("a" * 200) / ("b" * 100)
    found = of_system(FileNotFoundError(errno.ENOENT, "No such file or directory", str(path)), writing=writing)
    assert isinstance(found, UnavailableError)
    assert f"{len(str(path))} characters" in found.message
    assert "LongPathsEnabled" in (found.hint or "")


@pytest.mark.usefixtures("short_paths")
def test_something_not_there_below_a_short_path_is_not_told_as_long(tmp_path: Path) -> None:
    assert of_system(FileNotFoundError(errno.ENOENT, "No such file or directory", str(tmp_path / "a"))) is None


@pytest.mark.windows
def test_a_device_is_no_file_of_a_folder() -> None:
    assert not stays_inside("weights/con")
    assert not stays_inside("NUL.data")
    assert stays_inside("weights/content.data")
