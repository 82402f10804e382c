"""What a folder holds, and which paths may be written."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feed_zoo import filled
from winml.modelkit.core.errors import DataError, RequestError
from winml.modelkit.feed.content import Content, FeedDamaged, FileEntry, decode, scan, unsafe
from winml.modelkit.store import digest

ONE = FileEntry(digest.of_bytes(b"x"), 1)


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a/", "C:/x", "C:x", "\\\\host\\x", "..\\x", "a\\b",
        "a\0b", "a\nb", "con", "NUL.txt", "a/com1", "a.", "a ", "x?", "a*", ".winml-pull/x", "x" * 401, "f.txt:stream",
    ],
)  # fmt: skip
def test_paths_that_lead_elsewhere_on_some_system_are_refused(path: str) -> None:
    with pytest.raises(DataError):
        Content({path: ONE})


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4).map("/".join))
def test_a_path_that_is_allowed_stays_below_its_folder(path: str) -> None:
    if unsafe(path) is None:
        root = Path("/root/of/it")
        assert Path(os.path.normpath(root / path)).is_relative_to(root)
        assert os.path.normpath(root / path) != str(root)


@pytest.mark.parametrize("paths", [("a", "A"), ("x/a", "X/A"), ("a", "a/b"), ("A", "a/b/c")])
def test_names_that_cannot_lie_in_one_folder_everywhere_are_refused(paths: tuple[str, str]) -> None:
    with pytest.raises(DataError):
        Content(dict.fromkeys(paths, ONE))


def test_the_digest_covers_names_and_contents_but_not_order() -> None:
    other = FileEntry(digest.of_bytes(b"y"), 1)
    assert Content({"a": ONE, "b": other}).digest == Content({"b": other, "a": ONE}).digest
    assert len({Content({"a": ONE}).digest, Content({"b": ONE}).digest, Content({"a": other}).digest}) == 3


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("**", {"m.onnx", "m.onnx.data", "qnn_npu/m.onnx", "qnn_npu/deep/x"}),
        ("*", {"m.onnx", "m.onnx.data"}),
        ("m.onnx*", {"m.onnx", "m.onnx.data"}),
        ("qnn_npu/*", {"qnn_npu/m.onnx"}),
        ("**/m.onnx", {"m.onnx", "qnn_npu/m.onnx"}),
        ("m.onn?", {"m.onnx"}),
        ("m.onn[x]", set()),
        ("", set()),
    ],
)
def test_a_pattern_stays_within_a_folder_unless_it_says_so(pattern: str, fits: set[str]) -> None:
    files = dict.fromkeys(("m.onnx", "m.onnx.data", "qnn_npu/m.onnx", "qnn_npu/deep/x"), ONE)
    assert set(Content(files).select(pattern).files) == fits


def test_a_pattern_may_name_the_folder_that_a_version_will_lie_in() -> None:
    content = Content(dict.fromkeys(("m.onnx", "x/m.onnx"), ONE))
    assert set(content.select("qnn_npu/m*", below="qnn_npu").files) == {"m.onnx"}
    assert set(content.select("ov_npu/m*", below="qnn_npu").files) == set()


def test_a_folder_is_read_without_left_overs_of_interrupted_work(tmp_path: Path) -> None:
    folder = filled(tmp_path / "f", m=b"m", sub__n=b"n")
    filled(folder / ".winml-pull", part=b"p")
    (folder / ".winml-tmp-1").write_bytes(b"t")
    (folder / ".hidden").write_bytes(b"h")
    assert set(scan(folder).content.files) == {"m.bin", "sub/n.bin", ".hidden"}


def test_empty_and_missing_folders_are_wrong_requests(tmp_path: Path) -> None:
    (tmp_path / "empty" / "sub").mkdir(parents=True)
    with pytest.raises(RequestError, match="contains no files"):
        scan(tmp_path / "empty")
    with pytest.raises(RequestError, match="not found"):
        scan(tmp_path / "none")


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_a_link_to_a_file_is_its_content_and_one_to_a_folder_or_nowhere_is_refused(tmp_path: Path) -> None:
    folder = filled(tmp_path / "f", m=b"m")
    (folder / "link.bin").symlink_to("m.bin")
    assert len(set(scan(folder).content.files.values())) == 1
    (folder / "loop").symlink_to(folder)
    with pytest.raises(RequestError, match="link to a folder"):
        scan(folder)
    (folder / "loop").unlink()
    (folder / "gone").symlink_to("nowhere")
    with pytest.raises(RequestError, match="not a readable file"):
        scan(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"digest": digest.of_bytes(b"other")}, {"schema": "winml/feed-content/2"}, {"files": {"../x": ONE.to_json()}},
        {"files": {"m": {"digest": "sha256:short", "bytes": 1}}}, {"files": {"m": {"digest": ONE.digest, "bytes": -1}}},
        {"files": {"m": {"digest": ONE.digest, "bytes": True}}}, {"files": []}, {"files": None},
    ],
)  # fmt: skip
def test_a_list_of_files_that_does_not_fit_itself_is_damaged(change: dict[str, object]) -> None:
    value = Content({"m": ONE}).to_json()
    assert decode(json.dumps(value).encode(), source="x") == Content({"m": ONE})
    with pytest.raises(FeedDamaged):
        decode(json.dumps(value | change).encode(), source="x")


@given(st.binary(max_size=200))
def test_any_other_bytes_are_damaged(raw: bytes) -> None:
    with pytest.raises(FeedDamaged):
        decode(raw, source="x")


@pytest.mark.symlink
def test_a_link_out_of_the_folder_is_not_published(tmp_path: Path) -> None:
    folder = filled(tmp_path / "build", model=b"m")
    (tmp_path / "secret").write_text("secret")
    try:
        (folder / "inside.bin").symlink_to("model.bin")
        (folder / "notes.bin").symlink_to(tmp_path / "secret")
    except OSError:
        pytest.skip("this account may not make links")
    with pytest.raises(RequestError, match="link to a file outside the folder"):
        scan(folder)
    (folder / "notes.bin").unlink()
    assert set(scan(folder).content.files) == {"model.bin", "inside.bin"}
