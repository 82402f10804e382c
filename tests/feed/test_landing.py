"""Files that arrive: resumed, checked, put in place together."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from feed_zoo import contents, filled, quiet
from winml.modelkit.core import file_names
from winml.modelkit.core.errors import RequestError, UnavailableError
from winml.modelkit.feed.base import Fetched
from winml.modelkit.feed.content import PULLING, Content, FeedDamaged, FileEntry, scan
from winml.modelkit.feed.landing import Delivery, Source, find_damaged, land


class Shelf:
    """Files in memory, by path; remembers where it was asked to start."""

    def __init__(self, files: dict[str, bytes], *, breaks_at: int | None = None, ranges: bool = True) -> None:
        self.files = files
        self.breaks_at = breaks_at
        self.ranges = ranges
        self.asked: list[tuple[str, int]] = []

    @contextlib.contextmanager
    def open(self, path: str, entry: FileEntry, offset: int) -> Iterator[Delivery]:
        self.asked.append((path, offset))
        start = offset if self.ranges else 0
        yield Delivery(start, self._chunks(self.files[path][start:]))

    def _chunks(self, content: bytes) -> Iterator[bytes]:
        for at in range(0, len(content), 10):
            if self.breaks_at is not None and at >= self.breaks_at:
                raise UnavailableError("the connection broke")
            yield content[at : at + 10]


@pytest.fixture
def content(tmp_path: Path) -> Content:
    return scan(filled(tmp_path / "source", a=b"a" * 100, sub__b=b"b" * 50)).content


FILES = {"a.bin": b"a" * 100, "sub/b.bin": b"b" * 50}


def _land(content: Content, into: Path, source: Source, *, overwrite: bool = False) -> Fetched:
    return land(content, into, source, overwrite=overwrite, on_event=quiet)


def test_an_interrupted_file_goes_on_where_it_stopped(content: Content, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        _land(content, tmp_path / "out", Shelf(FILES, breaks_at=60).open)
    assert [p.name for p in (tmp_path / "out").iterdir()] == [PULLING]
    shelf = Shelf(FILES)
    assert _land(content, tmp_path / "out", shelf.open) == Fetched(("a.bin", "sub/b.bin"), 90, 60)
    assert shelf.asked == [("a.bin", 60), ("sub/b.bin", 0)]
    assert contents(tmp_path / "out") == FILES


def test_a_file_that_had_come_whole_is_not_fetched_again(content: Content, tmp_path: Path) -> None:
    room = tmp_path / "out" / PULLING
    room.mkdir(parents=True)
    for entry, raw in zip(content.files.values(), FILES.values(), strict=True):
        (room / f"{entry.digest.removeprefix('sha256:')}.part").write_bytes(raw)
    shelf = Shelf(FILES)
    assert _land(content, tmp_path / "out", shelf.open).received_bytes == 0
    assert shelf.asked == []
    assert contents(tmp_path / "out") == FILES


def test_a_source_without_ranges_starts_over(content: Content, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        _land(content, tmp_path / "out", Shelf(FILES, breaks_at=60).open)
    assert _land(content, tmp_path / "out", Shelf(FILES, ranges=False).open).received_bytes == 150
    assert contents(tmp_path / "out") == FILES


def test_a_damaged_left_over_is_thrown_away_and_fetched_again(content: Content, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        _land(content, tmp_path / "out", Shelf(FILES, breaks_at=60).open)
    (part,) = (tmp_path / "out" / PULLING).glob("*.part")
    part.write_bytes(b"?" * 60)
    shelf = Shelf(FILES)
    _land(content, tmp_path / "out", shelf.open)
    assert shelf.asked[:2] == [("a.bin", 60), ("a.bin", 0)]
    assert contents(tmp_path / "out") == FILES


@pytest.mark.parametrize(
    "wrong",
    [b"A" * 100, b"a" * 99, b"a" * 101, b"a" * 100_000, b""],
    ids=["other", "short", "long", "endless", "empty"],  # pytest puts an id into the environment: 32 K on Windows
)
def test_wrong_bytes_are_never_delivered(content: Content, tmp_path: Path, wrong: bytes) -> None:
    with pytest.raises(FeedDamaged, match=r"a\.bin"):
        _land(content, tmp_path / "out", Shelf(FILES | {"a.bin": wrong}).open)
    assert not (tmp_path / "out" / "a.bin").exists()
    assert not list((tmp_path / "out").rglob("*.part"))
    assert _land(content, tmp_path / "out", Shelf(FILES).open).files == ("a.bin", "sub/b.bin")


def test_a_source_that_never_ends_is_cut_off(tmp_path: Path) -> None:
    content = scan(filled(tmp_path / "s", a=b"a" * 10)).content

    @contextlib.contextmanager
    def endless(path: str, entry: FileEntry, offset: int) -> Iterator[Delivery]:
        yield Delivery(0, iter(lambda: b"a" * 1000, None))

    with pytest.raises(FeedDamaged):
        _land(content, tmp_path / "out", endless)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there")
def test_a_link_in_the_way_is_not_followed(content: Content, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sub").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RequestError, match="is a link"):
        _land(content, tmp_path / "out", Shelf(FILES).open)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_where_the_folder_should_be_is_a_wrong_request(content: Content, tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(RequestError, match="is a file"):
        _land(content, tmp_path / "out", Shelf(FILES).open)
    (tmp_path / "other" / "a.bin").mkdir(parents=True)
    with pytest.raises(RequestError, match="is a folder"):
        _land(content, tmp_path / "other", Shelf(FILES).open)


def test_one_process_at_a_time_pulls_into_a_folder(content: Content, tmp_path: Path) -> None:
    code = (
        "import sys, filelock, pathlib\n"
        "room = pathlib.Path(sys.argv[1]); room.mkdir(parents=True)\n"
        "with filelock.FileLock(room / 'lock'): print('held', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "out" / PULLING)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(UnavailableError, match="another process is pulling"):
            _land(content, tmp_path / "out", Shelf(FILES).open)
        other.communicate()
    _land(content, tmp_path / "out", Shelf(FILES).open)
    assert contents(tmp_path / "out") == FILES


def _link(path: Path, to: Path, *, folder: bool = False) -> None:
    try:
        path.symlink_to(to, target_is_directory=folder)
    except OSError:
        pytest.skip("this account may not make links")


@pytest.mark.symlink
def test_a_waiting_room_that_is_a_link_is_refused(content: Content, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    _link(tmp_path / "out" / PULLING, tmp_path / "elsewhere", folder=True)
    with pytest.raises(RequestError, match="is a link"):
        _land(content, tmp_path / "out", Shelf(FILES).open)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["lock", "part"])
@pytest.mark.symlink
def test_a_link_in_the_waiting_room_is_refused(content: Content, tmp_path: Path, name: str) -> None:
    """A lock is emptied and a part is added to: both would happen to the file that a link leads to."""
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    room = tmp_path / "out" / PULLING
    room.mkdir(parents=True)
    part = content.files["a.bin"].digest.removeprefix("sha256:") + ".part"
    _link(room / (part if name == "part" else name), mine)
    with pytest.raises(RequestError, match="is a link"):
        _land(content, tmp_path / "out", Shelf(FILES).open)
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("count", [50, 150])
def test_a_false_size_is_damage_even_with_the_right_digest(content: Content, tmp_path: Path, count: int) -> None:
    entry = FileEntry(content.files["a.bin"].digest, count)
    with pytest.raises(FeedDamaged):
        _land(Content({"a.bin": entry}), tmp_path / "out", Shelf(FILES).open)
    assert not (tmp_path / "out" / "a.bin").exists()
    assert find_damaged(Content({"a.bin": entry}), Shelf(FILES).open, quiet) == ("a.bin",)


def test_a_path_that_windows_refuses_for_its_length_is_told_before_anything_is_fetched(
    content: Content, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_names, "_is_limited", lambda: True)
    shelf = Shelf(FILES)
    into = tmp_path / "a" / ("b" * (245 - len(str(tmp_path))))
    with pytest.raises(UnavailableError, match="characters, and Windows allows") as caught:
        _land(content, into, shelf.open)
    assert "LongPathsEnabled" in (caught.value.hint or "")
    assert not into.parent.exists()
    assert shelf.asked == []


def test_a_file_that_somebody_reads_is_replaced_when_that_has_ended(content: Content, tmp_path: Path) -> None:
    filled(tmp_path / "out", a=b"old")
    reader = (tmp_path / "out" / "a.bin").open("rb")
    closing = threading.Timer(0.2, reader.close)
    closing.start()
    _land(content, tmp_path / "out", Shelf(FILES).open, overwrite=True)
    closing.join()
    assert contents(tmp_path / "out") == FILES
