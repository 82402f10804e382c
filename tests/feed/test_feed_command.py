from __future__ import annotations

import json
from pathlib import Path

import pytest

from feed_zoo import contents, filled, quiet
from winml.modelkit.core.errors import RequestError, RunFailedError
from winml.modelkit.feed.feed_command import Wanted, list_feed, pull, push

pytestmark = pytest.mark.usefixtures("no_logins")


def build(folder: Path, source: str | Path, content: bytes = b"m") -> Path:
    """A folder with the manifest of a build."""
    filled(folder, model=content)
    (folder / "build_manifest.json").write_text(json.dumps({"source": {"path": str(source)}, "target": "cpu"}))
    return folder


@pytest.mark.parametrize(
    ("source", "package"),
    [("models/resnet50.onnx", "resnet50"), ("org/name", "org-name"), ("sub/model.onnx", "model")],
)
def test_a_build_is_published_under_the_name_of_its_source(tmp_path: Path, source: str, package: str) -> None:
    path = tmp_path / source if source.endswith(".onnx") else source
    pushed = push(str(build(tmp_path / "out", path)), str(tmp_path / "feed"), Wanted(run_stamp="1"), quiet)
    assert (pushed.package, pushed.version) == (package, f"0.0.0-1-cpu-cpu-{package}")


def test_a_build_of_a_build_has_the_name_of_the_first_source(tmp_path: Path) -> None:
    first = build(tmp_path / "first", tmp_path / "resnet50.onnx")
    second = build(tmp_path / "second", first / "model.onnx")
    assert push(str(second), str(tmp_path / "feed"), Wanted(run_stamp="1"), quiet).package == "resnet50"
    parts = filled(tmp_path / "parts", encoder=b"e")
    (parts / "parts.json").write_text(json.dumps({"model": "org/bart", "target": "cpu"}))
    assert push(str(parts), str(tmp_path / "feed"), Wanted(run_stamp="1"), quiet).package == "org-bart"


def test_other_content_of_one_stamp_gets_a_number_and_a_pull_brings_the_last(tmp_path: Path) -> None:
    feed, wanted = str(tmp_path / "feed"), Wanted(run_stamp="1")
    pushed = [
        push(str(build(tmp_path / f"out{n}", "org/m", content)), feed, wanted, quiet)
        for n, content in enumerate((b"a", b"b", b"a", b"c"))
    ]
    assert [p.version.removeprefix("0.0.0-1-cpu-cpu-") for p in pushed] == ["org-m", "org-m.2", "org-m", "org-m.3"]
    assert [(p.outcome, p.revision) for p in pushed] == [
        ("published", 1), ("published", 2), ("already-there", 1), ("published", 3),
    ]  # fmt: skip
    asked = Wanted("org/m", run_stamp="1", target="cpu")
    pull(feed, asked, str(tmp_path / "pulled"), pattern="*.bin", overwrite=False, on_event=quiet)
    assert contents(tmp_path / "pulled") == {"model.bin": b"c"}
    assert sorted(v.revision for v in list_feed(feed, asked).versions) == [1, 2, 3]
    named = Wanted("org/m", version="0.0.0-1-cpu-cpu-org-m")
    with pytest.raises(RunFailedError, match="different content"):
        push(str(tmp_path / "out1"), feed, named, quiet)


def test_a_manifest_that_says_nothing_is_a_wrong_request(tmp_path: Path) -> None:
    folder = filled(tmp_path / "out", model=b"m")
    (folder / "build_manifest.json").write_text("[]")
    with pytest.raises(RequestError, match="is not a build manifest"):
        push(str(folder), str(tmp_path / "feed"), Wanted(run_stamp="1"), quiet)
